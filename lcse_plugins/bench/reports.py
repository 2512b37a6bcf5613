"""What benchmarks print and keep: tables of text, and a record with the command that makes the figures again."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

__all__ = ["Rows", "aligned", "number_text", "write_record"]

Rows: TypeAlias = list[list[str]]
"""A table: its heading, then a row for each line. The terminal and the docs show the same one."""

_PACKAGES = ("lcse-plugins", "numpy", "onnxruntime", "open_clip_torch", "qdrant-client")


def write_record(folder: Path, name: str, result: Mapping[str, Any], *, encoder_id: str) -> Path:
    """Write `name.json`: the figures with their command, date, versions and encoder."""
    folder.mkdir(parents=True, exist_ok=True)
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    record = {
        "name": name,
        "command": shlex.join(["lcse", *sys.argv[1:]]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": versions,
        "encoder": encoder_id,
        "result": result,
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


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
