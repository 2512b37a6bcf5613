"""Labelled images, read from CSV, COCO and JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcse_plugins.calibrating.labelled import LabelledImages, read_labels
from lcse_plugins.errors import LabelFileError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    for name in ("a.jpg", "b.jpg", "sub/c, d.jpg"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def assert_expected(read: LabelledImages, folder: Path) -> None:
    assert read.paths == tuple(folder / name for name in ("a.jpg", "b.jpg", "sub/c, d.jpg"))
    assert read.classes == ("cat", "dog", "red umbrella")
    np.testing.assert_array_equal(read.labels, [[True, False, True], [False, False, False], [False, True, False]])


def test_csv_with_either_separator(folder: Path) -> None:
    text = '\ufeffPath,photographer,labels\na.jpg,me,cat; red umbrella;\nb.jpg,me,\n\n"sub/c, d.jpg",me,dog|dog\n'
    assert_expected(read_labels(write(folder / "labels.csv", text)), folder)


def test_json_lines_with_lists_or_counts(folder: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"file": "a.jpg", "classes": {"cat": 2, "red umbrella": 1, "dog": 0}, "id": 1},
        {"file": "b.jpg", "classes": {}},
        {"file": "sub/c, d.jpg", "classes": ["", " dog", "dog"]},
    ]
    text = "\n\n".join(json.dumps(line) for line in lines)
    assert_expected(read_labels(write(folder / "labels.jsonl", text)), folder)


def coco() -> dict[str, Any]:
    names = enumerate(("a.jpg", "b.jpg", "sub/c, d.jpg"), start=10)
    return {
        "images": [{"id": n, "file_name": name} for n, name in names],
        "categories": [{"id": 1, "name": "cat"}, {"id": 17, "name": "dog"}, {"id": 3, "name": "red  umbrella "}],
        "annotations": [
            {"image_id": 10, "category_id": 1, "bbox": [0, 0, 1, 1]},
            {"image_id": 10, "category_id": 3},
            {"image_id": 12, "category_id": 17},
            {"image_id": 12, "category_id": 17, "iscrowd": 1},
        ],
    }


def test_coco_instances_with_pictures_elsewhere(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write(tmp_path_factory.mktemp("annotations") / "instances.json", json.dumps(coco()))
    assert_expected(read_labels(path, images=folder), folder)


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("l.csv", "a.jpg,cat\n", 1, "names the columns path and labels"),
        ("l.csv", "path,labels\n", None, "lists no pictures"),
        ("l.csv", "path,labels\na.jpg,cat\nb.jpg,cat,dog\n", 3, "3 cells under 2 columns; separate labels by ; or |"),
        ("l.csv", "path,labels\n ,cat\n", 2, "the path is empty"),
        ("l.csv", "path,labels\na.jpg,cat\n\na.jpg,dog\n", 4, "a.jpg is listed twice"),
        ("l.csv", 'path,labels\na.jpg,"cat" x\n', 2, "not a CSV line"),
        ("l.csv", "path,labels\na.jpg,cat\nx.jpg,dog\ny.jpg,dog\n", None, "2 of 3 pictures are not there"),
        ("l.jsonl", '{"file": "a.jpg", "classes": []}\n{"file": \n', 2, "not JSON"),
        ("l.jsonl", '["a.jpg"]\n', 1, 'each line is an object with a "file"'),
        ("l.jsonl", '{"file": "a.jpg"}\n', 1, '"classes" is a list of names'),
        ("l.json", "[]", None, "is not a COCO instances file"),
        ("l.json", '{"images": [{"id": 1}], "annotations": [], "categories": []}', None, "KeyError: 'file_name'"),
        ("l.jsonl", '{"file": "a.jpg", "classes": {"dog": "0"}}\n', 1, "maps names to counts"),
        ("l.json", "[" * 100_000, None, "is not a COCO instances file"),
        ("l.jsonl", '{"file": "a.jpg", "classes": ["\\ud83d"]}\n', 1, "cannot name a class"),
        ("l.txt", "a.jpg cat", None, "labels are read from .csv, .json, .jsonl files"),
    ],
)
def test_bad_files_say_where_and_what(folder: Path, name: str, text: str, line: int | None, reason: str) -> None:
    with pytest.raises(LabelFileError) as caught:
        read_labels(write(folder / name, text))
    assert reason in str(caught.value)
    assert caught.value.line == line
    assert caught.value.path == str(folder / name)
    assert (f", line {line}:" in str(caught.value)) == (line is not None)


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl"])
def test_files_that_are_absent_or_no_text(folder: Path, suffix: str) -> None:
    with pytest.raises(LabelFileError, match="cannot be read"):
        read_labels(folder / f"absent.{suffix}")
    (folder / f"latin.{suffix}").write_bytes(b"path,labels\na.jpg,caf\xe9\n")
    with pytest.raises(LabelFileError, match="is not UTF-8 text"):
        read_labels(folder / f"latin.{suffix}")


@pytest.mark.parametrize(
    ("kind", "entry", "said"),
    [
        ("categories", {"id": 4, "name": " "}, "' ' cannot name a class"),
        ("categories", {"id": 4, "name": None}, "is not a COCO instances file"),
        ("categories", {"id": 4, "name": "x" * 100_000}, "'xxx.* cannot name a class: .* characters"),
        ("annotations", {"image_id": 99, "category_id": 1}, "is not a COCO instances file .KeyError: 99"),
    ],
)
def test_bad_coco_entries_are_refused(folder: Path, kind: str, entry: dict[str, Any], said: str) -> None:
    data = coco()
    data[kind].append(entry)
    with pytest.raises(LabelFileError, match=f"i.json: {said}"):
        read_labels(write(folder / "i.json", json.dumps(data)))
