"""The tables of the docs, made from kept results, so that no number in them is typed by hand.

    python -m benchmarks.tables docs/results.md benchmarks/results

A table stands between `<!-- table: NAME -->` and `<!-- end table -->`. `<!-- table: NAME; A; B -->` keeps its rows A
and B only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lcse_plugins.bench.phrasing import OPERATORS
from lcse_plugins.bench.reports import number_text, read_result
from lcse_plugins.errors import InvalidOption

__all__ = ["filled"]

_MARK = re.compile(r"(<!-- table: (?P<name>[\w-]+)(?P<rows>;[^\n]*)? -->\n).*?(<!-- end table -->)", re.DOTALL)


def filled(text: str, results: str | Path) -> str:
    """The text with every marked table written from the results.

    Raises:
        InvalidOption: a mark names a table for which no result is kept, or a row it has not.
    """

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        kind, lead = name.split("-")[0], name.endswith("-leads")
        record = read_result(Path(results, f"{name.removesuffix('-leads')}.json"))
        made = _leads(record) if lead else TABLES[kind](record)
        return f"{match[1]}{_with_rows(made, match['rows'])}\n{match[4]}"

    return _MARK.sub(table, text)


def _with_rows(table: str, chosen: str | None) -> str:
    """The table with the rows that `; A; B` names, or with all."""
    if chosen is None:
        return table
    heading, rule, *lines = table.splitlines()
    rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("|")}
    names = [name.strip() for name in chosen.split(";")[1:]]
    if missing := [name for name in names if name not in rows]:
        raise InvalidOption(f"the table has no row {missing[0]!r}; it has {', '.join(rows)}")
    return "\n".join(
        [heading, rule, *(rows[name] for name in names), *(line for line in lines if line not in rows.values())]
    )


def _retrieval(record: Mapping[str, Any]) -> str:
    rows: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in record["result"]["rows"]:
        rows.setdefault(row["ranker"], {})[row["operator"]] = row
    columns = [*record["result"]["questions"], "mean"]
    body = []
    for ranker, per in rows.items():
        cells = [f"{per[c]['p_at_10']:.1f} / {per[c]['auc']:.1f}" for c in columns]
        body.append([ranker, *cells, number_text(per["mean"]["violations"])])
    return _markdown(["P@10 / AUC, %", *columns, "violations"], body, record)


def _leads(record: Mapping[str, Any]) -> str:
    body = [
        [rival, *(_interval(lead[name], lead[f"{name}_interval"]) for name in ("precision", "auc"))]
        for rival, lead in record["result"]["leads"].items()
    ]
    return _markdown(["lead of `anchored` over", "P@10, points", "AUC, points"], body, record)


def _interval(value: float, interval: Sequence[float]) -> str:
    return f"{value:+.1f} ({interval[0]:+.1f} to {interval[1]:+.1f})"


def _factor(record: Mapping[str, Any]) -> str:
    body = [
        [
            mode,
            *(number_text(report["accuracy"].get(op)) for op in OPERATORS),
            number_text(report["overall"]),
            number_text(report["violations"].get("all")),
        ]
        for mode, report in record["result"]["modes"].items()
    ]
    return _markdown(["accuracy, %", *OPERATORS, "all", "equivalents scored apart"], body, record)


def _retention(record: Mapping[str, Any]) -> str:
    result = record["result"]
    body = [
        [mode, *(f"{value:.1f}" for value in recall.values()), number_text(result["correlation"][mode], ".4f")]
        for mode, recall in result["recall"].items()
    ]
    return _markdown(["captions", "R@1", "R@5", "R@10", "ρ without logic"], body, record)


def _reliability(record: Mapping[str, Any]) -> str:
    body = [
        [
            f"{band['low']:.0f} to {band['high']:.0f} %",
            number_text(band["shown"]),
            number_text(band["present"]),
            f"{band['cases']:,}",
        ]
        for band in record["result"]["bands"]
    ]
    return _markdown(["shown", "mean shown, %", "really there, %", "cases"], body, record)


def _diagnose(record: Mapping[str, Any]) -> str:
    found = record["result"]
    body = [
        ['"a X" finds pictures with X, AUC', number_text(found["detection_auc"], ".3f")],
        ['"no X" finds pictures without X, AUC', number_text(found["polarity_auc"], ".3f")],
        ['"a X" and "no X" rank alike, ρ', number_text(found["polarity_correlation"], ".3f")],
        *(
            [f"similarity moves by, in deviations: {kind}", number_text(moved, ".2f")]
            for kind, moved in found["sensitivity"].items()
        ),
    ]
    return _markdown(["plain similarity", "value"], body, record)


TABLES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "retrieval": _retrieval,
    "factor": _factor,
    "retention": _retention,
    "reliability": _reliability,
    "diagnose": _diagnose,
}
"""First word of a result's name → how its table is made."""


def _markdown(columns: Sequence[str], body: Sequence[Sequence[str]], record: Mapping[str, Any]) -> str:
    lines = [
        "| " + " | ".join(columns) + " |",
        "|---" + "|--:" * (len(columns) - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in body),
        "",
        f"`{record['command']}`, {record['date']}, encoder `{record['encoder']}`",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(filled(page.read_text(encoding="utf-8"), sys.argv[2]), encoding="utf-8")
