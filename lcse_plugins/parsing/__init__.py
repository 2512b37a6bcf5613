"""Text to tree: the offline grammar (default), language-model parsers, and the parse cache.

`grammar` tells English (`english/`) from the explicit language of AND, OR and NOT (`explicit`). A language model is
asked by `openai_parser` as `llm` and `consult` say, with the texts of `prompt/`, over the network by `service/`;
`schema` is the form of its reply, and `grounding/` believes it or not. `cached` remembers answers in a `cache`;
`hybrid` asks a model only where the grammar is not sure. What all of them give is in `result`.
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
