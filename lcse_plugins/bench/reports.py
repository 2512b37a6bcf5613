"""Results on disk: what was measured, by which command, with which versions, on which day."""

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

__all__ = ["command_line", "finite_json", "read_result", "versions", "write_result"]

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
        "command": command or command_line(),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": versions(),
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


def finite_json(value: Any) -> Any:
    """The same JSON value, with None for NaN and infinities, which JSON does not know."""
    if isinstance(value, Mapping):
        return {key: finite_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_result(path: str | Path) -> dict[str, Any]:
    """The record that `write_result` wrote.

    Raises:
        InvalidOption: the file is missing, or is not a benchmark result.
    """
    try:
        record: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        record["result"], record["command"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidOption(f"{path} is no result of a benchmark: {error!r}") from error
    return record


def command_line() -> str:
    """The command that runs, as a person would type it."""
    return shlex.join(["lcse", *sys.argv[1:]])


def versions() -> dict[str, str]:
    """Python and the packages that figures depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
