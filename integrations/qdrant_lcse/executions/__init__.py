"""Where the scores of a query are computed, one module for each `hits.execution`.

- `linear`: one ordinary vector search, where the score is linear in the image vector.
- `nested` and `two_trip`: the database computes a formula, in one round trip or in two. `by_formula` is what they
  share: the rounds, deeper each time where a proof is asked for.
- `client`: candidates come with their vectors and are scored here.

Each is a generator of `messages`, made from the query, the collection's schema, the options and a `strategy`; which one
is chosen in `search_base`. `requests` writes what is sent to Qdrant, `pages` cuts the page out of what comes back.
"""
