"""NegBench files are read, answered, and complained about by line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from lcse_plugins import LogicScorer, ScoringConfig
from lcse_plugins.bench.negbench import (
    Choice,
    choices_text,
    measure_choices,
    measure_recall,
    read_choices,
    read_retrieval_captions,
)
from lcse_plugins.errors import InvalidOption
from lcse_plugins.testing import ToyEncoder

HEADER = "correct_answer,caption_0,caption_1,caption_2,caption_3,correct_answer_template,image_path\n"


def test_the_published_columns_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mcq.csv"
    path.write_text(HEADER + '2.0,a dog,a cat,"a dog, but no cat",no dog,hybrid,val/1.jpg\n', encoding="utf-8")
    assert read_choices(path) == [Choice("val/1.jpg", ("a dog", "a cat", "a dog, but no cat", "no dog"), 2, "hybrid")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + "0,a,b,c,d,x,1.jpg\n4,a,b,c,d,x,1.jpg\n", "line 3: correct_answer is 0 to 3, not '4'"),
        (HEADER + "0,a,b\n", "line 2: not as many cells"),
        (HEADER + "0,a,b,c,d,x,1.jpg\n0,a, ,c,d,x,1.jpg\n", "line 3: a caption is blank"),
        (HEADER, "holds no questions"),
        ("caption_0,image_path\n", "lacks the columns correct_answer"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mcq.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidOption, match=said):
        read_choices(path)


def test_captions_come_as_json_as_python_or_alone(tmp_path: Path) -> None:
    texts = ["a dog 😀", 'it\'s "no" cat', "a / b"]
    path = tmp_path / "retrieval.csv"
    for written in (json.dumps(texts), repr(texts)):
        with open(path, "w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([["filepath", "captions"], ["1.jpg", written], ["2.jpg", "a cat"]])
        assert read_retrieval_captions(path) == [*(("1.jpg", text) for text in texts), ("2.jpg", "a cat")]
    path.write_text("image_path,caption\n1.jpg,[photo] a dog\n", encoding="utf-8")
    assert read_retrieval_captions(path) == [("1.jpg", "[photo] a dog")]


@pytest.mark.parametrize("cell", ['"[]"', '"[\'a dog"', '"[""a dog"", null]"', " "])
def test_captions_that_cannot_be_read_are_named_by_line(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "retrieval.csv"
    path.write_text(f"filepath,captions\n1.jpg,a dog\n2.jpg,{cell}\n", encoding="utf-8")
    with pytest.raises(InvalidOption, match="line 3"):
        read_retrieval_captions(path)


def test_a_file_without_captions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "retrieval.csv"
    with pytest.raises(InvalidOption, match="cannot read"):
        read_retrieval_captions(path)
    path.write_text("filepath,captions\n", encoding="utf-8")
    with pytest.raises(InvalidOption, match="holds no captions"):
        read_retrieval_captions(path)


def test_negation_is_answered_with_logic() -> None:
    encoder = ToyEncoder(dimension=128)
    images = ["dog bench", "cat bench", "dog cat"]
    rows = encoder.encode_images(images)
    vectors = dict(zip(images, rows, strict=True))
    choices = [
        Choice("dog bench", ("a dog and a cat", "a dog but no cat", "a cat but no dog", "no dog"), 1, "hybrid"),
        Choice("cat bench", ("a dog and a cat", "a dog but no cat", "a cat but no dog", "no cat"), 2, "hybrid"),
        Choice("dog cat", ("a dog and a cat", "no cat", "no dog", "neither a dog nor a cat"), 0, "positive"),
    ]
    logic = measure_choices(choices, LogicScorer(encoder), vectors)
    plain = measure_choices(choices, LogicScorer(encoder, config=ScoringConfig(mode="holistic")), vectors)
    assert logic == {"accuracy": 100.0, "per_kind": {"hybrid": 100.0, "positive": 100.0}, "questions": 3}
    assert plain["accuracy"] < 100.0
    captions = [(0, "a dog but no cat"), (1, "a cat but no dog")]
    recall = measure_recall(captions, LogicScorer(encoder), rows, depth=1)
    assert recall == 100.0
    table = choices_text({"choices": {"anchored": logic}, "recall_at_5": {"anchored": recall}})
    assert table.split() == "percent all hybrid positive R@5 anchored 100.0 100.0 100.0 100.0".split()
    with pytest.raises(InvalidOption, match="NaN"):
        measure_recall(captions, LogicScorer(encoder), np.full_like(rows, np.nan))
