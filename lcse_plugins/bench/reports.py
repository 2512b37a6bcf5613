"""Results as text for a terminal, and on disk: what was measured, by which command, with which versions, when."""

from __future__ import annotations

import csv
import json
import math
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lcse_plugins.errors import InvalidOption

__all__ = ["aligned", "finite_json", "number_text", "read_result", "write_result"]

_PACKAGES = ("lcse-plugins", "numpy", "onnxruntime", "open_clip_torch", "qdrant-client")


def write_result(
    folder: str | Path,
    name: str,
    result: Mapping[str, Any],
    *,
    encoder_id: str | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
    command: str | None = None,
) -> Path:
    """Write `name.json`, and `name.csv` where there are rows; the path of the former.

    Args:
        folder: Where to; made where it is missing.
        name: Of the result.
        result: The figures, as JSON values.
        encoder_id: Which encoder they belong to.
        rows: The same figures as a flat table.
        command: How to make them again; by default this process's command line.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    record = {
        "name": name,
        "command": command or shlex.join(["lcse", *sys.argv[1:]]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": _versions(),
        "encoder": encoder_id,
        "result": result,
    }
    path = target / f"{name}.json"
    text = json.dumps(finite_json(record), indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    if rows:
        with open(target / f"{name}.csv", "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    return path


def read_result(path: str | Path) -> dict[str, Any]:
    """The record that `write_result` wrote.

    Raises:
        InvalidOption: the file is missing, or is not a benchmark result.
    """
    try:
        record: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        record["result"], record["command"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidOption(f"{path} is not the result of a benchmark: {error!r}") from error
    return record


def finite_json(value: Any) -> Any:
    """The same JSON value, with None for NaN and infinities, which JSON does not know."""
    if isinstance(value, Mapping):
        return {key: finite_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def number_text(value: float | None, form: str = ".1f") -> str:
    """The number, or a dash where there is none."""
    return "–" if value is None else f"{value:{form}}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as lines with columns as wide as their widest cell: the first to the left, the others to the right."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        f"{row[0]:<{first}}" + "".join(f"{cell:>{width + 2}}" for cell, width in zip(row[1:], others, strict=True))
        for row in rows
    )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
