"""The command line, with the starter encoder on the photographs that come with the package."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from lcse_plugins.cli.main import COMMANDS, cli
from lcse_plugins.errors import LcseError
from lcse_plugins.images.gallery import demo_photos

PHOTOS = demo_photos()[0].parent
FEW = ("dog-in-armchair.jpg", "skier-with-dog.jpg", "cat-in-sink.jpg", "horses.jpg", "pasta.jpg")
MAIN = (sys.executable, "-m", "lcse_plugins")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, also for the commands started as processes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*arguments: Any, ok: bool = True) -> Result:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    if ok and result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert (result.exit_code == 0) is ok, result.output
    return result


def run_json(*arguments: Any) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def shell(*arguments: Any, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [*MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding=encoding, env=environment, check=False)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cli") / "photos.lcse"
    run("index", PHOTOS, "--out", place)
    return place


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in FEW:
        shutil.copy(PHOTOS / name, folder / name)
    return folder


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "bench"])
def test_every_command_has_help_with_an_example(name: str) -> None:
    assert "Example: lcse" in " ".join(run(name, "--help").output.split())


def test_parse_shows_the_reading() -> None:
    assert run("parse", "an umbrella and no person").output == "AND\n├── umbrella\n└── NOT person\n"
    assert "no logic" in run("parse", "a dog chasing a cat").output
    assert "contradiction" in run("parse", "a dog and no dog").output
    assert run("parse", "--", "-dog").output
    assert run("parse", "a dog with or without a man").output.count("note: doubtful") == 1
    data = run_json("parse", "NOT (umbrella OR person)")
    assert [child["op"] for child in data["tree"]["children"]] == ["not", "not"]
    assert (data["constrained"], data["sure"], data["notes"]) == (True, True, [])


# indexing


def test_index_says_what_changed_and_what_is_broken(photos: Path, tmp_path: Path) -> None:
    (photos / "café.jpg").write_text("not a picture")
    first = run_json("index", photos, "--out", tmp_path / "i")
    assert first["added"] == len(FEW)
    assert [Path(entry["path"]).name for entry in first["broken"]] == ["café.jpg"]
    (photos / "pasta.jpg").unlink()
    again = run("index", photos, "--out", tmp_path / "i").output
    assert f"{tmp_path / 'i'}: 1 removed, 4 unchanged, 1 left out\n" in again
    assert "café.jpg" in again


def test_folders_are_indexed_before_they_are_searched_and_kept_up_to_date(photos: Path, cache: Path) -> None:
    first = run("search", photos, "a zebra", "--paths")
    assert f"indexed {len(FEW)} pictures in {cache / 'lcse'}" in first.stderr
    assert first.stdout == ""
    shutil.copy(PHOTOS / "zebras.jpg", photos / "zebras.jpg")
    assert run("search", photos, "a zebra", "--paths").stdout == f"{photos / 'zebras.jpg'}\n"
    assert run("search", photos, "a zebra", "--paths").stderr == ""
    more = photos.parent / "more"
    more.mkdir()
    shutil.copy(PHOTOS / "zebras.jpg", more / "striped.jpg")
    found = run("search", photos, more, "a zebra", "--paths").stdout
    assert set(found.splitlines()) == {str(photos / "zebras.jpg"), str(more / "striped.jpg")}


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_interrupted_indexing_says_that_progress_is_kept(tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for copy in range(600):
        (many / f"{copy}.jpg").write_bytes((PHOTOS / "zebras.jpg").read_bytes() + bytes([copy % 256, copy // 256]))
    process = subprocess.Popen(
        [*MAIN, "index", str(many), "--out", str(tmp_path / "i")], stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "i").exists():
        time.sleep(0.02)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert re.search(r"Stopped\. The index .* has \d+ pictures; the next run goes on from there", said)
    assert "Traceback" not in said


# searching


def test_search_reads_well(index: Path) -> None:
    lines = run("search", index, "a dog and no person", "-k", 8).stdout.splitlines()
    assert lines[0] == f"a dog and no person  ({len(demo_photos())} pictures)"
    ends = next(place for place, line in enumerate(lines) if "satisfy this; the rest are the nearest." in line)
    assert lines[ends].startswith(f"{ends - 1} pictures")
    for line in (*lines[1:ends], *lines[ends + 1 :]):
        reason, path = re.split(r" {2,}", line.strip())
        assert Path(path).is_file()
        assert re.fullmatch(r"dog: [a-z ]+ · (no person: not seen|person: [a-z]+)", reason)
    assert "no person: not seen" in lines[1]
    assert len({line.index(str(PHOTOS)) for line in lines[1:ends]}) == 1  # a column of its own
    assert run("search", index, "no person", "--paths").stdout.count("\n") > 10  # all of them
    few = run("search", index, "a dog and no person", "-k", 2).stdout
    assert f"{ends - 1} pictures satisfy this; 2 of them are shown." in few


def test_search_says_that_nothing_satisfies(index: Path) -> None:
    query = "a helicopter and no people"
    assert "Nothing here satisfies this; these are the nearest." in run("search", index, query).stdout
    assert run("search", index, query, "--paths").stdout == ""
    assert run_json("search", index, query)["satisfied"] == 0


def test_search_obeys_the_query(index: Path) -> None:
    plain = run_json("search", index, "a dog and no person", "--mode", "holistic")
    logical = run_json("search", index, "a dog and no person", "-k", 3)
    assert plain["results"][0]["id"] == "skier-with-dog.jpg"
    assert [len(logical["results"]), logical["satisfied"], logical["sure"]] == [3, 3, True]
    best = logical["results"][0]
    assert Path(best["path"]).is_file()
    assert [(e["concept"], e["negated"], e["word"]) for e in best["evidence"]] == [
        ("dog", False, "clear"),
        ("person", True, "not seen"),
    ]


def test_min_truth_and_dates_leave_out(index: Path) -> None:
    data = run_json("search", index, "a dog and no person", "-k", 40, "--min-truth", 0.9)
    assert data["results"]
    assert all(result["truth"] >= 0.9 for result in data["results"])
    assert "lower --min-truth" in run("search", index, "a giraffe", "--min-truth", 1).output
    assert "no pictures of that time" in run("search", index, "a giraffe", "--until", 1980).output


def test_the_page_is_written_without_a_picture_that_is_gone(photos: Path, tmp_path: Path) -> None:
    run("index", photos, "--out", tmp_path / "i")
    (photos / "horses.jpg").unlink()
    said = run("search", tmp_path / "i", "a horse", "--html", tmp_path / "r.html").stderr
    assert "note: 1 picture could not be shown" in said
    assert "dog-in-armchair.jpg" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_explain_shows_the_arithmetic(index: Path) -> None:
    output = run("explain", index, "a dog and no person", "dog-in-armchair.jpg").output
    assert "dog: clear · no person: not seen" in output
    assert "└── NOT person" in output
    score = run_json("search", index, "a dog and no person", "-k", 1)["results"][0]["score"]
    assert output.rstrip().endswith(f"/ 2 = {score:.4f}")
    assert "plain similarity" in run("explain", index, "a dog", PHOTOS / "horses.jpg").output
    assert run_json("explain", index, "no cat", "cat-in-sink.jpg")["results"][0]["truth"] < 0.5


# the demo, the page, calibrating


def test_demo_tells_the_story(tmp_path: Path) -> None:
    output = run("demo", "--html", tmp_path / "demo.html").output
    assert output.index("“a dog and no person”") < output.index("✗ skier-with-dog.jpg")
    assert "dog: clear · no person: not seen" in output
    assert "Nothing here satisfies this" in output
    assert f"open {tmp_path / 'demo.html'} in a browser" in output
    assert "lcse serve" in output
    assert (tmp_path / "demo.html").stat().st_size > 200_000


def test_demo_takes_other_photographs_and_queries(photos: Path, tmp_path: Path) -> None:
    output = run("demo", "--photos", photos, "-q", "a cat and no dog", "--html", tmp_path / "d.html").output
    assert "“a cat and no dog”" in output
    assert f"lcse serve {photos}" in output


def test_serve_opens_a_page_on_this_machine(photos: Path) -> None:
    command = [*MAIN, "serve", str(photos), "--port", "0", "--no-open"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next(line.strip() for line in process.stdout if "http" in line)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
        deadline = time.monotonic() + 60
        state: dict[str, Any] = {"busy": True}
        while state["busy"] and time.monotonic() < deadline:
            with urlopen(f"{address}state") as reply:
                state = json.load(reply)
            time.sleep(0.1)
        assert (state["ready"], state["pictures"]) == (True, len(FEW))
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")


def test_calibrate_fits_and_saves(tmp_path: Path, index: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(
        "path,labels\ncat-in-sink.jpg,cat\ncat-on-laptop.jpg,cat;laptop\ndog-in-armchair.jpg,dog\n"
        "skier-with-dog.jpg,dog;person\ntennis-player.jpg,person\nlaptop-on-desk.jpg,laptop\n"
    )
    data = run_json("calibrate", labels, "--images", PHOTOS, "--out", tmp_path / "c.json")
    assert {"mu", "beta", "encoder_id", "presence", "per_operator"} <= set(data)
    run("search", index, "no cat", "--calibration", tmp_path / "c.json")
    said = run("calibrate", labels, "--images", PHOTOS, "--out", tmp_path / "p.json").output
    assert "NEITHER" in said
    assert "presence" in said
    assert f"wrote {tmp_path / 'p.json'}" in said


def test_encoders_are_listed() -> None:
    assert run("encoders").output.startswith("starter")


# mistakes


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["index", "no-such-folder", "--out", "i"], "no-such-folder"),
        (["index", "empty", "--out", "i"], "empty"),
        (["search", "no-such-folder", "a cat"], "no such folder"),
        (["search", "no-such-folder", "(a cat AND"], "^"),
        (["parse", ""], "blank"),
        (["demo", "--photos", "broken"], "notes.jpg"),
        (["search", "INDEX", "no cat", "--encoder", "starte"], "starter"),
        (["search", "INDEX", "no cat", "--since", "24"], "a date is written as 2024"),
        (["search", "INDEX", "caf\udce9 and no dog"], "UTF-8"),
        (["explain", "INDEX", "no cat", "nowhere.jpg"], "not in the index"),
        (["index", "binary", "--out", "i"], "it is a file; give its folder"),
        (["index", "PHOTOS", "--out", "binary"], "is a file; give the index a folder of its own"),
        (["search", "INDEX", "no cat", "--calibration", "half.json"], "it has no 'beta'"),
        (["calibrate", "labels.csv"], "--images"),
        (["search", "INDEX", "no cat", "--html", "nodir/r.html"], "no folder nodir"),
        (["serve", "--qdrant", "http://127.0.0.1:9", "--collection", "c"], "answer"),
        (["serve", "--port", "1", "--no-open"], "leave --port out"),
    ],
)
@pytest.mark.filterwarnings("ignore:Failed to obtain server version")
def test_mistakes_get_help(
    arguments: list[str], advice: str, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.create_server", _refused)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "notes.jpg").write_text("not a picture")
    (tmp_path / "binary").write_bytes(b"no c\xe4t\n")
    (tmp_path / "half.json").write_text('{"mu": 0.2}')
    (tmp_path / "labels.csv").write_text("path,labels\ncat.jpg,cat\n")
    made = {path.name: str(path) for path in tmp_path.iterdir()}
    places = {"INDEX": str(index), "PHOTOS": str(PHOTOS), **made}
    result = CliRunner().invoke(cli, [places.get(argument, argument) for argument in arguments])
    assert isinstance(result.exception, LcseError), result.output
    assert advice in str(result.exception)


def _refused(address: tuple[str, int]) -> None:
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["serach"], "did you mean `lcse search`?"),
        (["frobnicate"], "`lcse --help` lists them all"),
        (["search", "i", "q", "--mod", "lcse"], "--mode"),
        (["search", "i"], "give a FOLDER, then a QUERY"),
        (["search", "i", "-dog"], "after --"),
        (["search", "i", "a", "dog", "and", "no", "person"], "if it is part of the query, use quotes"),
        (["search", "a dog", "INDEX"], "FOLDER comes first, then QUERY"),
        (["explain", "i", "a", "dog", "dog.jpg"], "put the query in quotes"),
        (["calibrate", "labels.csv", "--mode", "holistic"], "--mode"),
        (["serve", "--qdrant", "http://localhost"], "--collection"),
        (["serve", "photos", "--qdrant", "http://localhost", "--collection", "c"], "--qdrant"),
    ],
)
def test_misunderstood_commands_exit_with_2(arguments: list[str], advice: str, index: Path) -> None:
    result = run(*(index if argument == "INDEX" else argument for argument in arguments), ok=False)
    assert result.exit_code == 2
    assert advice in " ".join(result.output.split())


# outputs


@pytest.mark.skipif(sys.platform == "win32", reason="such names exist elsewhere")
def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    photos, index, dog, bad = tmp_path / "photos", tmp_path / "i", "dog\x1b[2J\u202e\u202f.jpg", "bad\x1b]0;.jpg"
    photos.mkdir()
    shutil.copy(PHOTOS / "dog-in-armchair.jpg", photos / dog)
    (photos / bad).write_text("not a picture")
    outputs = [
        run("index", photos, "--out", index).output,
        run("search", index, "a dog and no cat").output,
        run("explain", index, "a dog and no cat", dog).output,
        run("demo", "--photos", photos, "--html", tmp_path / "d.html").output,
    ]
    assert not any(set(output) & {"\x1b", "\u202e"} for output in outputs)
    assert "bad\\x1b]0;.jpg" in outputs[0]
    assert all("dog\\x1b[2J\\u202e\u202f.jpg" in output for output in outputs[1:])


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_no_color_is_obeyed() -> None:
    def coloured(no_color: str) -> bool:
        ours, theirs = os.openpty()
        environment = {**os.environ, "NO_COLOR": no_color}
        subprocess.run([*MAIN, "parse", "a dog and no dog"], stdout=theirs, env=environment, check=False)
        os.close(theirs)
        with open(ours, "rb", buffering=0) as terminal:
            return b"\x1b" in terminal.read(65_536)

    assert coloured("")
    assert not coloured("1")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_errors_reach_the_shell_as_one_message() -> None:
    for arguments, error in (
        (("search", "nowhere", "a cat"), "nowhere: cannot be listed (there is no such folder)\n"),
        (("demo", "--html", "/dev/full"), "error: No space left on device\n"),
    ):
        done = shell(*arguments)
        assert done.returncode == 1
        assert done.stderr.count("error: ") == 1
        assert done.stderr.endswith(error)


def test_letters_the_output_lacks_are_replaced() -> None:
    assert shell("parse", "no 猫", encoding="cp1252").stdout.startswith("NOT ?\n")
    for encoding in ("utf-8", "cp1252"):
        done = shell("parse", "--json", "no 猫", encoding=encoding)
        assert json.loads(done.stdout)["query"] == "no 猫", done.stderr
