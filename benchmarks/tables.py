"""The tables of the docs, made from kept results, so that no number in them is typed by hand.

    python -m benchmarks.tables docs/results.md benchmarks/results

A table stands between `<!-- table: NAME -->` and `<!-- end table -->`, where NAME.json is a result of `lcse bench`;
NAME-leads is the second table of a retrieval.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lcse_plugins.bench.calibration import reliability_rows
from lcse_plugins.bench.diagnose import diagnosis_rows
from lcse_plugins.bench.factor import factor_rows
from lcse_plugins.bench.reports import Rows
from lcse_plugins.bench.retention import retention_rows
from lcse_plugins.bench.retrieval import lead_rows, retrieval_rows

__all__ = ["filled"]

TABLES: Mapping[str, Callable[[Mapping[str, Any]], Rows]] = {
    "retrieval": retrieval_rows,
    "factor": factor_rows,
    "retention": retention_rows,
    "reliability": reliability_rows,
    "diagnose": diagnosis_rows,
}
"""First word of a result's name → how its table is made."""

_MARK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end table -->)", re.DOTALL)


def filled(text: str, results: Path) -> str:
    """The text with every marked table written from the results."""

    def table(match: re.Match[str]) -> str:
        name = match[2].removesuffix("-leads")
        record = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
        rows = (TABLES[name.split("-")[0]] if name == match[2] else lead_rows)(record["result"])
        heading, *lines = ("| " + " | ".join(row) + " |" for row in rows)
        rule = "|---" + "|--:" * (len(rows[0]) - 1) + "|"
        source = f"`{record['command']}`, {record['date']}, encoder `{record['encoder']}`"
        return match[1] + "\n".join([heading, rule, *lines, "", source]) + f"\n{match[3]}"

    return _MARK.sub(table, text)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(filled(page.read_text(encoding="utf-8"), Path(sys.argv[2])), encoding="utf-8")
