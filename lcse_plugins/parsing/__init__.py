"""Text to tree: the offline grammar (default), language-model parsers, and the parse cache."""

from lcse_plugins.parsing.grammar import GrammarParser, is_explicit, parse
from lcse_plugins.parsing.result import DetailedParser, Parse, Parser, affirmative_text, read_with

__all__ = [
    "DetailedParser",
    "GrammarParser",
    "Parse",
    "Parser",
    "affirmative_text",
    "is_explicit",
    "parse",
    "read_with",
]
