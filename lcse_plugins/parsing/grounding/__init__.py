"""Whether a language model's tree is believed: `belief` leads.

Its concepts must stand in the query (`placing`, `inflection`), each of the query's cues must be used (`exclusion`,
`signs`), each `and` and `or` must have a word for it (`operators`), and where the grammar is sure of the opposite the
model is not believed (`agreement`). `languages` are the cues of others.
"""
