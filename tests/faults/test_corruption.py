"""Corrupted indexes: either an error, or the right answer; and the next run mends what it can."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lcse_plugins.errors import IndexFileError
from lcse_plugins.index import ImageIndex
from lcse_plugins.scorer import LogicScorer
from tests.index.test_index import ColourEncoder, write_pictures

QUERIES = ("red and not green", "blue", "red or blue")


def answers(path: Path) -> str:
    """What an index answers, as JSON without NaN."""
    scorer, index = LogicScorer(ColourEncoder()), ImageIndex.open(path)
    rankings = [scorer.search(query, index, limit=9) for query in QUERIES]
    found = [[(r.id, str(r.candidate.payload), r.score, r.truth) for r in ranking] for ranking in rankings]
    return json.dumps([found, [ranking.to_json() for ranking in rankings]], allow_nan=False)


def corrupt(path: Path, rng: np.random.Generator) -> str:
    """Harm a file in one of the ways disks and programs do."""
    data = bytearray(path.read_bytes())
    kind = rng.choice(["bit", "bits", "zeros", "noise", "ones", "cut", "grow", "swap"])
    start = int(rng.integers(0, len(data)))
    end = min(len(data), start + int(rng.integers(1, 600)))
    match kind:
        case "bit":
            data[start] ^= 1 << int(rng.integers(0, 8))
        case "bits":
            for place in rng.integers(0, len(data), 20):
                data[place] ^= 1 << int(rng.integers(0, 8))
        case "zeros":
            data[start:end] = bytes(end - start)
        case "noise":
            data[start:end] = rng.bytes(end - start)
        case "ones":  # read as numbers, these are NaN
            data[start:end] = b"\xff" * (end - start)
        case "cut":
            del data[start:]
        case "grow":
            data += rng.bytes(end - start)
        case "swap":
            half = len(data) // 2
            data = data[half:] + data[:half]
    path.write_bytes(data)
    return f"{path.name} {kind}"


@pytest.mark.parametrize("kind", ["few", pytest.param("many", marks=pytest.mark.faults(rounds=600))])
def test_no_corruption_of_an_index_is_served(kind: str, tmp_path: Path, seed: int, rounds: int) -> None:
    rng, outcomes = np.random.default_rng(seed), Counter[str]()
    photos = write_pictures(tmp_path / "photos", 23)
    ImageIndex.build(photos, tmp_path / "sound", encoder=ColourEncoder())
    truth = answers(tmp_path / "sound")
    for n in range(rounds):
        out = Path(shutil.copytree(tmp_path / "sound", tmp_path / "idx"))
        files = [next(out.glob("vectors-*.bin")), out / "index.sqlite"]
        harm = corrupt(files[n % 2], rng)
        try:
            assert answers(out) == truth, f"a wrong answer after round {n}: {harm}"
            outcomes["right answer"] += 1
        except IndexFileError:
            outcomes["told"] += 1
        try:
            ImageIndex.build(photos, out, encoder=ColourEncoder())
            assert answers(out) == truth, f"not mended after round {n}: {harm}"
            outcomes["mended"] += 1
        except IndexFileError:
            if n % 2 == 0:  # the file of vectors alone was harmed
                pytest.fail(f"not mended after round {n}: {harm}")
            outcomes["to be deleted"] += 1
        shutil.rmtree(out)
    print(dict(outcomes))
    assert outcomes["mended"] >= rounds // 2
