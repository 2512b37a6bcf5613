"""Queries that are not in English: how they are told, and by which words they may exclude or offer a choice.

The common languages only, and one word is enough wherever it stands: in a language without rules here a tree is checked
for what it cannot have made up.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from lcse_plugins.errors import QueryError
from lcse_plugins.parsing.english.lexicon import lexicon
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.grounding.placing import folded, words_of
from lcse_plugins.query import And, Concept, Or, Plain, Query, affirms_nothing, excludes, leaves

__all__ = ["NO_CHOICE", "drops_a_cue", "is_foreign", "unfounded"]

NO_CHOICE = "no word of the query offers a choice, so 'or' has no ground"
"""What is said of an `or` that a text does not carry."""

_NOT = frozenset(
    folded(
        "no sin ni nunca ningún ninguna nadie excepto salvo sans pas aucun aucune personne jamais sauf ohne kein keine "
        "keinen keinem keiner nicht niemand weder außer non senza né nessun nessuno nessuna mai tranne não sem nem "
        "nenhum nenhuma ninguém exceto zonder geen niet behalve utan inte ingen inga inget ikke uten uden bez nie "
        "olmayan değil yok ilman ei без не нет ни кроме بدون بلا لا ليس ללא בלי לא אין बिना नहीं"
    ).split()
)
_ENGLISH = frozenset({"non"})
"""Of the function words of other languages, those that English has as well."""
_OR = frozenset(folded("o u ou oder oppure of eller lub albo veya ya tai или либо أو או या").split())
_NOT_PARTS = tuple("没 沒 不 无 無 非 别 除 ない なし なく ぬき 以外 없 않 아니 제외 ไม่ ไร้".split())
_OR_PARTS = tuple("/ | 或 还是 還是 または もしくは か 또는 이나 거나 หรือ".split())
"""Of scripts without spaces, and of a language that glues its cues to the word."""


def is_foreign(text: str) -> bool:
    """Whether a text is not English, so that no English cue can vouch for its logic.

    Most of its letters are not Latin, or it has function words of another language and the grammar takes it whole.
    """
    letters = [letter for letter in unicodedata.normalize("NFKD", text) if letter.isalpha()]
    if sum(letter > "\u036f" for letter in letters) * 2 > len(letters):
        return True
    lows = [word.text for word in words_of(text)]
    if {folded(word) for word in lexicon().words("foreign") - _ENGLISH}.isdisjoint(lows):
        return False
    try:
        query = parse(text)
    except QueryError:
        return False
    return isinstance(query, Concept) and [word.text for word in words_of(query.text)] == lows


def unfounded(tree: Query, text: str) -> Iterator[str]:
    """What in the canonical tree of a foreign text has no word that could have said it, as sentences."""
    for leaf, negated in leaves(tree):
        if negated and not (_found(text, _NOT, _NOT_PARTS) - _found(leaf.text, _NOT, _NOT_PARTS)):
            yield f"nothing in the query negates {leaf.text!r}"
    if _chooses(tree) and not _found(text, _OR, _OR_PARTS):
        yield NO_CHOICE


def drops_a_cue(tree: Query, text: str) -> bool:
    """Whether a foreign text has a word that excludes, and the tree neither excludes anything nor keeps that word."""
    kept = {word for leaf, _ in leaves(tree) for word in _found(leaf.text, _NOT, _NOT_PARTS)}
    return not excludes(tree) and not _found(text, _NOT, _NOT_PARTS) <= kept


def _found(text: str, words: frozenset[str], parts: tuple[str, ...]) -> set[str]:
    return {word.text for word in words_of(text) if word.text in words} | {part for part in parts if part in text}


def _chooses(tree: Query) -> bool:
    """Whether there is an `or` in the tree, other than between things that are all excluded."""
    if isinstance(tree, Or):
        return not affirms_nothing(tree)
    return isinstance(tree, And | Plain) and any(map(_chooses, tree.children))
