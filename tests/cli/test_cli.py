"""The command line, with the starter encoder on the photographs that come with the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from PIL import Image

import lcse_plugins
from lcse_plugins import ImageIndex, LogicScorer, ScoringConfig
from lcse_plugins.cli.main import COMMANDS, cli
from lcse_plugins.errors import LcseError
from lcse_plugins.retrieval.tiles import RegionPool
from lcse_plugins.scoring.calibration import Calibration

PHOTOS = Path(lcse_plugins.__file__).parent / "demo_photos"


def run(*arguments: Any, ok: bool = True, **options: Any) -> Result:
    result = CliRunner().invoke(cli, [str(a) for a in arguments], **options)
    if ok and result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert (result.exit_code == 0) is ok, result.output
    return result


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cli") / "photos.lcse"
    run("index", PHOTOS, "--out", place)
    return place


def test_every_command_has_help_with_an_example() -> None:
    for name in COMMANDS:
        text = run(name, "--help").output
        assert "Usage:" in text
        assert name == "bench" or "Example: lcse" in " ".join(text.split())


def test_parse_draws_the_tree() -> None:
    assert run("parse", "an umbrella and no person").output == "AND\n├── umbrella\n└── NOT person\n"
    assert "no logic" in run("parse", "a dog chasing a cat").output
    assert "contradiction" in run("parse", "a dog and no dog").output


def test_parse_json_is_the_canonical_tree() -> None:
    data = json.loads(run("parse", "--json", "NOT (umbrella OR person)").output)
    assert data["tree"] == {
        "op": "and",
        "children": [
            {"op": "not", "child": {"op": "concept", "text": "umbrella"}},
            {"op": "not", "child": {"op": "concept", "text": "person"}},
        ],
    }
    assert {"query", "tree", "concepts", "operator", "constrained", "affirmative", "notes"} <= set(data)
    assert data["operator"] == "AND"
    assert data["constrained"] is True


def test_parse_reads_a_file_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("a dog\n\nno cat\n", encoding="utf-8")
    lines = run("parse", "--file", tmp_path / "q.txt").output.splitlines()
    assert [json.loads(line)["constrained"] for line in lines] == [False, True]


@pytest.mark.parametrize("command", [["parse", "--file"], ["search", "INDEX", "--queries"]])
def test_a_query_that_cannot_be_read_does_not_stop_the_others(command: list[str], index: Path, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("a dog\n(a cat AND\nno cat\n", encoding="utf-8")
    arguments = [str(index) if word == "INDEX" else word for word in command]
    result = CliRunner().invoke(cli, [*arguments, str(tmp_path / "q.txt")])
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["query"] for line in lines] == ["a dog", "(a cat AND", "no cat"]
    assert [bool(line["error"]) for line in lines] == [False, True, False]
    assert "expected" in lines[1]["error"]
    assert isinstance(result.exception, LcseError)
    assert "1 of the queries cannot be read" in str(result.exception)


def test_a_query_may_begin_with_a_dash() -> None:
    assert "after --" in " ".join(run("parse", "-dog", ok=False).output.split())
    assert "after --" in " ".join(run("search", "i", "-dog", ok=False).output.split())
    assert run("parse", "--", "-dog").output


def test_index_says_what_changed_and_what_is_broken(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in ("cat.jpg", "coffee.jpg"):
        (photos / name).write_bytes((PHOTOS / name).read_bytes())
    (photos / "café.jpg").write_text("not a picture")
    line = run("index", photos, "--out", tmp_path / "i", "--json").stdout
    first = json.loads(line)
    assert first["added"] == 2
    assert [Path(entry["path"]).name for entry in first["broken"]] == ["café.jpg"]
    assert "café.jpg" in line
    (photos / "coffee.jpg").unlink()
    again = run("index", photos, "--out", tmp_path / "i")
    assert "0 added, 0 updated, 1 removed, 1 unchanged, 1 left out" in again.output
    assert "café.jpg" in again.output


def test_search_obeys_the_query(index: Path) -> None:
    plain = json.loads(run("search", index, "a cup and no cat", "--mode", "holistic", "--json").stdout)
    logical = json.loads(run("search", index, "a cup and no cat", "-k", 3, "--json").stdout)
    assert plain["results"][0]["id"] == "cat.jpg"
    assert logical["results"][0]["id"] == "coffee.jpg"
    assert logical["exact"] is True
    assert len(logical["results"]) == 3
    best = logical["results"][0]
    assert set(best) == {"id", "path", "score", "holistic", "correction", "truth", "evidence"}
    assert Path(best["path"]) == PHOTOS / "coffee.jpg"
    assert best["score"] == pytest.approx(best["holistic"] + best["correction"])
    assert [(e["concept"], e["negated"]) for e in best["evidence"]] == [("cup", False), ("cat", True)]


def test_the_text_of_the_plain_similarity_can_be_chosen(index: Path) -> None:
    query, config = "a cup and no cat", ScoringConfig(holistic="affirmative")
    chosen = json.loads(run("search", index, query, "--holistic", "affirmative", "--json").stdout)["results"]
    assert chosen != json.loads(run("search", index, query, "--json").stdout)["results"]
    expected = LogicScorer("starter", config=config).search(query, ImageIndex.open(index))
    assert [result["id"] for result in chosen] == [result.id for result in expected]
    assert [result["holistic"] for result in chosen] == pytest.approx([result.holistic for result in expected])


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder: `photos`, one of them with an astronaut in its corner, and indexes of them, `whole` and `tiled`."""
    folder = tmp_path_factory.mktemp("launch")
    shutil.copytree(PHOTOS, folder / "photos")
    with Image.open(PHOTOS / "rocket.jpg") as rocket, Image.open(PHOTOS / "astronaut.jpg") as astronaut:
        picture = rocket.convert("RGB")
        picture.paste(astronaut.resize((107, 107)), (picture.width - 107, picture.height - 107))
    picture.save(folder / "photos" / "launch.jpg", quality=95)
    run("index", folder / "photos", "--out", folder / "whole")
    said = run("index", folder / "photos", "--out", folder / "tiled", "--tiles", "few").output
    assert "12 added" in said
    assert "tiles few" in said
    return folder


