"""Whether a language model's tree is believed: `belief` leads.

Its concepts must stand in the query (`placing`, `inflection`); what it excludes must have a cue there, and each cue
must be used (`exclusion`, `signs`); each `and` and `or` must have a word for it (`operators`); and where the grammar is
sure of the opposite the model is not believed (`agreement`). `languages` tells queries that are not in English, and has
their cues.
"""
