"""`lcse bench …` from end to end, with the shipped encoder and pictures made here."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result
from PIL import Image, ImageDraw

from benchmarks.build_factor import build_factor
from benchmarks.tables import filled
from lcse_plugins.bench.cli import bench
from lcse_plugins.bench.factor import write_factor
from lcse_plugins.calibrating.labelled import read_labels
from lcse_plugins.cli.main import cli
from lcse_plugins.errors import CalibrationError, InvalidOption

COLOURS = {"red square": (220, 30, 30), "green square": (30, 180, 60), "blue square": (40, 60, 220)}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of coloured squares, with labels and captions; every combination of squares, several times."""
    folder = tmp_path_factory.mktemp("gallery")
    rows = []
    for number, shown in enumerate(itertools.product([False, True], repeat=3)):
        names = [name for name, there in zip(COLOURS, shown, strict=True) if there]
        for copy in range(7):
            image = Image.new("RGB", (96, 96), (200 + copy, 200, 190))
            for place, name in enumerate(names):
                ImageDraw.Draw(image).rectangle([8 + 30 * place, 20 + copy, 32 + 30 * place, 60], fill=COLOURS[name])
            file = folder / f"{number}-{copy}.png"
            image.save(file)
            caption = " next to ".join(f"a {name}" for name in names) or "an empty wall"
            rows.append({"file": file.name, "classes": names, "captions": [caption]})
    labels = folder / "photos.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    write_factor(build_factor(read_labels(labels)), folder / "factor.jsonl")
    return folder


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, ["bench", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_figures_are_kept_with_their_command_and_fill_the_docs(
    gallery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/bin/lcse", "bench", "retrieval", "my photos.jsonl"])
    options = ("--pairs", 3, "--out", tmp_path, "--cache", tmp_path, "--json")
    data = json.loads(run("retrieval", gallery / "photos.jsonl", *options).stdout)
    assert data["images"] == 56
    kept = json.loads((tmp_path / "retrieval.json").read_text(encoding="utf-8"))
    assert kept["result"] == data
    assert kept["command"] == "lcse bench retrieval 'my photos.jsonl'"
    assert kept["versions"]["numpy"]
    assert kept["encoder"].startswith("starter@")
    page = "<!-- table: retrieval -->\nold\n<!-- end table -->\n<!-- table: retrieval-leads -->\n<!-- end table -->"
    once = filled(page, tmp_path)
    assert "old" not in once
    assert "| P@10 / AUC, % | NOT |" in once
    assert "| lead of `anchored` over |" in once
    assert filled(once, tmp_path) == once


@pytest.mark.parametrize("name", sorted(bench.commands))
def test_every_command_has_json_and_an_example(name: str) -> None:
    text = run(name, "--help").output
    assert "--json" in text
    assert f"Example: lcse bench {name} " in text


def test_factor(gallery: Path) -> None:
    data = json.loads(run("factor", gallery / "factor.jsonl", "--images", gallery, "--json", "--limit", 30).stdout)
    assert data["official"] is False
    assert {"holistic", "lcse", "anchored"} <= set(data["modes"])
    assert data["modes"]["lcse"]["samples"] == 30
    options = ("--parses", "own", "--mu", 0.2, "--beta", 6, "--limit", 12)
    assert "12 samples" in run("factor", gallery / "factor.jsonl", "--images", gallery, *options).output


def test_factor_with_a_checkpoint_of_open_clip(gallery: Path, tmp_path: Path, open_clip: ModuleType) -> None:
    """The command of the docs for CLIP, on a small model of random weights."""
    import torch

    tower = {"layers": 1, "width": 32}
    vision = {**tower, "image_size": 32, "patch_size": 16, "head_width": 16}
    text = {**tower, "context_length": 24, "vocab_size": 49_408, "heads": 2}
    (tmp_path / "random-clip.json").write_text(json.dumps({"embed_dim": 16, "vision_cfg": vision, "text_cfg": text}))
    open_clip.add_model_config(tmp_path)
    torch.save(open_clip.create_model("random-clip").state_dict(), tmp_path / "random.pt")
    encoder = f"open_clip:random-clip?checkpoint={tmp_path / 'random.pt'}"
    options = ("--images", gallery, "--encoder", encoder, "--limit", 20, "--json")
    data = json.loads(run("factor", gallery / "factor.jsonl", *options).stdout)
    assert data["calibration"]["mu"] == pytest.approx(0.22), "CLIP's preset"
    assert all(0 <= mode["overall"] <= 100 for mode in data["modes"].values())


def test_negbench(gallery: Path, tmp_path: Path) -> None:
    mcq, found = tmp_path / "mcq.csv", tmp_path / "retrieval.csv"
    question = "0,no red square,a red square,a green square,a blue square,negative"
    mcq.write_text(
        "correct_answer,caption_0,caption_1,caption_2,caption_3,correct_answer_template,image_path\n"
        + "".join(f"{question},{n}-{copy}.png\n" for n in (0, 1) for copy in range(3)),
        encoding="utf-8",
    )
    found.write_text("filepath,captions\n1-0.png,a blue square but no red square\n", encoding="utf-8")
    data = json.loads(run("negbench", mcq, "--images", gallery, "--retrieval", found, "--json").stdout)
    assert set(data["recall_at_5"]) == set(data["choices"])
    assert set(data["recall_at_5"].values()) == {100.0}, "one image is searched; those of the questions are not"


def test_retention_calibrate_diagnose_and_reliability(gallery: Path) -> None:
    labels = gallery / "photos.jsonl"
    data = json.loads(run("retention", labels, "--limit", 20, "--json").stdout)
    assert data["correlation"]["anchored"] == pytest.approx(1.0)
    assert data["calibration"]["mu"] == pytest.approx(0.2)
    assert "it needs at least 50 images" in run("calibrate", labels, "--limit", 40).output
    assert "polarity_auc" in json.loads(run("diagnose", labels, "--json").stdout)
    bands = json.loads(run("reliability", labels, "--json").stdout)["bands"]
    assert sum(band["cases"] for band in bands) == 56 * 3
    assert all(band["low"] <= band["shown"] <= band["high"] for band in bands if band["cases"])
    with pytest.raises(CalibrationError, match="presence curve"):
        run("reliability", labels, "--mu", 0.2, "--beta", 6)


def test_mistakes_are_told(gallery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    alone = CliRunner().invoke(cli, ["bench", "retrieval", str(gallery / "photos.jsonl"), "--mu", "0.2"])
    assert alone.exit_code == 2
    assert "give --calibration, or --mu and --beta" in alone.output
    missing = CliRunner().invoke(cli, ["bench", "factor", "x.jsonl", "--images", "."])
    assert missing.exit_code == 2
    assert "'x.jsonl' does not exist" in missing.output
    Path("2.jpg").write_bytes(b"in half A")
    Path("l.jsonl").write_text('{"file": "2.jpg", "classes": ["dog"]}\n', encoding="utf-8")
    with pytest.raises(InvalidOption, match=r"half B of l\.jsonl holds no pictures"):
        run("retrieval", "l.jsonl", "--half", "B")
