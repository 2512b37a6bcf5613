"""The tables of README files, made from kept results, so that no number in them is typed by hand.

A table stands between `<!-- table: NAME -->` and `<!-- end table -->`, or `<!-- table: NAME; A; B -->` for its rows A
and B only. `python -m lcse_plugins.bench.readme_tables
README.md RESULTS` writes them anew; `filled` gives the text as it should be, for a test to compare.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lcse_plugins.bench.phrasing import OPERATORS
from lcse_plugins.bench.reports import read_result
from lcse_plugins.bench.tables import number_text
from lcse_plugins.errors import InvalidOption

__all__ = ["TABLES", "filled", "readme_tables"]

LEADS = {
    "retrieval": "500 photographs",
    "retrieval-half-a": "half A",
    "retrieval-half-b": "half B",
    "retrieval-prototype": "500, another encoder",
}
"""Results whose leads stand side by side in one table → its headings."""

RIVALS = ("subtraction", "best score", "lcse", "lcse, affirmative text", "factored")

_MARK = re.compile(r"(<!-- table: (?P<name>[\w-]+)(?P<rows>;[^\n]*)? -->\n).*?(<!-- end table -->)", re.DOTALL)


def readme_tables(results: str | Path) -> dict[str, str]:
    """Name → table in Markdown, for every result that is kept.

    Raises:
        InvalidOption: there is no such folder, or a file in it is not a benchmark result.
    """
    folder = Path(results)
    if not folder.is_dir():
        raise InvalidOption(f"there is no folder {folder} of results")
    kept = {name: read_result(folder / f"{name}.json") for name in TABLES if (folder / f"{name}.json").is_file()}
    tables = {}
    for name, record in kept.items():
        try:
            tables[name] = TABLES[name](record)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidOption(f"{folder / name}.json lacks figures of its table: {error!r}") from error
    if all(name in kept for name in LEADS):
        tables["leads"] = _leads({heading: kept[name] for name, heading in LEADS.items()})
    return tables


def filled(text: str, results: str | Path, *, strict: bool = True) -> str:
    """The text with every marked table written from the results.

    Args:
        text: The README.
        results: The folder of kept results.
        strict: Refuse a mark for which no result is kept; otherwise leave that table as it is.

    Raises:
        InvalidOption: a mark names a table for which no result is kept, and `strict` is set; or a row it has not.
    """
    tables = readme_tables(results)

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in tables and not strict:
            return match[0]
        if name not in tables:
            raise InvalidOption(f"no result for table {name!r} in {results}; kept are {', '.join(tables) or 'none'}")
        return f"{match[1]}{_with_rows(tables[name], match['rows'])}\n{match[4]}"

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


def _leads(records: Mapping[str, Mapping[str, Any]]) -> str:
    means = {
        heading: {row["ranker"]: row for row in record["result"]["rows"] if row["operator"] == "mean"}
        for heading, record in records.items()
    }
    lines = ["| P@10 / AUC, points | " + " | ".join(means) + " |", "|---" + "|--:" * len(means) + "|"]
    for ours, rival in itertools.product(("anchored", "anchored, 6 views", "anchored, 15 views"), RIVALS):
        if not all(ours in per and rival in per for per in means.values()):
            continue
        leads = [
            f"{per[ours]['p_at_10'] - per[rival]['p_at_10']:+.1f} / {per[ours]['auc'] - per[rival]['auc']:+.1f}"
            for per in means.values()
        ]
        lines.append(f"| {ours}: over {rival} | " + " | ".join(leads) + " |")
    return "\n".join(lines)


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


def _calibration(record: Mapping[str, Any]) -> str:
    result = record["result"]
    body = [
        [
            f"{name} objective",
            f"{fit['mu']:.3f}",
            f"{fit['beta']:g}",
            *(f"{100 * v:.1f}" for v in fit["at_chosen"].values()),
        ]
        for name, fit in result["objectives"].items()
    ]
    free = result["unlabelled"]
    if free is not None:
        values = (f"{100 * free['values'][name]:.1f}" for name in result["objectives"])
        body.append(["no labels", f"{free['mu']:.3f}", f"{free['beta']:.2f}", *values])
    return _markdown(["chosen by", "μ", "β", *(f"{name}, %" for name in result["objectives"])], body, record)


def _timing(record: Mapping[str, Any]) -> str:
    rows: dict[tuple[int, str], dict[str, Mapping[str, Any]]] = {}
    for row in record["result"]["results"]:
        rows.setdefault((row["rows"], row["contender"]), {})[row["form"]] = row
    forms = list(dict.fromkeys(row["form"] for row in record["result"]["results"]))
    body = [
        [f"{size:,}: {contender}", *(f"{per[m]['milliseconds']:.1f} ms, {per[m]['to_numpy']:.2f} ×" for m in forms)]
        for (size, contender), per in rows.items()
    ]
    return _markdown(["vectors: top ten by", *forms], body, record)


def _qdrant(record: Mapping[str, Any]) -> str:
    rows: dict[str, dict[int, str]] = {}
    for row in record["result"]["results"]:
        beam = f", beam {row['beam']:,}" if row["beam"] else ""
        cell = f"{row['recall']:.2f} at {row['ratio']:.1f}, {number_text(row['worded_ratio'])} ×"
        rows.setdefault(f"{row['operator']}, `{row['execution']}`{beam}", {})[row["candidates"]] = cell
    depths = sorted({depth for per in rows.values() for depth in per})
    body = [[label, *(per.get(depth, "") for depth in depths)] for label, per in rows.items()]
    return _markdown(["candidates", *(f"{depth:,}" for depth in depths)], body, record)


TABLES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "retrieval": _retrieval,
    "retrieval-half-a": _retrieval,
    "retrieval-half-b": _retrieval,
    "retrieval-unlabelled": _retrieval,
    "retrieval-prototype": _retrieval,
    "factor": _factor,
    "factor-preset": _factor,
    "factor-half-b": _factor,
    "factor-half-b-labelled": _factor,
    "retention": _retention,
    "calibrate": _calibration,
    "calibrate-anchored": _calibration,
    "timing": _timing,
    "qdrant": _qdrant,
}
"""Name of a result, and of the table made from it → how."""


def _markdown(columns: Sequence[str], body: Sequence[Sequence[str]], record: Mapping[str, Any]) -> str:
    lines = [
        "| " + " | ".join(columns) + " |",
        "|---" + "|--:" * (len(columns) - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in body),
        "",
        f"`{record['command']}`, {record['date']}" + (f", encoder `{record['encoder']}`" if record["encoder"] else ""),
    ]
    return "\n".join(lines)


def _main(arguments: Sequence[str]) -> None:
    readme, results = Path(arguments[0]), arguments[1]
    readme.write_text(filled(readme.read_text(encoding="utf-8"), results, strict=False), encoding="utf-8")


if __name__ == "__main__":
    _main(sys.argv[1:])
