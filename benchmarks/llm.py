"""The grammar, a real model, and both together on the hard queries of `tests/llm`.

    python -m benchmarks.llm --url http://127.0.0.1:8080/v1     asks the model what is not kept yet, and keeps it
    python -m benchmarks.llm                                    makes the table again from the kept replies

`make test-llm` does the first with a model of its own.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from lcse_plugins.errors import LcseError, ParserOutputError
from lcse_plugins.parsing.grammar import GrammarParser
from lcse_plugins.parsing.hybrid import HybridParser, is_doubtful
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.llm.parser import load_prompt
from lcse_plugins.parsing.llm.schema import decode, tree_of
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Concept, format_query
from tests.parsing.gold import VERDICTS, Example, judge, read_examples

HARD_QUERIES = Path(__file__).parents[1] / "tests" / "llm" / "hard_queries.txt"
REPLIES = Path(__file__).parent / "results" / "llm-replies.json"


class Remembering(OpenAIParser):
    """A parser that keeps the model's replies, and how many seconds each took."""

    def __init__(self, url: str | None, kept: Path) -> None:
        super().__init__("qwen2.5-coder-1.5b", base_url=url or "http://127.0.0.1:9/v1", timeout=1800, max_retries=0)
        self.kept = kept
        self.replies: dict[str, tuple[str, float]] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}

    def _ask(self, text: str) -> str:
        if text not in self.replies:
            begun = time.perf_counter()
            try:
                said = super()._ask(text)
            except ParserOutputError as error:
                said = str(error)
            self.replies[text] = said, round(time.perf_counter() - begun, 1)
            self.kept.write_text(json.dumps(self.replies, ensure_ascii=False, indent=0) + "\n", "utf-8")
        return self.replies[text][0]

    def unchecked(self, text: str) -> Parse:
        """What the model says, whether it can be believed or not."""
        try:
            return Parse(text=text, query=tree_of(decode(self._ask(text))))
        except LcseError:
            return Parse(text=text, query=Concept(text))


def judged(example: Example, parse: Parse) -> str:
    """How right a reading is. Where the plain query is right too, it excuses no other reading."""
    if len(example.golds) > 1 and not parse.constrained:
        return "right"
    return judge(example._replace(golds=example.golds[:1]), parse)


def measure(url: str | None = None, kept: Path = REPLIES, *, show: bool = False) -> str:
    """The tables, as Markdown: fresh queries, and those that were seen while rules were written."""
    logging.getLogger("lcse_plugins").setLevel(logging.ERROR)
    lists: dict[str, list[Example]] = {"fresh, second list": [], "fresh, first list": [], "seen earlier": []}
    with closing(Remembering(url, kept)) as llm:
        for example in read_examples(str(HARD_QUERIES)):
            if url or example.text in llm.replies:
                family = example.family.partition(":")[0]
                lists[family if family in lists else "seen earlier"].append(example)
        tables = [_table(name, examples, llm, show) for name, examples in lists.items() if examples]
        seconds = statistics.median(took for _, took in llm.replies.values())
    size = len(load_prompt().encode())
    return "\n".join([*tables, f"The model takes {seconds:.1f} s a query (median) with a prompt of {size:,} bytes."])


def _table(title: str, examples: Sequence[Example], llm: Remembering, show: bool) -> str:
    grammar, hybrid = GrammarParser(), HybridParser(llm)
    counts: dict[str, Counter[str]] = {}
    for example in examples:
        readings = {
            "grammar alone": grammar.read(example.text),
            "model alone, unchecked": llm.unchecked(example.text),
            "model, grounded, else grammar": llm.read(example.text),
            "hybrid": hybrid.read(example.text),
        }
        for name, parse in readings.items():
            verdict = judged(example, parse)
            counts.setdefault(name, Counter())[verdict] += 1
            counts[name]["while sure"] += verdict == "wrong sign" and parse.sure
            if show and verdict.startswith("wrong"):
                print(f"{name} | {verdict} | {example.text} | {format_query(parse.query)}")
    columns = (*VERDICTS, "while sure")
    rows = [f"| {name} | {' | '.join(str(counts[name][column]) for column in columns)} |" for name in counts]
    head = f"| {len(examples)} queries, {title} | {' | '.join(columns[:-1])} | of these while sure |\n|---|{'--:|' * 5}"
    asked = sum(is_doubtful(grammar.read(example.text)) for example in examples)
    return "\n".join([head, *rows, "", f"The hybrid asks about {asked} of them.", ""])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--url", help="where the model is served")
    options.add_argument("--replies", type=Path, default=REPLIES, help="where replies are kept")
    options.add_argument("--show", action="store_true", help="print what is misread")
    given = options.parse_args()
    print(measure(given.url, given.replies, show=given.show))