def test_tiles_find_what_the_whole_picture_misses(launch: Path) -> None:
    def kept(name: str, query: str) -> list[str]:
        found = run("search", launch / name, query, "--min-truth", 0.5, "--json").stdout
        return sorted(result["id"] for result in json.loads(found)["results"])

    assert "launch.jpg" in kept("whole", "no person")
    assert "launch.jpg" not in kept("tiled", "no person")
    assert "launch.jpg" not in kept("whole", "a person and no cat")
    assert "launch.jpg" in kept("tiled", "a person and no cat")


def test_a_query_without_logic_is_answered_alike_with_tiles(launch: Path) -> None:
    plain = [run("search", launch / name, "a cup", "--json").stdout for name in ("whole", "tiled")]
    assert plain[0] == plain[1]


def test_explain_tells_of_the_tiles_that_were_looked_at(launch: Path) -> None:
    query, picture = "a person and no cat", "launch.jpg"
    results = json.loads(run("search", launch / "tiled", query, "--json").stdout)["results"]
    score = next(result["score"] for result in results if result["id"] == picture)
    explained = run("explain", launch / "tiled", query, picture).output
    assert f"{score:.4f}" in explained
    assert "2 best of 6 views" in explained
    index = ImageIndex.open(launch / "tiled")
    pool = index.part([index.position(picture)])
    assert isinstance(pool, RegionPool)
    assert f"× {pool.scale.factor:.3f} {pool.scale.offset:+.3f}" in explained
    assert "views" not in run("explain", launch / "tiled", "a cup", picture).output
    assert "views" not in run("explain", launch / "whole", query, picture).output


