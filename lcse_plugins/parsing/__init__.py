"""Text to tree: the offline grammar (default), language-model parsers, and the parse cache.

`grammar` tells English (`english/`) from the explicit language of AND, OR and NOT (`boolean`). `llm/` asks a language
model, checks its reply against the query's own words and remembers it; `hybrid` asks it only where the grammar is not
sure. What all of them give is in `result`.
"""

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
