"""`ParseCache` and `CachedParser`: remembered across processes, one question a text, no fault of the file felt."""

from __future__ import annotations

import asyncio
import logging
import pickle
import random
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lcse_plugins.errors import InvalidOption
from lcse_plugins.parsing.grammar import parse
from lcse_plugins.parsing.llm.cached import CachedParser, ParseCache
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Concept, Query
from tests.llm.server import BREAK_OFF, TEXT, TREE, ScriptedServer, says, status


def test_a_text_is_asked_once_also_by_another_process(
    server: ScriptedServer, llm: OpenAIParser, tmp_path: Path
) -> None:
    server.knows({TEXT: TREE})
    path = tmp_path / "new folder" / "parses.sqlite3"
    first = CachedParser(llm, path)
    answer = first.read(TEXT)
    assert (answer.query, answer.parser, answer.error) == (TREE, "openai:m", None)
    for again in (first, CachedParser(llm, ParseCache(path)), pickle.loads(pickle.dumps(first))):
        assert again.read(TEXT) == answer
        again.close()
    assert server.asked[TEXT] == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("reply", ["", "{}", '{"alternatives": [{"must": [["umbrella"], ["person"]]}]}'])
def test_a_row_is_checked_again_when_it_is_read(server: ScriptedServer, llm: OpenAIParser, reply: str) -> None:
    server.knows({TEXT: TREE})
    cached = CachedParser(llm, ":memory:")
    cached.cache.put(llm.fingerprint, TEXT, reply)
    assert cached(TEXT) == cached(TEXT) == TREE
    assert server.asked[TEXT] == 1  # the good answer took the bad one's place


def test_one_flight_a_text_between_threads(server: ScriptedServer, llm: OpenAIParser) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.2
    cached, gate = CachedParser(llm, ":memory:"), threading.Barrier(8)

    def ask(_: int) -> Query:
        gate.wait()
        return cached(TEXT)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {TREE}
    assert server.asked[TEXT] == 1


async def test_one_flight_a_text_on_a_loop_and_who_leaves_does_not_stop_it(
    server: ScriptedServer, llm: OpenAIParser
) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.2
    cached = CachedParser(llm, ":memory:")
    asked = [asyncio.create_task(cached.aread(TEXT)) for _ in range(8)]
    await asyncio.sleep(0.05)
    asked[0].cancel()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert all(getattr(answer, "query", None) == TREE for answer in answers[1:])
    assert server.asked[TEXT] == 1


@pytest.mark.parametrize("way", ["threads", "tasks"])
async def test_of_many_texts_at_once_none_is_lost_or_mixed_and_no_fault_is_kept(
    server: ScriptedServer, llm: OpenAIParser, tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    answers: dict[str, Query] = {
        f"an umbrella number{n} and no person number{n}": Concept(f"umbrella number{n}") & ~Concept(f"person number{n}")
        for n in range(64)
    }
    server.knows(answers)
    faults = [status(500), status(429), BREAK_OFF, says("?"), says(None), says('{"alternatives": [')]
    failing = list(answers)[:: len(answers) // len(faults)]
    for text, fault in zip(failing, faults, strict=False):
        server.fails(text, fault)
    cached = CachedParser(llm, tmp_path / "parses")

    async def ask_all() -> list[Parse]:
        if way == "tasks":
            return await asyncio.gather(*map(cached.aread, answers))
        with ThreadPoolExecutor(len(answers)) as pool:
            return await asyncio.to_thread(lambda: list(pool.map(cached.read, answers)))

    first, again = await ask_all(), await ask_all()  # by then the faults have passed, and nothing is asked twice
    assert [parsed.text for parsed in first] == [*answers]
    assert [parsed.text for parsed in first if parsed.error] == failing[: len(faults)]
    assert all(parsed.query == (parse if parsed.error else answers.__getitem__)(parsed.text) for parsed in first)
    assert [parsed.query for parsed in again] == [*answers.values()]
    assert sum(server.asked.values()) == len(answers) + len(faults)
    await cached.aclose()


# ------------------------------------------------------------------ the file


def test_the_oldest_are_dropped_and_text_that_no_file_can_hold_is_a_miss() -> None:
    cache = ParseCache(":memory:", max_entries=3)
    for text in ("a", "b", "c", "d", "\ud800", "e"):
        cache.put("m", text, "{}")
    assert [text for text in "abcde\ud800" if cache.get("m", text)] == ["c", "d", "e"]


def test_what_cannot_be_a_cache_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite3"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE notes (text TEXT)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(InvalidOption, match="another program's database"):
        ParseCache(path)
    assert path.read_bytes() == before
    with pytest.raises(InvalidOption, match="is a folder"):
        ParseCache(tmp_path)
    with pytest.raises(InvalidOption, match="HybridParser goes around"):
        CachedParser(parse, tmp_path / "parses")  # type: ignore[arg-type]


def damaged(content: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    torn = bytearray(content)
    match seed % 4:
        case 0:
            return bytes(torn[: chance.randrange(1, len(torn))])
        case 1:
            torn[chance.randrange(100)] ^= 1 << chance.randrange(8)  # the header, write version and all
        case 2:
            for _ in range(50):
                torn[chance.randrange(len(torn))] = chance.randrange(256)
        case _:
            return chance.randbytes(chance.randrange(1, 5000))
    return bytes(torn)


def test_a_damaged_file_is_set_aside_and_renewed(tmp_path: Path) -> None:
    whole = ParseCache(tmp_path / "whole")
    for number in range(60):
        whole.put("m", f"query {number}", "old" * 50)
    whole.close()
    sound = (tmp_path / "whole").read_bytes()
    for seed in range(20):
        path = tmp_path / f"{seed}.sqlite3"
        path.write_bytes(content := damaged(sound, seed))
        cache = ParseCache(path)
        assert all(isinstance(cache.get("m", f"query {number}"), str | None) for number in (0, 30, 59))
        cache.put("m", "query 60", "new")
        assert cache.get("m", "query 60") == "new", f"seed {seed}"
        cache.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (aside,) = tmp_path.glob("19.sqlite3.damaged-*")
    assert aside.read_bytes() == content


def test_a_file_that_another_holds_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "parses"
    cache = ParseCache(path, timeout=0.05)
    cache.put("m", "a", "b")
    with sqlite3.connect(path) as other:
        other.execute("BEGIN EXCLUSIVE")
        cache.put("m", "c", "d")
        assert cache.get("m", "a") is None
        other.rollback()
    other.close()
    assert cache.get("m", "a") == "b"
    assert list(tmp_path.glob("*.damaged-*")) == []
    cache.close()
