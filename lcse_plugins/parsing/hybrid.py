"""`HybridParser`: the offline grammar answers what is clear; a language model is asked about the rest.

The model is asked where the grammar is not sure, and where its reading would not be believed of a model: a concept has
swallowed a negation ("mountains yes, people no"), or the signs do not fit the query's own words. Then:

    both read the same               → that reading, sure
    the model gives no usable answer → the grammar's reading, not sure
    they differ in a sign            → plain similarity: one of them excludes what the other wants
    the grammar left it plain, and
    the model wants nothing at all   → plain similarity: "no two snowflakes alike"
    they differ otherwise            → the model's reading, not sure
"""

from __future__ import annotations

import re
from dataclasses import replace

from lcse_plugins.parsing.grammar import GrammarParser, is_explicit
from lcse_plugins.parsing.llm.grounding import doubts
from lcse_plugins.parsing.result import Parse, Parser, aread_with, read_with
from lcse_plugins.query import Concept, Query, affirms_nothing, canonical, format_query, leaves, ordered

__all__ = ["HybridParser"]


class HybridParser:
    """Asks the language model only about doubtful queries, so most cost nothing.

    Args:
        llm: The parser that is asked about the rest: `OpenAIParser`, `CachedParser`, any `Parser`.
        grammar: The parser that is asked first.
    """

    def __init__(self, llm: Parser, *, grammar: GrammarParser | None = None) -> None:
        self.llm = llm
        self.grammar = grammar if grammar is not None else GrammarParser()

    def __call__(self, text: str, /) -> Query:
        """The tree of `text`."""
        return self.read(text).query

    def read(self, text: str) -> Parse:
        """The tree of `text`; `Parse.parser` says who read it.

        Raises:
            QuerySyntaxError: the text is in the explicit language and breaks its grammar; no model is asked to guess.
        """
        parse = self.grammar.read(text)
        return combined(parse, read_with(self.llm, text)) if is_doubtful(parse) else parse

    async def aread(self, text: str) -> Parse:
        """`read` without blocking."""
        parse = self.grammar.read(text)
        return combined(parse, await aread_with(self.llm, text)) if is_doubtful(parse) else parse

    def close(self) -> None:
        """Close what the model's parser keeps open, if it does."""
        if (close := getattr(self.llm, "close", None)) is not None:
            close()

    async def aclose(self) -> None:
        """`close` without blocking."""
        if (aclose := getattr(self.llm, "aclose", None)) is None:
            self.close()
        else:
            await aclose()


def is_doubtful(parse: Parse) -> bool:
    """Whether a model should be asked about what the grammar read; never about the explicit language."""
    return not parse.sure or (not is_explicit(parse.text) and bool(doubts(parse.text, parse.query)))


def combined(grammar: Parse, model: Parse) -> Parse:
    """One reading out of the grammar's, which is doubtful, and the model's."""
    if model.error is not None:
        return replace(model, sure=False)
    if _form(grammar.query) == _form(model.query):
        return replace(grammar, sure=True, notes=(*grammar.notes, f"{model.parser} reads it the same way"))
    if grammar.constrained and model.constrained and (clash := _clash(grammar.query, model.query)):
        note = f"the grammar and {model.parser} differ about {', '.join(sorted(clash))}; the query is taken as a whole"
        plain = Concept(grammar.text)
        return replace(grammar, query=plain, affirmative=grammar.text, sure=False, notes=(*grammar.notes, note))
    if affirms_nothing(model.query) and not grammar.constrained:
        note = f"{model.parser} reads {format_query(model.query)}, which wants nothing; the query is taken as a whole"
        return replace(grammar, sure=False, notes=(*grammar.notes, note))
    note = f"read by {model.parser}; the grammar was not sure of {format_query(grammar.query)}"
    return replace(model, sure=False, notes=(*model.notes, note))


_SMALL = frozenset("a an the of in on at and or is are it with to some any for no not".split())


def _form(query: Query) -> str:
    return format_query(ordered(canonical(query))).casefold()


def _clash(one: Query, other: Query) -> set[str]:
    """Words that one tree only wants and the other only excludes."""
    (wanted, excluded), (also_wanted, also_excluded) = _by_sign(one), _by_sign(other)
    return (wanted - excluded) & (also_excluded - also_wanted) | (excluded - wanted) & (also_wanted - also_excluded)


def _by_sign(query: Query) -> tuple[set[str], set[str]]:
    signs: tuple[set[str], set[str]] = (set(), set())
    for concept, negated in leaves(query):
        signs[negated].update(set(re.findall(r"[^\W_]+", concept.text.casefold())) - _SMALL)
    return signs
