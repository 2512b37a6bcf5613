"""The English grammar: words, then cues, then clauses, then the tree.

`reading` leads. `words` splits the text and collects what a reader would hesitate about, `cues` tags what may be logic,
`clauses` settles what each negation reaches and what belongs to what (its passes are listed in `PASSES`), `tree` builds
the result. `phrases` judges runs of words by the tables of `lexicon`, which are in `english.txt`.
"""