def test_an_update_keeps_the_choice_of_tiles_and_another_is_refused(launch: Path) -> None:
    photos = launch / "photos"
    assert json.loads(run("index", photos, "--out", launch / "tiled", "--json").stdout)["tiles"] == "few"
    refused = CliRunner().invoke(cli, ["index", str(photos), "--out", str(launch / "whole"), "--tiles", "few"])
    assert isinstance(refused.exception, LcseError)
    assert "tiles none, not few" in str(refused.exception)


def test_search_prints_reasons(index: Path) -> None:
    output = run("search", index, "a cup and no cat", "-k", 2).output
    assert output.splitlines()[0].split()[:2] == ["1", "coffee.jpg"]
    assert "no cat 0." in output
    assert "\x1b" not in output


def test_search_many_queries_and_hard_filter(index: Path, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("no cat\na cup or a cat\n", encoding="utf-8")
    lines = run("search", index, "--queries", tmp_path / "q.txt", "-k", 2).stdout.splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["no cat", "a cup or a cat"]
    assert {r["id"] for r in json.loads(lines[1])["results"]} == {"coffee.jpg", "cat.jpg"}
    kept = json.loads(run("search", index, "a cat", "--min-truth", 0.5, "--json").stdout)["results"]
    assert [r["id"] for r in kept] == ["cat.jpg"]


def test_search_writes_a_report(index: Path, tmp_path: Path) -> None:
    run("search", index, "a cup and no cat", "--html", tmp_path / "r.html")
    assert "With logic" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_report_shows_as_many_pictures_as_asked_for(index: Path, tmp_path: Path) -> None:
    run("search", index, "a cup and no cat", "-k", 8, "--html", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8").count("<li ") == 16


def test_a_report_is_written_without_a_deleted_picture(tmp_path: Path) -> None:
    shutil.copytree(PHOTOS, tmp_path / "photos")
    run("index", tmp_path / "photos", "--out", tmp_path / "i")
    (tmp_path / "photos" / "coffee.jpg").unlink()
    run("search", tmp_path / "i", "a cup and no cat", "--html", tmp_path / "r.html")
    assert "could not be shown: there is no such file" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_report_tells_of_pictures_that_moved(tmp_path: Path) -> None:
    shutil.copytree(PHOTOS, tmp_path / "photos")
    run("index", tmp_path / "photos", "--out", tmp_path / "my index")
    search = ("search", tmp_path / "my index", "a cup and no cat", "-k", 3, "--html", tmp_path / "r.html")
    assert "could not be shown" not in run(*search).stderr
    (tmp_path / "photos").rename(tmp_path / "moved")
    said = run(*search).stderr
    assert re.search(r"note: (\d) of \1 pictures are not there and could not be shown", said)
    assert f"`lcse index NEWFOLDER --out '{tmp_path / 'my index'}'`" in said
    run("index", tmp_path / "moved", "--out", tmp_path / "my index")
    assert "could not be shown" not in run(*search).stderr


def test_explain_says_why_a_picture_was_left_out(tmp_path: Path) -> None:
    shutil.copytree(PHOTOS, tmp_path / "photos")
    (tmp_path / "photos" / "broken.jpg").write_text("not a picture")
    run("index", tmp_path / "photos", "--out", tmp_path / "i")
    for name in ("broken.jpg", str(tmp_path / "photos" / "broken.jpg")):
        with pytest.raises(LcseError, match=r"not in the index .*, which left it out: not a picture"):
            run("explain", tmp_path / "i", "no cat", name)


def test_an_empty_answer_says_what_would_help(index: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "notes.jpg").write_text("not a picture")
    run("index", tmp_path / "photos", "--out", tmp_path / "i")
    said = run("search", tmp_path / "i", "no cat").output
    assert "no picture" in said
    assert "--min-truth" not in said
    assert "lower --min-truth" in run("search", index, "a giraffe", "--min-truth", 1).output


@pytest.mark.parametrize("mode", ["anchored", "factored", "routed"])
@pytest.mark.parametrize("query", ["a cup and no cat", "a cup or a cat", "neither a cup nor a cat", "no cat"])
def test_explained_sums_add_up(index: Path, mode: str, query: str) -> None:
    *_, last = run("explain", index, query, "coffee.jpg", "--mode", mode).output.splitlines()
    score = json.loads(run("explain", index, query, "coffee.jpg", "--mode", mode, "--json").stdout)["score"]
    if mode == "anchored":
        logic, plain = (float(part) for part in re.findall(r"-?\d\.\d+", last)[:2])
        assert (logic + plain) / 2 == pytest.approx(score, abs=1e-4)
    assert f"{score:.4f}" in last


@pytest.mark.parametrize("aggregator", ["power", "probabilistic"])
@pytest.mark.parametrize("mu", [-1.0, 1.0])
@pytest.mark.parametrize("query", ["a cup and a cat", "a cup or a cat"])
def test_sums_of_strong_evidence_add_up(index: Path, tmp_path: Path, query: str, mu: float, aggregator: str) -> None:
    beta = 200.0
    Calibration(mu=mu, beta=beta, encoder_id=ImageIndex.open(index).encoder_id).save(tmp_path / "c.json")
    choices = ("--calibration", tmp_path / "c.json", "--aggregator", aggregator)

    def numbers(name: str, mode: str) -> list[float]:
        output = run("explain", index, query, "coffee.jpg", "--mode", mode, *choices).output
        (line,) = [line for line in output.splitlines() if line.startswith(name)]
        return [float(number) for number in re.findall(r"-?\d+\.\d+", line)]

    truth, soft, correction = numbers("correction", "lcse")
    assert (truth - soft) / beta == pytest.approx(correction, abs=1e-4)
    truth, logic = numbers("logic", "factored")
    assert truth / beta + mu == pytest.approx(logic, abs=1e-4)
    assert numbers("score", "factored") == [logic]


def test_explain_tells_how_the_query_was_read(index: Path) -> None:
    query = "a dog and no dog"
    assert "note: contradiction" in run("explain", index, query, "coffee.jpg").stderr
    explained = json.loads(run("explain", index, query, "coffee.jpg", "--json").stdout)
    searched = json.loads(run("search", index, query, "--json").stdout)
    assert explained["notes"] == searched["notes"] != []
    assert explained["error"] is None


@pytest.mark.skipif(sys.platform == "win32", reason="such names exist elsewhere")
def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    photos, index, cup, bad = tmp_path / "photos", tmp_path / "i", "cup\x1b[2J\u202e\u202f.jpg", "bad\x1b]0;.jpg"
    photos.mkdir()
    shutil.copy(PHOTOS / "coffee.jpg", photos / cup)
    (photos / bad).write_text("not a picture")
    outputs = [
        run("index", photos, "--out", index).output,
        run("search", index, "a cup and no cat").output,
        run("explain", index, "a cup and no cat", cup).output,
        run("demo", "--photos", photos).output,
        shell("demo", "--photos", photos / cup).stderr,
    ]
    assert not any(set(output) & {"\x1b", "\u202e"} for output in outputs)
    assert "bad\\x1b]0;.jpg: not a picture" in outputs[0]
    assert all("cup\\x1b[2J\\u202e\u202f.jpg" in output for output in outputs[1:])


def test_explain_shows_the_sums(index: Path) -> None:
    output = run("explain", index, "a cup and no cat", "coffee.jpg").output
    score = json.loads(run("search", index, "a cup and no cat", "-k", 1, "--json").stdout)["results"][0]["score"]
    assert f"{score:.4f}" in output
    assert "p_logic" in output
    assert "no cat" in output
    assert "plain similarity" in run("explain", index, "a cup", PHOTOS / "coffee.jpg").output
    as_json = json.loads(run("explain", index, "no cat", "cat.jpg", "--json").stdout)
    assert as_json["correction"] < 0


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    rows = {"cat": "cat", "coffee": "cup", "rocket": "rocket", "astronaut": "person;flag", "camera": "person;camera"}
    lines = ["path,labels", *(f"{name}.jpg,{labels}" for name, labels in rows.items())]
    (tmp_path / "labels.csv").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "labels.csv"


def test_calibrate_fits_and_saves(labels: Path, tmp_path: Path, index: Path) -> None:
    fitted = run("calibrate", labels, "--images", PHOTOS, "--out", tmp_path / "c.json", "--json")
    data = json.loads(fitted.stdout)
    assert {"mu", "beta", "encoder_id", "per_operator", "per_mu", "per_beta"} <= set(data)
    run("search", index, "no cat", "--calibration", tmp_path / "c.json")
    shown = run("calibrate", labels, "--images", PHOTOS, "--objective", "pairwise").output
    assert "NEITHER" in shown
    assert [line.count(":") for line in shown.splitlines() if line.startswith("best by")] == [9, 9]  # of 41 and of 9


@pytest.mark.parametrize(("mode", "edges"), [("lcse", []), ("factored", ["β"])])
def test_calibrate_says_when_the_grid_may_end_too_soon(mode: str, edges: list[str], labels: Path) -> None:
    fitted = run("calibrate", labels, "--images", PHOTOS, "--mode", mode, "--json")
    assert json.loads(fitted.stdout)["at_edge"] == edges
    assert fitted.stderr.splitlines() == [
        f"note: {name} lies at the edge of the values tried; more labelled pictures may tell it better"
        for name in edges
    ]


def test_encoders_are_listed() -> None:
    assert run("encoders").output.startswith("starter")
    assert json.loads(run("encoders", "--json").stdout.splitlines()[0])["name"] == "starter"


def test_demo_tells_the_story(tmp_path: Path) -> None:
    output = run("demo", "--photos", PHOTOS, "--html", tmp_path / "demo.html").output
    assert "plain similarity puts cat.jpg first; logic moves it to place" in output
    assert (tmp_path / "demo.html").stat().st_size > 50_000
    record = json.loads(run("demo", "-q", "a cup and no cat", "--json").stdout)
    assert record["plain"][0] == "cat.jpg"
    assert record["results"][0]["id"] == "coffee.jpg"


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["index", "no-such-folder", "--out", "i"], "no-such-folder"),
        (["index", "empty", "--out", "i"], "empty"),
        (["search", "no-such-index", "a cat"], "lcse index"),
        (["parse", "(a cat AND"], "^"),
        (["parse", ""], "blank"),
        (["demo", "--photos", "empty"], "empty"),
        (["search", "INDEX", "no cat", "--encoder", "starte"], "starter"),
        (["search", "INDEX", "a AND"], "^"),
        (["search", "INDEX", "caf\udce9 and no dog"], "UTF-8"),
        (["parse", "caf\udce9 and no dog"], "UTF-8"),
        (["explain", "INDEX", "no cat", "nowhere.jpg"], "not in the index"),
        (["search", "my index", "a cat"], "--out 'my index'`"),
        (["index", "binary", "--out", "i"], "is a file; give the folder it is in"),
        (["index", "PHOTOS", "--out", "binary"], "is a file; give the index a folder of its own"),
        (["search", "INDEX", "no cat", "--calibration", "half.json"], "mu and beta: it has no 'beta'"),
        (["calibrate", "labels.csv"], "--images"),
        (["search", "INDEX", "no cat", "--calibration", "missing.json"], "calibration"),
        (["search", "no-such-index", "no cat", "--html", "nodir/r.html"], "no folder nodir"),
        (["demo", "--encoder", "starte", "--html", "nodir/r.html"], "no folder nodir"),
        (["calibrate", "no-such-labels.csv", "--out", "nodir/c.json"], "no folder nodir"),
        (["search", "no-such-index", "--queries", "binary"], "not UTF-8"),
        (["parse", "--file", "binary"], "not UTF-8"),
        (["demo", "--photos", "broken"], "notes.jpg: not a picture"),
    ],
)
def test_mistakes_get_help(arguments: list[str], advice: str, index: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "notes.jpg").write_text("not a picture")
    (tmp_path / "binary").write_bytes(b"no c\xe4t\n")
    (tmp_path / "half.json").write_text('{"mu": 0.2}')
    (tmp_path / "labels.csv").write_text("path,labels\ncat.jpg,cat\n")
    made = {path.name: str(path) for path in tmp_path.iterdir()}
    places = {"INDEX": str(index), "PHOTOS": str(PHOTOS), **made}
    result = CliRunner().invoke(cli, [places.get(argument, argument) for argument in arguments])
    assert isinstance(result.exception, LcseError)
    assert advice in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["serach"], "serach"),
        (["search", "i", "q", "--mod", "lcse"], "--mode"),
        (["search", "i", "q", "--mode", "magic"], "lcse"),
        (["search", "i"], "QUERY"),
        (["search", "i", "q", "-k", "0"], "-k"),
        (["calibrate", "labels.csv", "--seed", "-1"], "--seed"),
        (["calibrate", "labels.csv", "--mode", "holistic"], "--mode"),
        (["parse"], "QUERY"),
        (["search", "i", "a", "dog", "and", "no", "person"], "put the query in quotes"),
        (["explain", "i", "a", "dog", "dog.jpg"], "put the query in quotes"),
        (["parse", "a", "dog"], "put the query in quotes"),
        (["search", "a dog", "INDEX"], "INDEX comes first, then QUERY"),
        (["explain", "a dog", "INDEX", "cat.jpg"], "INDEX comes first, then QUERY"),
        (["explain", "cat.jpg", "a dog", "INDEX"], "INDEX comes first, then QUERY"),
    ],
)
def test_misunderstood_commands_exit_with_2(arguments: list[str], advice: str, index: Path) -> None:
    result = run(*(index if argument == "INDEX" else argument for argument in arguments), ok=False)
    assert result.exit_code == 2
    assert advice in result.output


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("arguments", [("parse", "a dog and no dog"), ("search", "nowhere", "a cat")])
def test_no_color_is_obeyed(arguments: tuple[str, ...]) -> None:
    assert "\x1b" in on_terminal(*arguments, no_color="")
    assert "\x1b" not in on_terminal(*arguments, no_color="1")


