"""The English grammar, in the order in which a text goes through it.

`reading` leads: `words` splits, `cues` (`names`, `senses`, `orders`, `turns`, `absences`) tags what may be logic as
`items`, `clauses` (`attachment`, `coordination`) settles what each operator joins, `precedence` (`reach`) builds the
tree of `nodes`, `concepts` names its leaves.
`phrases`, `cuts`, `keywords`, `kinds` and `filler` judge runs of words by the tables of `lexicon`, which are in
`english.txt`.
"""
