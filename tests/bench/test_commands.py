"""`lcse bench …` from end to end, with the shipped encoder and pictures made here."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result
from PIL import Image, ImageDraw

from benchmarks.build_factor import main as build_factor
from benchmarks.tables import filled
from lcse_plugins.bench.cli import bench
from lcse_plugins.bench.reports import read_result, write_result
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
    (folder / "photos.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, ["bench", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_retrieval_is_measured_and_kept(gallery: Path, tmp_path: Path) -> None:
    result = run("retrieval", gallery / "photos.jsonl", "--pairs", 3, "--out", tmp_path, "--json", "--cache", tmp_path)
    data = json.loads(result.stdout)
    assert data["images"] == 56
    kept = read_result(tmp_path / "retrieval.json")
    assert kept["result"]["rows"] == data["rows"]
    assert kept["versions"]["numpy"]
    assert kept["encoder"].startswith("starter@")
    assert (tmp_path / "retrieval.csv").read_text().startswith("ranker,operator,p_at_10")
    low, high = data["leads"]["holistic"]["precision_interval"]
    assert low <= data["leads"]["holistic"]["precision"] <= high
    page = "<!-- table: retrieval; anchored -->\nold\n<!-- end table -->\n"
    page += "<!-- table: retrieval-leads -->\n<!-- end table -->"
    once = filled(page, tmp_path)
    assert "old" not in once
    assert "| anchored | " in once
    assert "| subtraction | " in once
    assert filled(once, tmp_path) == once
    with pytest.raises(InvalidOption, match="factor"):
        filled("<!-- table: factor -->\n<!-- end table -->", tmp_path)


def test_the_kept_command_can_be_typed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["bench", "factor", "my file.jsonl", "--encoder", "starter?folder=x"]
    monkeypatch.setattr("sys.argv", ["/bin/lcse", *given])
    kept = read_result(write_result(tmp_path, "x", {}))["command"]
    assert shlex.split(kept) == ["lcse", *given]


def test_retention_and_negbench(gallery: Path, tmp_path: Path) -> None:
    data = json.loads(run("retention", gallery / "photos.jsonl", "--limit", 20, "--json").stdout)
    assert data["correlation"]["anchored"] == pytest.approx(1.0)
    assert data["calibration"]["mu"] == pytest.approx(0.2)
    mcq, found = tmp_path / "mcq.csv", tmp_path / "retrieval.csv"
    mcq.write_text(
        "correct_answer,caption_0,caption_1,caption_2,caption_3,correct_answer_template,image_path\n"
        + "".join(
            f"0,no red square,a red square,a green square,a blue square,negative,{n}-{copy}.png\n"
            for n in (0, 1)
            for copy in range(7)
        ),
        encoding="utf-8",
    )
    found.write_text("filepath,captions\n1-0.png,a blue square but no red square\n", encoding="utf-8")
    data = json.loads(run("negbench", mcq, "--images", gallery, "--retrieval", found, "--json").stdout)
    assert set(data["recall_at_5"]) == set(data["choices"])
    assert set(data["recall_at_5"].values()) == {100.0}, "one image is searched; those of the questions are not"
    found.write_text("filepath,captions\n", encoding="utf-8")
    with pytest.raises(InvalidOption, match="holds no captions"):
        run("negbench", mcq, "--images", gallery, "--retrieval", found)


def test_mistakes_are_told(gallery: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    alone = runner.invoke(cli, ["bench", "retrieval", str(gallery / "photos.jsonl"), "--mu", "0.2"])
    assert alone.exit_code == 2
    assert "--mu and --beta go together" in alone.output
    with pytest.raises(InvalidOption, match="cannot read"):
        runner.invoke(cli, ["bench", "factor", str(tmp_path / "x"), "--images", "."], catch_exceptions=False)


@pytest.mark.parametrize("command", ["retrieval", "diagnose"])
def test_a_half_without_pictures_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "2.jpg").write_bytes(b"in half A")
    (tmp_path / "l.jsonl").write_text('{"file": "2.jpg", "classes": ["dog"]}\n', encoding="utf-8")
    with pytest.raises(InvalidOption, match=r"half B of l\.jsonl holds no pictures"):
        run(*command.split(), "l.jsonl", "--half", "B")


def test_what_is_not_a_number_is_null(tmp_path: Path) -> None:
    path = write_result(tmp_path, "x", {"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": 2}}, command="x")
    assert "NaN" not in path.read_text()
    assert read_result(path)["result"] == {"a": None, "b": [None, 1.5], "c": {"d": 2}}


def test_a_readme_table_may_show_some_rows(tmp_path: Path) -> None:
    rows = [
        {"ranker": ranker, "operator": "mean", "p_at_10": 70.0, "auc": 91.0, "violations": 1.0}
        for ranker in ("lcse", "factored", "anchored, 6 views")
    ]
    write_result(tmp_path, "retrieval", {"questions": {}, "rows": rows}, command="lcse bench retrieval x")
    text = filled("<!-- table: retrieval; anchored, 6 views; lcse -->\n<!-- end table -->", tmp_path)
    assert [line.split("|")[1].strip() for line in text.splitlines()[3:5]] == ["anchored, 6 views", "lcse"]
    assert "factored" not in text
    assert "lcse bench retrieval x" in text
    with pytest.raises(InvalidOption, match="'routed'"):
        filled("<!-- table: retrieval; routed -->\n<!-- end table -->", tmp_path)


@pytest.mark.parametrize("name", sorted(bench.commands))
def test_every_command_has_json_and_an_example(name: str) -> None:
    text = run(name, "--help").output
    assert "--json" in text
    assert f"Example: lcse bench {name} " in text


def test_a_benchmark_is_built_and_run(gallery: Path, tmp_path: Path) -> None:
    file = tmp_path / "factor.jsonl"
    built = CliRunner().invoke(build_factor, [str(gallery / "photos.jsonl"), "-o", str(file)], catch_exceptions=False)
    assert "wrote" in built.output
    data = json.loads(run("factor", file, "--images", gallery, "--json", "--limit", 30).stdout)
    assert data["official"] is False
    assert {"holistic", "lcse", "anchored"} <= set(data["modes"])
    text = run("factor", file, "--images", gallery, "--parses", "own", "--mu", 0.2, "--beta", 6, "--limit", 12).output
    assert "12 of" in text


def test_factor_with_a_checkpoint_of_open_clip(gallery: Path, tmp_path: Path, open_clip: ModuleType) -> None:
    """The command of the docs for CLIP, on a small model of random weights."""
    import torch

    tower = {"layers": 1, "width": 32}
    vision = {**tower, "image_size": 32, "patch_size": 16, "head_width": 16}
    text = {**tower, "context_length": 24, "vocab_size": 49_408, "heads": 2}
    (tmp_path / "random-clip.json").write_text(json.dumps({"embed_dim": 16, "vision_cfg": vision, "text_cfg": text}))
    open_clip.add_model_config(tmp_path)
    torch.save(open_clip.create_model("random-clip").state_dict(), tmp_path / "random.pt")
    file = tmp_path / "factor.jsonl"
    CliRunner().invoke(build_factor, [str(gallery / "photos.jsonl"), "-o", str(file)], catch_exceptions=False)
    encoder = f"open_clip:random-clip?checkpoint={tmp_path / 'random.pt'}"
    data = json.loads(run("factor", file, "--images", gallery, "--encoder", encoder, "--limit", 20, "--json").stdout)
    assert data["calibration"]["mu"] == pytest.approx(0.22), "CLIP's preset"
    assert {"holistic", "lcse", "anchored"} <= set(data["modes"])
    assert all(0 <= mode["overall"] <= 100 for mode in data["modes"].values() if mode["overall"] is not None)


def test_analysis_is_told(gallery: Path) -> None:
    assert "it needs at least 50 images" in run("calibrate", gallery / "photos.jsonl", "--limit", 40).output
    assert "polarity_auc" in json.loads(run("diagnose", gallery / "photos.jsonl", "--json").stdout)


def test_shown_percentages_are_compared_with_labels(gallery: Path) -> None:
    bands = json.loads(run("reliability", gallery / "photos.jsonl", "--json").stdout)["bands"]
    assert sum(band["cases"] for band in bands) == 56 * 3
    assert all(band["low"] <= band["shown"] <= band["high"] for band in bands if band["cases"])
    with pytest.raises(CalibrationError, match="presence curve"):
        run("reliability", gallery / "photos.jsonl", "--mu", 0.2, "--beta", 6)