def on_terminal(*arguments: str, no_color: str) -> str:
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", "from lcse_plugins.cli.main import main; main()", *arguments]
    subprocess.run(command, stdout=theirs, stderr=theirs, env={**os.environ, "NO_COLOR": no_color}, check=False)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as terminal:
        return terminal.read(65_536).decode()


def shell(*arguments: Any, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from lcse_plugins.cli.main import main; main()", *map(str, arguments)]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    return subprocess.run(command, capture_output=True, encoding=encoding, env=environment, check=False)


def test_errors_reach_the_shell_as_one_message() -> None:
    done = shell("search", "nowhere", "a cat")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell that closes outputs")
def test_an_output_that_is_closed_is_no_fault(index: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from lcse_plugins.cli.main import main; main()",
        "search",
        str(index),
        "no cat",
        "--json",
    ]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_fault_of_the_system_reaches_the_shell_as_one_line(index: Path) -> None:
    done = shell("search", index, "no cat", "--html", "/dev/full")
    assert done.returncode == 1
    assert done.stderr == "error: /dev/full: No space left on device\n"


def test_letters_the_output_lacks_are_replaced() -> None:
    done = shell("demo", "--photos", PHOTOS, "-q", "a cup and no cat", encoding="cp1252")
    assert done.returncode == 0, done.stderr
    assert "cup ? (" in done.stdout
    assert shell("parse", "no 猫", encoding="cp1252").stdout == "NOT ?\n"


def test_json_is_exact_in_every_output() -> None:
    for encoding in ("utf-8", "cp1252"):
        done = shell("parse", "--json", "no 猫", encoding=encoding)
        assert json.loads(done.stdout)["query"] == "no 猫", done.stderr


def test_parsing_starts_without_the_heavy_parts() -> None:
    script = (
        "import sys; sys.argv = ['lcse', 'parse', 'a cat']\n"
        "from lcse_plugins.cli.main import cli\n"
        "cli(standalone_mode=False)\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "rich", "PIL", "onnxruntime", "tokenizers", "pydantic"} & set(loaded)
