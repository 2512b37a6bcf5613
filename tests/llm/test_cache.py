"""The parse cache: bounded, shared, and never the reason an answer is lost."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.cache import CacheKey, ParseCache
from lcse_plugins.query import And, Concept, Or, Query

TREE: Query = Or((Concept("umbrella") & ~Concept("person"), Concept("raincoat")))


def key(text: str, model: str = "m", prompt: str = "1", schema: str = "1") -> CacheKey:
    return text, model, prompt, schema


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new folder" / "parses.sqlite3"


def test_a_tree_comes_back_after_reopening(path: Path) -> None:
    ParseCache(path).put(key("x"), TREE)
    assert ParseCache(path).get(key("x")) == TREE


@pytest.mark.parametrize("other", [key("y"), key("x", model="n"), key("x", prompt="2"), key("x", schema="2")])
def test_each_part_of_the_key_counts(path: Path, other: CacheKey) -> None:
    cache = ParseCache(path)
    cache.put(key("x"), TREE)
    assert cache.get(other) is None


def test_the_least_recently_used_goes_first(path: Path) -> None:
    cache = ParseCache(path, max_entries=3)
    for text in "abc":
        cache.put(key(text), Concept(text))
    cache.get(key("a"))
    cache.put(key("d"), Concept("d"))
    assert [text for text in "abcd" if cache.get(key(text))] == ["a", "c", "d"]
    assert len(cache) == 3


@pytest.mark.parametrize("reads", [1, 1000])
def test_a_session_that_only_reads_keeps_what_it_used(path: Path, reads: int) -> None:
    writer = ParseCache(path, max_entries=3)
    for text in "abc":
        writer.put(key(text), Concept(text))
    reader = ParseCache(path, max_entries=3)
    for _ in range(reads):
        reader.get(key("a"))
    if reads == 1:
        reader.close()
    writer.put(key("d"), Concept("d"))
    assert [text for text in "abcd" if writer.get(key(text))] == ["a", "c", "d"]


def test_closing_does_not_wait_for_a_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcse_plugins.parsing.cache._BUSY_SECONDS", 600.0)
    cache = ParseCache(path)
    cache.put(key("x"), TREE)
    cache.get(key("x"))
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    cache.close()  # the writer ends only after it
    writer.execute("ROLLBACK")
    writer.close()
    assert cache.get(key("x")) == TREE
    assert cache.notes == ()


def test_a_smaller_bound_shrinks_the_file_at_the_next_put(path: Path) -> None:
    cache = ParseCache(path)
    for number in range(50):
        cache.put(key(str(number)), TREE)
    small = ParseCache(path, max_entries=5)
    small.put(key("last"), TREE)
    assert len(small) == 5
    assert small.get(key("last")) == TREE


def test_clear_and_close(path: Path) -> None:
    cache = ParseCache(path)
    cache.put(key("x"), TREE)
    cache.close()
    assert cache.get(key("x")) == TREE  # opened again
    cache.clear()
    assert len(cache) == 0


def test_memory_only() -> None:
    cache = ParseCache(":memory:")
    cache.put(key("x"), TREE)
    assert cache.get(key("x")) == TREE
    assert not Path(":memory:").exists()


def test_text_that_no_file_can_hold_is_a_miss(path: Path) -> None:
    cache = ParseCache(path)
    cache.put(key("\ud800"), TREE)
    assert cache.get(key("\ud800")) is None


@pytest.mark.parametrize(
    "damage",
    [b"this is not a database" * 100, b"SQLite format 3\0" + bytes(4000), os.urandom(8192)],
    ids=["text", "header only", "noise"],
)
def test_a_damaged_file_is_set_aside(path: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(damage)
    cache = ParseCache(path)
    cache.put(key("x"), TREE)
    assert cache.get(key("x")) == TREE
    (aside,) = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == damage
    assert "was damaged" in cache.notes[0]
    assert str(aside) in caplog.text


def test_damage_while_in_use_costs_the_entries_not_the_answer(path: Path) -> None:
    cache = ParseCache(path)
    for number in range(2000):
        cache.put(key(f"text {number}"), TREE)
    cache.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    texts = [f"text {number}" for number in range(0, 2000, 100)]
    assert all(cache.get(key(text)) in (None, TREE) for text in texts)
    cache.put(key("new"), TREE)
    assert cache.get(key("new")) == TREE
    assert list(path.parent.glob("*.damaged-*"))


def test_a_row_nobody_can_read_is_a_miss_and_is_replaced(path: Path) -> None:
    cache = ParseCache(path)
    cache.put(key("x"), TREE)
    db = sqlite3.connect(path)
    for junk in ("not json", "[]", '{"op": "xor"}', "[" * 100_000):
        with db:
            db.execute("UPDATE parses SET tree = ?", (junk,))
        assert cache.get(key("x")) is None
    db.close()
    cache.put(key("x"), TREE)
    assert cache.get(key("x")) == TREE


def test_another_programs_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    db = sqlite3.connect(path)
    with db:
        db.execute("CREATE TABLE precious (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(InvalidOption, match="another program's database"):
        ParseCache(path)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.damaged-*"))


def test_a_file_of_another_layout_is_set_aside(path: Path) -> None:
    ParseCache(path).put(key("x"), TREE)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    cache = ParseCache(path)
    assert cache.get(key("x")) is None
    assert "layout 99" in cache.notes[0]


def test_paths_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="cannot be opened"):
        ParseCache(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidOption, match="no folder"):
        ParseCache(tmp_path / "file" / "cache")
    with pytest.raises(InvalidOption, match="max_entries"):
        ParseCache(":memory:", max_entries=0)


@pytest.fixture
def locked_folder() -> Iterator[Path]:
    """A folder that nobody else may write to, and where anybody may look."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_file_that_cannot_be_written_is_read(locked_folder: Path) -> None:
    path = locked_folder / "parses.sqlite3"
    cache = ParseCache(path)
    cache.put(key("x"), TREE)
    cache.close()
    path.chmod(0o444)
    locked_folder.chmod(0o555)
    child = os.fork()
    if child == 0:
        os._exit(_fails_to_read_as_nobody(path))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _fails_to_read_as_nobody(path: Path) -> bool:
    try:
        if os.geteuid() == 0:
            os.setuid(65534)
        cache = ParseCache(path)
        cache.put(key("y"), TREE)
        assert (cache.get(key("x")), cache.get(key("y"))) == (TREE, None)
        assert len(cache.notes) == 1
        assert "only read" in cache.notes[0]
        with pytest.raises(InvalidOption, match="a folder you can write to") as caught:
            ParseCache(path.parent / "other.sqlite3")
        assert "going on" not in str(caught.value)
    except BaseException:
        traceback.print_exc()
        return True
    return False


