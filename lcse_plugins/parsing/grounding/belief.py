"""Is a tree grounded in the words of its query? What a language model replies is believed only if it is.

Checked: every word of a concept stands in the query (up to inflection, and not more often than there); there are not
more concepts than the query can name; what is excluded has a cue, and what a cue excludes is (`signs`); `and` and `or`
have a word that joins or offers a choice (`operators`); and what the offline grammar is sure of is not contradicted
(`agreement`). So whatever a query orders the model to say, a tree can only be made of the query's own words and its own
logic. A query in another language is held to less (`languages`).
"""

from __future__ import annotations

from collections.abc import Sequence

from lcse_plugins.parsing.grounding.agreement import disagreements, is_grammars
from lcse_plugins.parsing.grounding.languages import is_foreign, unfounded
from lcse_plugins.parsing.grounding.operators import wrong_operators
from lcse_plugins.parsing.grounding.placing import (
    ARTICLES,
    Place,
    folded,
    places_of,
    stands_for,
    wanted_words,
    words_of,
)
from lcse_plugins.parsing.grounding.signs import wrong_signs
from lcse_plugins.query import Query, canonical, concepts, leaves

__all__ = ["locate", "ungrounded"]


def ungrounded(query: Query, text: str) -> tuple[str, ...]:
    """What in `query` is not grounded in `text`, as sentences; empty when all is."""
    words = words_of(text)
    tree = canonical(query)
    found = [leaf for leaf, _ in leaves(query)]
    if len(found) > max(4, 2 * len(words)):
        return (f"{len(found)} concepts for a query of {len(words)} words",)
    if is_grammars(tree, text):
        return ()
    problems = [
        f"{invented} in concept {leaf.text!r} is not in the query"
        for leaf in found
        if (invented := _invented(leaf.text, words, text))
    ]
    if not problems and is_foreign(text):
        problems += unfounded(tree, text)
    elif not problems:
        problems += [*wrong_signs(tree, text), *wrong_operators(tree, text), *disagreements(tree, text)]
    return tuple(dict.fromkeys(problems))


def locate(query: Query, text: str) -> dict[str, tuple[int, int]]:
    """Where each concept stands in `text`, as half-open character ranges; the tightest place if there are several."""
    words = words_of(text)
    spans: dict[str, tuple[int, int]] = {}
    for concept in concepts(query):
        places = [(words[place[-1]].end - words[place[0]].start, place) for place in places_of(concept, words)]
        if places:
            _, place = min(places)
            spans[concept] = words[place[0]].start, words[place[-1]].end
    return spans


def _invented(concept: str, words: Sequence[Place], text: str) -> str | None:
    """The first word or mark of the concept that the query does not have."""
    free = [word.text for word in words]
    wanted = wanted_words(concept, words)
    for one in wanted:
        match = next((i for i, word in enumerate(free) if stands_for(word, one)), None)
        if match is not None:
            del free[match]
        elif one not in ARTICLES:
            return repr(one)
    marks = folded(text)
    for mark in folded(concept):
        if not mark.isalnum() and not mark.isspace() and mark not in marks and mark not in "-'":
            return repr(mark)
    return None if wanted else repr(concept)
