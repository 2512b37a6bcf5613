"""Labelled images for calibration: which pictures show which classes, read from the files people have."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lcse_plugins.errors import LabelFileError, QueryError
from lcse_plugins.query import Concept

__all__ = ["LabelledImages", "names_by_id", "read_labels"]

Rows: TypeAlias = Iterator[tuple[int | None, str, Collection[str]]]
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
    shown: dict[Path, Collection[str]] = {}
    try:
        classes, rows = readers[path.suffix.lower()](path)
        for line, name, labels in rows:
            picture = root / name
            if picture in shown:
                raise LabelFileError(path, f"{name} is listed twice", line=line)
            shown[picture] = labels
    except OSError as error:
        raise LabelFileError(path, f"cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise LabelFileError(path, "is not UTF-8 text") from error
    _check_pictures(path, list(shown))
    return _table(shown, classes or tuple(sorted({label for labels in shown.values() for label in labels})))


def _read_csv(path: Path) -> tuple[Sequence[str] | None, Rows]:
    def rows() -> Rows:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, strict=True)
            try:
                header = [name.strip().lower() for name in next(reader, [])]
                if not {"path", "labels"} <= set(header):
                    raise LabelFileError(
                        path, f"the first line names the columns path and labels, not {header}", line=1
                    )
                where, what = header.index("path"), header.index("labels")
                for cells in filter(None, reader):
                    if len(cells) != len(header):
                        reason = f"{len(cells)} cells under {len(header)} columns; separate labels by ; or |"
                        raise LabelFileError(path, reason, line=reader.line_num)
                    if not cells[where].strip():
                        raise LabelFileError(path, "the path is empty", line=reader.line_num)
                    labels = _class_names(path, re.split(r"[;|]", cells[what]), line=reader.line_num)
                    yield reader.line_num, cells[where].strip(), labels
            except csv.Error as error:
                raise LabelFileError(path, f"not a CSV line ({error})", line=reader.line_num) from error

    return None, rows()


def _read_jsonl(path: Path) -> tuple[Sequence[str] | None, Rows]:
    def rows() -> Rows:
        with open(path, encoding="utf-8-sig") as stream:
            for line, text in enumerate(stream, start=1):
                if not text.strip():
                    continue
                try:
                    entry = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise LabelFileError(path, f"not JSON ({error})", line=line) from error
                name, classes = (entry.get("file"), entry.get("classes")) if isinstance(entry, dict) else (None, None)
                if not isinstance(name, str) or not name:
                    raise LabelFileError(path, 'each line is an object with a "file"', line=line)
                if isinstance(classes, Mapping) and all(isinstance(n, int | float) for n in classes.values()):
                    classes = [label for label, count in classes.items() if count]
                if not isinstance(classes, list) or not all(isinstance(label, str) for label in classes):
                    reason = '"classes" is a list of names, or maps names to counts'
                    raise LabelFileError(path, reason, line=line)
                yield line, name, _class_names(path, classes, line=line)

    return None, rows()


def _read_coco(path: Path) -> tuple[Sequence[str] | None, Rows]:
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8-sig"))
        names = names_by_id(path, "image", data["images"], "file_name")
        named = names_by_id(path, "category", data["categories"], "name")
        categories = {key: _class_name(path, name) for key, name in named.items()}
        shown: dict[Any, set[str]] = {key: set() for key in names}
        for number, entry in enumerate(data["annotations"]):
            if entry["image_id"] not in shown or entry["category_id"] not in categories:
                raise LabelFileError(path, f"annotation {number} is of an image or a category that is not listed")
            shown[entry["image_id"]].add(categories[entry["category_id"]])
    except UnicodeDecodeError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, LabelFileError):
            raise
        raise LabelFileError(path, f"is not a COCO instances file ({type(error).__name__}: {error})") from error
    return tuple(dict.fromkeys(categories.values())), ((None, names[key], labels) for key, labels in shown.items())


def names_by_id(path: Path, kind: str, entries: Iterable[Mapping[str, Any]], field: str) -> dict[Any, str]:
    """The names in a table of a COCO file, by id.

    Raises:
        LabelFileError: two entries have one id, so that nobody can tell which is meant, or one has no name.
    """
    names: dict[Any, str] = {}
    for entry in entries:
        if entry["id"] in names:
            raise LabelFileError(path, f"{kind} id {entry['id']!r} is listed twice; give each its own")
        if not isinstance(entry[field], str) or not entry[field].strip():
            raise LabelFileError(path, f"{kind} id {entry['id']!r} has no {field}; give each a text")
        names[entry["id"]] = entry[field]
    return names


def _class_names(path: Path, labels: Iterable[str], *, line: int) -> set[str]:
    return {_class_name(path, label, line=line) for label in labels if label.strip()}


def _class_name(path: Path, name: str, *, line: int | None = None) -> str:
    """The name as queries have it: a blank between words, and none around them."""
    try:
        return Concept(name).text
    except QueryError as error:
        raise LabelFileError(path, f"{name[:80]!r} cannot name a class: {error}", line=line) from error


def _check_pictures(path: Path, pictures: Sequence[Path]) -> None:
    if not pictures:
        raise LabelFileError(path, "lists no pictures")
    missing = [picture for picture in pictures if not os.path.isfile(picture)]
    if missing:
        raise LabelFileError(
            path,
            f"{len(missing)} of {len(pictures)} pictures are not there, the first is {missing[0]}; "
            "name the folder they are in as images, --images on the command line",
        )


def _table(shown: Mapping[Path, Collection[str]], classes: Sequence[str]) -> LabelledImages:
    column = {name: n for n, name in enumerate(classes)}
    labels = np.zeros((len(shown), len(classes)), dtype=np.bool_)
    for row, names in enumerate(shown.values()):
        labels[row, [column[name] for name in names]] = True
    labels.flags.writeable = False
    return LabelledImages(paths=tuple(shown), labels=labels, classes=tuple(classes))
