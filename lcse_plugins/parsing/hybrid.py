"""`HybridParser`: the offline grammar answers what it is sure of, the language model only the rest."""

from __future__ import annotations

from lcse_plugins.parsing.grammar import GrammarParser
from lcse_plugins.parsing.result import Parse, Parser, aread_with, read_with
from lcse_plugins.query import Query

__all__ = ["HybridParser"]


class HybridParser:
    """Sends a query to the language model only when the grammar is not sure, so most queries cost nothing.

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
        return parse if parse.sure else read_with(self.llm, text)

    async def aread(self, text: str) -> Parse:
        """`read` without blocking."""
        parse = self.grammar.read(text)
        return parse if parse.sure else await aread_with(self.llm, text)

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
