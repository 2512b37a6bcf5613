"""Text to tree: the offline grammar (default), language-model parsers, and the parse cache.

The grammar, in the order in which a text goes through it: `grammar` tells English from the explicit language
(`explicit`); `english` leads through `words`, `cues` (`names`), `clauses` (`attachment`, `coordination`), `precedence`
(`reach`) and `concepts`. `phrases`, `kinds` and `filler` judge runs of words by the tables of `lexicon`.

The language model: `openai_parser` (`chat_client`, `background`) asks as `llm` and `consult` say; `schema` and
`reply_json` read the reply; `grounding` (`agreement`, `exclusion`, `placing`, `languages`, `inflection`) believes it or
not; `faults` names what went wrong. `cached` (`cache`, `flights`, `model_identity`) remembers, `hybrid` asks only where
the grammar is not sure. What all of them give is in `result`.
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
