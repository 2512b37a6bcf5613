"""Labelled images for calibration: which pictures show which classes, read from the files people have."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.errors import LabelFileError, QueryError
from lcse_plugins.query import Concept

__all__ = ["LabelledImages", "read_labels"]

Rows: TypeAlias = Iterator[tuple[int | None, str, Iterable[str]]]
"""Line, picture and its labels."""


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Pictures and what they show.

    Attributes:
        paths: one per picture.
        labels: (n_images, n_classes) True where the picture shows the class; what is not listed is not shown.
        classes: one name per column, written as a `Concept` of it reads.
    """

    paths: tuple[Path, ...]
    labels: NDArray[np.bool_]
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.paths)


def read_labels(path: str | Path, *, images: str | Path | None = None) -> LabelledImages:
    """Read a file of labelled images; its suffix says which kind it is.

    - `.csv`: a header with the columns `path` and `labels`, labels separated by `;` or `|`; no label is allowed.
    - `.json`: COCO instances, with `images`, `annotations` and `categories`.
    - `.jsonl`: one `{"file": name, "classes": [name, …]}` a line; `classes` may also map each name to its count.

    Args:
        path: the file.
        images: the folder that relative picture paths start from; the file's own folder by default.

    Raises:
        LabelFileError: the file or one of its lines cannot be used, or a picture is not where it says.
    """
    path = Path(path)
    readers = {".csv": _read_csv, ".json": _read_coco, ".jsonl": _read_jsonl}
    if path.suffix.lower() not in readers:
        raise LabelFileError(path, f"labels are read from {', '.join(readers)} files")
    root = path.parent if images is None else Path(images)
    shown: dict[Path, set[str]] = {}
    try:
        text = path.read_text(encoding="utf-8-sig")
        classes, rows = readers[path.suffix.lower()](path, text)
        for line, name, labels in rows:
            if root / name in shown:
                raise LabelFileError(path, f"{name} is listed twice", line=line)
            shown[root / name] = {_class_name(path, label, line) for label in labels if label.strip()}
    except OSError as error:
        raise LabelFileError(path, f"cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise LabelFileError(path, "is not UTF-8 text") from error
    if not shown:
        raise LabelFileError(path, "lists no pictures")
    if missing := [picture for picture in shown if not os.path.isfile(picture)]:
        reason = f"{len(missing)} of {len(shown)} pictures are not there, the first is {missing[0]}"
        raise LabelFileError(path, f"{reason}; name the folder they are in as images, --images on the command line")
    names = list(dict.fromkeys(classes)) or sorted({label for labels in shown.values() for label in labels})
    table = np.array([[name in labels for name in names] for labels in shown.values()], dtype=np.bool_)
    return LabelledImages(paths=tuple(shown), labels=table.reshape(len(shown), len(names)), classes=tuple(names))


def _read_csv(path: Path, text: str) -> tuple[Iterable[str], Rows]:
    def rows() -> Rows:
        reader = csv.reader(io.StringIO(text), strict=True)
        try:
            header = [name.strip().lower() for name in next(reader, [])]
            if not {"path", "labels"} <= set(header):
                raise LabelFileError(path, f"the first line names the columns path and labels, not {header}", line=1)
            for cells in filter(None, reader):
                if len(cells) != len(header):
                    reason = f"{len(cells)} cells under {len(header)} columns; separate labels by ; or |"
                    raise LabelFileError(path, reason, line=reader.line_num)
                picture = cells[header.index("path")].strip()
                if not picture:
                    raise LabelFileError(path, "the path is empty", line=reader.line_num)
                yield reader.line_num, picture, re.split(r"[;|]", cells[header.index("labels")])
        except csv.Error as error:
            raise LabelFileError(path, f"not a CSV line ({error})", line=reader.line_num) from error

    return (), rows()


def _read_jsonl(path: Path, text: str) -> tuple[Iterable[str], Rows]:
    def rows() -> Rows:
        for line, content in enumerate(text.split("\n"), start=1):
            if not content.strip():
                continue
            try:
                entry = json.loads(content)
            except (ValueError, RecursionError) as error:
                raise LabelFileError(path, f"not JSON ({error})", line=line) from error
            match entry:
                case {"file": str(name), "classes": [*labels]} if name and all(isinstance(n, str) for n in labels):
                    yield line, name, labels
                case {"file": str(name), "classes": {**counts}} if name and all(
                    isinstance(n, int | float) for n in counts.values()
                ):
                    yield line, name, [str(label) for label, count in counts.items() if count]
                case {"file": str(name)} if name:
                    raise LabelFileError(path, '"classes" is a list of names, or maps names to counts', line=line)
                case _:
                    raise LabelFileError(path, 'each line is an object with a "file"', line=line)

    return (), rows()


def _read_coco(path: Path, text: str) -> tuple[Iterable[str], Rows]:
    try:
        data: Any = json.loads(text)
        pictures = {entry["id"]: str(entry["file_name"]) for entry in data["images"]}
        categories = {entry["id"]: _class_name(path, entry["name"]) for entry in data["categories"]}
        shown: dict[Any, set[str]] = {key: set() for key in pictures}
        for entry in data["annotations"]:
            shown[entry["image_id"]].add(categories[entry["category_id"]])
    except LabelFileError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise LabelFileError(path, f"is not a COCO instances file ({type(error).__name__}: {error})") from error
    return categories.values(), ((None, pictures[key], labels) for key, labels in shown.items())


def _class_name(path: Path, name: str, line: int | None = None) -> str:
    """The name as queries have it: a blank between words, and none around them."""
    try:
        return Concept(name).text
    except QueryError as error:
        raise LabelFileError(path, f"{name[:80]!r} cannot name a class: {error}", line=line) from error
