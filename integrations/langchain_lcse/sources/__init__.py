"""Where documents come from: `protocol` says what a source does, `choose` picks one for what the user passed.

`store` searches any vector store (`known_stores` reads their vectors), `pool` an index in memory, and `database` lets a
database score by itself.
"""
