"""`lcse bench …` from end to end, with the shipped encoder and pictures made here."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image, ImageDraw

from lcse_plugins import Concept, Query, canonical, parse
from lcse_plugins.bench.cli import COMMANDS
from lcse_plugins.bench.qdrant_queries import OPERATORS, worded
from lcse_plugins.bench.readme_tables import filled, readme_tables
from lcse_plugins.bench.reports import read_result, write_result
from lcse_plugins.cli.main import cli
from lcse_plugins.errors import ImageError, InvalidOption
from tests.bench.test_factor import LINE

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


def test_the_family_is_listed() -> None:
    text = run("--help").output
    for name in ("retrieval", "factor", "factor-build", "negbench", "retention", "calibrate", "diagnose", "timing"):
        assert name in text


def test_retrieval_is_measured_and_kept(gallery: Path, tmp_path: Path) -> None:
    result = run("retrieval", gallery / "photos.jsonl", "--pairs", 3, "--out", tmp_path, "--json", "--cache", tmp_path)
    data = json.loads(result.stdout)
    assert data["images"] == 56
    kept = read_result(tmp_path / "retrieval.json")
    assert kept["result"]["rows"] == data["rows"]
    assert kept["versions"]["numpy"]
    assert kept["encoder"].startswith("starter@")
    assert (tmp_path / "retrieval.csv").read_text().startswith("ranker,operator,p_at_10")
    assert "| anchored |" in readme_tables(tmp_path)["retrieval"]


def test_a_benchmark_is_built_and_run(gallery: Path, tmp_path: Path) -> None:
    file = tmp_path / "factor.jsonl"
    run("factor-build", gallery / "photos.jsonl", "-o", file, "--limit", 6)
    data = json.loads(run("factor", file, "--images", gallery, "--json", "--limit", 30, "--aggregators").stdout)
    assert data["official"] is False
    assert {"holistic", "lcse", "anchored", "lcse, minmax", "factored, probabilistic"} <= set(data["modes"])
    assert not [mode for mode in data["modes"] if mode.count("minmax") > 1 or "minmax, prob" in mode]
    text = run("factor", file, "--images", gallery, "--parses", "own", "--mu", 0.2, "--beta", 6, "--limit", 12).output
    assert "NOT the published file" in text
    assert f"12 of {len(file.read_text().splitlines())} samples" in text


def test_a_part_of_a_benchmark_has_a_table_too(gallery: Path, tmp_path: Path) -> None:
    file = tmp_path / "factor.jsonl"
    run("factor-build", gallery / "photos.jsonl", "-o", file, "--limit", 4)
    run("factor", file, "--images", gallery, "--limit", 3, "--out", tmp_path / "kept")
    assert "| holistic |" in run("tables", tmp_path / "kept").output
    assert "–" in run("tables", tmp_path / "kept").output


def test_a_part_is_drawn_by_the_seed(gallery: Path, tmp_path: Path) -> None:
    file = tmp_path / "factor.jsonl"
    run("factor-build", gallery / "photos.jsonl", "-o", file, "--limit", 6)
    parts = [
        json.loads(run("factor", file, "--images", gallery, "--limit", 11, "--seed", seed, "--json").stdout)["modes"]
        for seed in (0, 0, 1)
    ]
    assert parts[0] == parts[1] != parts[2]
    assert set(parts[0]["lcse"]["accuracy"]) == {"NOT", "AND", "OR", "BUT_NOT", "NEITHER"}


def test_tables_are_told_as_json(tmp_path: Path) -> None:
    write_result(tmp_path, "factor", {"modes": {}}, command="lcse bench factor x")
    assert json.loads(run("tables", tmp_path, "--json").stdout) == readme_tables(tmp_path)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_and_an_example(name: str) -> None:
    text = run(name, "--help").output
    assert "--json" in text
    assert f"Example: lcse bench {name} " in text


def test_the_kept_command_can_be_typed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["bench", "factor", "my file.jsonl", "--encoder", "starter?folder=x"]
    monkeypatch.setattr("sys.argv", ["/bin/lcse", *given])
    kept = read_result(write_result(tmp_path, "x", {}))["command"]
    assert shlex.split(kept) == ["lcse", *given]


def test_pictures_in_folders_are_told_apart(gallery: Path, tmp_path: Path) -> None:
    rows = []
    for line in (gallery / "photos.jsonl").read_text(encoding="utf-8").splitlines()[::4]:
        row = json.loads(line)
        number, name = row["file"].split("-")
        (tmp_path / number).mkdir(exist_ok=True)
        (tmp_path / number / name).write_bytes((gallery / row["file"]).read_bytes())
        rows.append({**row, "file": f"{number}/{name}"})
    labels, file = tmp_path / "labels.jsonl", tmp_path / "factor.jsonl"
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("factor-build", labels, "-o", file, "--limit", 6)
    assert {json.loads(line)["image"] for line in file.read_text().splitlines()} <= {row["file"] for row in rows}
    run("factor", file, "--images", tmp_path, "--limit", 2)
    data = json.loads(run("retention", labels, "--json").stdout)
    assert data["captions"] == len(rows)


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


def test_analysis_writes_pages(gallery: Path, tmp_path: Path) -> None:
    assert "--mu" not in run("calibrate", "--help").output
    assert "it needs at least 50 images" in run("calibrate", gallery / "photos.jsonl", "--limit", 40).output
    for command in ("calibrate", "diagnose"):
        page = tmp_path / f"{command}.html"
        data = json.loads(run(command, gallery / "photos.jsonl", "--html", page, "--json").stdout)
        assert data
        assert "<svg" in page.read_text(encoding="utf-8")
    assert data["calibration"]["beta"] == pytest.approx(20)


def test_mistakes_are_told(gallery: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    alone = runner.invoke(cli, ["bench", "retrieval", str(gallery / "photos.jsonl"), "--mu", "0.2"])
    assert alone.exit_code == 2
    assert "--mu and --beta go together" in alone.output
    with pytest.raises(InvalidOption, match="cannot read"):
        runner.invoke(cli, ["bench", "factor", str(tmp_path / "x"), "--images", "."], catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retrieval", "{photos}", "--pairs", "0"], "--pairs"),
        (["diagnose", "{photos}", "--pairs", "0"], "--pairs"),
        (["retrieval", "{photos}", "--seed", "-1"], "--seed"),
        (["retention", "{photos}", "--calibration", "none.json", "--mu", "0.1", "--beta", "5"], "not both"),
        (["calibrate", "{photos}", "--mode", "holistic"], "'holistic' is not one of"),
        (["diagnose", "{photos}", "--html", "{tmp}/none/x.html"], "cannot write to the folder"),
        (["factor-build", "{photos}", "-o", "{tmp}/none/x.jsonl"], "cannot write to the folder"),
        (["retrieval", "{photos}", "--out", "{tmp}/file/x"], "cannot make the folder"),
        (["retrieval", "{photos}", "--out", "{tmp}", "--name", "a/b"], "without folders"),
    ],
)
def test_what_cannot_be_done_is_said_before_it_is_tried(
    gallery: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "file").write_text("")
    given = [argument.format(photos=gallery / "photos.jsonl", tmp=tmp_path) for argument in arguments]
    result = CliRunner().invoke(cli, ["bench", *given])
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (["tables", "{tmp}/none"], InvalidOption, "no folder"),
        (["tables", "{tmp}"], InvalidOption, "keeps no result"),
        (["timing", "--limit", "5"], InvalidOption, "at least 10 vectors"),
        (["qdrant", "--images", "{tmp}", "--limit", "9"], InvalidOption, "at least 10 points"),
        (["qdrant", "--images", "{tmp}"], InvalidOption, "holds 0 pictures"),
        (["qdrant"], InvalidOption, "--images"),
        (["factor", "{tmp}/f.jsonl", "--images", "{tmp}"], ImageError, "there is no such picture"),
    ],
)
def test_mistakes_are_errors_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], error: type[Exception], said: str
) -> None:
    monkeypatch.setenv("LCSE_DATA", str(tmp_path))
    (tmp_path / "f.jsonl").write_text(json.dumps(LINE) + "\n", encoding="utf-8")
    if arguments[0] == "qdrant":
        pytest.importorskip("qdrant_edge")
    with pytest.raises(error, match=said):
        run(*(argument.format(tmp=tmp_path) for argument in arguments))


@pytest.mark.parametrize("command", ["factor-build -o x.jsonl", "retrieval", "retention", "calibrate", "diagnose"])
def test_a_half_without_pictures_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "2.jpg").write_bytes(b"in half A")
    (tmp_path / "l.jsonl").write_text('{"file": "2.jpg", "classes": ["dog"]}\n', encoding="utf-8")
    with pytest.raises(InvalidOption, match=r"half B of l\.jsonl holds no pictures"):
        run(*command.split(), "l.jsonl", "--half", "B")


def test_a_quick_look_at_qdrant_is_quick(gallery: Path) -> None:
    pytest.importorskip("qdrant_edge")
    data = json.loads(run("qdrant", "--images", gallery, "--limit", 10, "--json").stdout)
    assert data["points"] == data["photographs"] == 10
    assert data["queries_per_operator"] == 5
    assert {row["candidates"] for row in data["results"]} == {10}


@pytest.mark.parametrize("make", OPERATORS.values(), ids=OPERATORS)
def test_qdrant_is_asked_the_same_in_words(make: Callable[..., Query]) -> None:
    query = make(*(Concept(word) for word in ("umbrella", "traffic light", "dining table", "tv")))
    texts = {worded(query, turn) for turn in range(20)}
    assert len(texts) == 20
    assert {canonical(parse(text)) for text in texts} == {canonical(query)}


def test_a_small_collection_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcse_plugins.bench.timing.REST", 0.0)
    data = json.loads(run("timing", "--limit", 10, "--json").stdout)
    assert {row["rows"] for row in data["results"]} == {10}


def test_what_is_not_a_number_is_null(tmp_path: Path) -> None:
    path = write_result(tmp_path, "x", {"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": 2}}, command="x")
    assert "NaN" not in path.read_text()
    assert read_result(path)["result"] == {"a": None, "b": [None, 1.5], "c": {"d": 2}}


def test_readme_tables_come_from_results(tmp_path: Path) -> None:
    rows = [
        {"ranker": "anchored", "operator": op, "p_at_10": 70.0, "auc": 91.26, "violations": 1.0}
        for op in ("NOT", "mean")
    ]
    write_result(tmp_path, "retrieval", {"questions": {"NOT": 3}, "rows": rows}, command="lcse bench retrieval x")
    text = "before\n<!-- table: retrieval -->\nold\n<!-- end table -->\nafter\n"
    once = filled(text, tmp_path)
    assert "| anchored | 70.0 / 91.3 | 70.0 / 91.3 | 1.0 |" in once
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert filled(once, tmp_path) == once
    unknown = "<!-- table: factor -->\n<!-- end table -->"
    with pytest.raises(InvalidOption, match="factor"):
        filled(unknown, tmp_path)
    assert filled(unknown, tmp_path, strict=False) == unknown
    with pytest.raises(InvalidOption, match="no result"):
        read_result(tmp_path / "none.json")


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
