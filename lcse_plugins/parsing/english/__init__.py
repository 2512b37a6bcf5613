"""The English grammar, read in four steps: words, then cues, then clauses, then the tree; `grammar` leads.

`words` splits the text and knows the tables of `english.txt`, `cues` tags what may be logic, `clauses` settles what
each negation reaches and what belongs to what (its passes are listed in `PASSES`), `tree` builds the result.
"""