def test_a_lock_held_too_long_is_a_miss_with_a_note(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcse_plugins.parsing.cache._BUSY_SECONDS", 0.1)
    cache = ParseCache(path)
    cache.put(key("x"), TREE)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache.put(key("y"), TREE)
    assert "locked" in cache.notes[-1]
    other.execute("ROLLBACK")
    other.close()
    cache.put(key("y"), TREE)
    assert cache.get(key("x")) == cache.get(key("y")) == TREE


def test_many_threads(path: Path) -> None:
    cache = ParseCache(path)

    def work(number: int) -> bool:
        text = f"text {number % 40}"
        cache.put(key(text), Concept(text))
        return cache.get(key(text)) == Concept(text)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(400)))
    assert len(cache) == 40
    assert cache.notes == ()


def _write_many(path: str, first: int, count: int) -> tuple[str, ...]:
    cache = ParseCache(path)
    for number in range(first, first + count):
        cache.put(key(f"text {number}"), Concept(f"text {number}"))
    return cache.notes


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_many_processes(path: Path, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    cache = ParseCache(path)
    cache.put(key("parent"), TREE)  # an open connection that forked children must not touch
    with multiprocessing.get_context(method).Pool(4) as pool:
        notes = pool.starmap(_write_many, [(str(path), first, 50) for first in range(0, 400, 50)])
        pool.close()
        pool.join()
    assert notes == [()] * 8
    assert len(cache) == 401
    assert all(cache.get(key(f"text {number}")) == Concept(f"text {number}") for number in range(400))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_goes_on_with_its_parents_cache(path: Path) -> None:
    cache = ParseCache(path)
    cache.put(key("parent"), TREE)
    child = os.fork()
    if child == 0:
        cache.put(key("child"), TREE)
        os._exit(0 if cache.get(key("parent")) == TREE else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    cache.put(key("later"), TREE)
    assert cache.get(key("child")) == TREE


_WRITER = """
import sys
from lcse_plugins.parsing.cache import ParseCache
from lcse_plugins.query import Concept
cache = ParseCache(sys.argv[1])
for number in range(10**9):
    cache.put((str(number), "m", "1", "1"), Concept(str(number)))
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_all_it_had_said(path: Path) -> None:
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        lines = [next(writer.stdout) for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        cache = ParseCache(path)
        assert all(cache.get(key(line.strip())) == Concept(line.strip()) for line in lines)
        assert cache.notes == ()
        cache.close()


def test_it_can_be_sent_to_another_process(path: Path) -> None:
    cache = ParseCache(path, max_entries=7)
    cache.put(key("x"), TREE)
    copy = pickle.loads(pickle.dumps(cache))
    assert copy.get(key("x")) == TREE
    assert copy.max_entries == 7


def test_reading_does_not_wait_for_a_writer(path: Path) -> None:
    cache = ParseCache(path)
    cache.put(key("x"), And((Concept("a"), Concept("b"))))
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    assert cache.get(key("x")) is not None
    assert time.monotonic() - started < 2
    writer.execute("ROLLBACK")
    writer.close()
