"""The grammar, a real model, and both together on the hard queries of `tests/llm`: `python -m benchmarks.llm URL`.

`make test-llm` does this too. `--replies FILE` keeps the model's replies, and takes those it knows from there.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from lcse_plugins.errors import LcseError, ParserOutputError
from lcse_plugins.parsing.grammar import GrammarParser
from lcse_plugins.parsing.hybrid import combined
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.llm.parser import load_prompt
from lcse_plugins.parsing.llm.schema import decode, tree_of
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Concept, Query
from tests.parsing.gold import VERDICTS, Example, judge, read_examples

HARD_QUERIES = Path(__file__).parents[1] / "tests" / "llm" / "hard_queries.txt"


class Remembering(OpenAIParser):
    """A parser that keeps the model's replies, and how many seconds each took."""

    def __init__(self, url: str, replies: dict[str, tuple[str, float]]) -> None:
        super().__init__("qwen2.5-coder-1.5b", base_url=url, timeout=1800, max_retries=0)
        self.replies = replies

    def _ask(self, text: str) -> str:
        if text not in self.replies:
            begun = time.perf_counter()
            try:
                said = super()._ask(text)
            except ParserOutputError as error:
                said = str(error)
            self.replies[text] = said, time.perf_counter() - begun
        return self.replies[text][0]

    def unchecked(self, text: str) -> Query:
        """What the model says, whether it can be believed or not."""
        try:
            return tree_of(decode(self._ask(text)))
        except LcseError:
            return Concept(text)


def judged(example: Example, parse: Parse) -> str:
    """How right a reading is. Where the plain query is right too, it excuses no other reading."""
    if len(example.golds) > 1 and not parse.constrained:
        return "right"
    return judge(example._replace(golds=example.golds[:1]), parse)


def measure(url: str, replies: Path | None = None, *, show: bool = False) -> str:
    """The table, as Markdown."""
    logging.getLogger("lcse_plugins").setLevel(logging.ERROR)
    grammar, examples = GrammarParser(), read_examples(str(HARD_QUERIES))
    counts: dict[str, Counter[str]] = {}
    asked = 0
    known = json.loads(replies.read_text("utf-8")) if replies and replies.is_file() else {}
    with closing(Remembering(url, known)) as llm:
        for example in examples:
            first, model = grammar.read(example.text), llm.read(example.text)
            asked += not first.sure
            readings = {
                "grammar alone": first,
                "model alone, unchecked": Parse(text=example.text, query=llm.unchecked(example.text)),
                "model, grounded, else grammar": model,
                "hybrid": first if first.sure else combined(first, model),
            }
            for name, parse in readings.items():
                verdict = judged(example, parse)
                counts.setdefault(name, Counter())[verdict] += 1
                counts[name]["while sure"] += verdict == "wrong sign" and parse.sure
                if show and verdict.startswith("wrong"):
                    print(f"{name} | {verdict} | {example.text} | {parse.query}")
            if replies:
                replies.write_text(json.dumps(llm.replies, ensure_ascii=False, indent=0), "utf-8")
        seconds = statistics.median(took for _, took in llm.replies.values())
    columns = (*VERDICTS, "while sure")
    rows = [f"| {name} | {' | '.join(str(counts[name][column]) for column in columns)} |" for name in counts]
    head = f"| {len(examples)} hard queries | {' | '.join(columns[:-1])} | of these while sure |\n|---|{'--:|' * 5}"
    size = len(load_prompt().encode())
    told = f"The model takes {seconds:.1f} s a query (median) with a prompt of {size:,} bytes. The hybrid asks it about"
    return "\n".join([head, *rows, "", told, f"{asked} queries; the grammar is sure of the others.", ""])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("url", help="where the model is served, such as http://127.0.0.1:8080/v1")
    options.add_argument("--replies", type=Path)
    options.add_argument("--show", action="store_true", help="print what is misread")
    given = options.parse_args()
    print(measure(given.url, given.replies, show=given.show))
