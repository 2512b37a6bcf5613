"""`CachedParser`: one question for each text, whoever asks and how many at once."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import pickle
import random
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lcse_plugins.errors import InvalidOption, ParserUnavailable
from lcse_plugins.parsing.cache import ParseCache
from lcse_plugins.parsing.consult import Patience
from lcse_plugins.parsing.hybrid import HybridParser
from lcse_plugins.parsing.llm.cached import CachedParser
from lcse_plugins.parsing.llm.openai import OpenAIParser
from lcse_plugins.parsing.llm.schema import encode
from lcse_plugins.parsing.prompt import load_prompt
from lcse_plugins.parsing.result import DetailedParser, Parse
from lcse_plugins.query import Concept, Query
from tests.llm.conftest import QUICK
from tests.llm.server import BreakOff, Fault, ScriptedServer, says, status

TEXT = "an umbrella and no person"
TREE: Query = Concept("umbrella") & ~Concept("person")


@pytest.fixture
async def parser(base_url: str, tmp_path: Path) -> AsyncIterator[CachedParser]:
    parser = CachedParser(OpenAIParser("m", base_url=base_url, patience=QUICK), tmp_path / "parses.sqlite3")
    yield parser
    await parser.aclose()


def test_the_second_time_nobody_is_asked(server: ScriptedServer, parser: CachedParser) -> None:
    server.knows({TEXT: TREE})
    first = parser.read(TEXT)
    assert parser.read(TEXT) == first
    assert parser(TEXT) == TREE
    assert server.asked[TEXT] == 1


async def test_sync_and_async_share_the_memory(server: ScriptedServer, parser: CachedParser) -> None:
    server.knows({TEXT: TREE})
    assert await parser.aread(TEXT) == parser.read(TEXT)
    assert server.asked[TEXT] == 1


def test_another_process_finds_it(server: ScriptedServer, parser: CachedParser, base_url: str) -> None:
    server.knows({TEXT: TREE})
    parser.read(TEXT)
    again = CachedParser(OpenAIParser("m", base_url=base_url), ParseCache(parser.cache.path))
    assert again.read(TEXT).query == TREE
    assert server.asked[TEXT] == 1


@pytest.mark.parametrize("change", ["model", "prompt"])
def test_another_model_or_prompt_is_asked_itself(
    server: ScriptedServer, parser: CachedParser, base_url: str, change: str
) -> None:
    server.knows({TEXT: TREE})
    parser.read(TEXT)
    other = (
        OpenAIParser("n", base_url=base_url)
        if change == "model"
        else OpenAIParser("m", base_url=base_url, prompt=load_prompt(examples=3))
    )
    CachedParser(other, parser.cache).read(TEXT)
    assert server.asked[TEXT] == 2


def test_another_schema_is_asked_for_itself(
    server: ScriptedServer, parser: CachedParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.knows({TEXT: TREE})
    parser.read(TEXT)
    model, prompt, schema = parser.parser.fingerprint
    monkeypatch.setattr(OpenAIParser, "fingerprint", (model, prompt, f"{schema}+"))
    parser.read(TEXT)
    assert server.asked[TEXT] == 2


def test_a_fallback_is_never_remembered(server: ScriptedServer, parser: CachedParser) -> None:
    server.fails(TEXT, [status(401)])
    server.knows({TEXT: TREE})
    assert parser.read(TEXT).error is not None
    assert len(parser.cache) == 0
    assert parser.read(TEXT).parser == "openai:m"
    assert len(parser.cache) == 1


def test_an_error_reaches_all_who_wait(server: ScriptedServer, base_url: str) -> None:
    server.fails(TEXT, [status(401)] * 8)
    server.delay = 0.2
    parser = CachedParser(OpenAIParser("m", base_url=base_url, on_error="raise"), ":memory:")

    def ask(_: int) -> str:
        with pytest.raises(ParserUnavailable) as caught:
            parser.read(TEXT)
        return caught.value.reason

    with ThreadPoolExecutor(8) as pool:
        reasons = list(pool.map(ask, range(8)))
    assert len(reasons) == 8
    assert server.asked[TEXT] <= 2  # all that came while the first was under way shared it


def test_threads_that_ask_at_once_share_one_question(server: ScriptedServer, parser: CachedParser) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.2
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(parser.read, [TEXT] * 16))
    assert {answer.query for answer in answers} == {TREE}
    assert server.asked[TEXT] == 1


async def test_one_who_gives_up_does_not_take_the_others_with_him(server: ScriptedServer, parser: CachedParser) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.3
    tasks = [asyncio.create_task(parser.aread(TEXT)) for _ in range(6)]
    await asyncio.sleep(0.1)
    tasks[0].cancel()
    tasks[3].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [
        True,
        False,
        False,
        True,
        False,
        False,
    ]
    assert {answer.query for answer in answers if isinstance(answer, Parse)} == {TREE}


async def test_a_blocking_call_on_the_loop_does_not_wait_for_the_loop(
    server: ScriptedServer, parser: CachedParser
) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.1
    task = asyncio.create_task(parser.aread(TEXT))
    await asyncio.sleep(0.03)
    assert parser.read(TEXT).query == TREE  # would never return if it waited for `task`
    assert (await task).query == TREE


async def _under_way(parser: CachedParser) -> asyncio.Task[Parse]:
    """A question of this loop that has no answer yet."""
    task = asyncio.create_task(parser.aread(TEXT))
    while not parser._flights:
        await asyncio.sleep(0)  # a short one is seen too
    return task


async def test_threads_that_wait_for_a_loop_do_not_hold_it_up(server: ScriptedServer, parser: CachedParser) -> None:
    """Even when they take all of the loop's own threads."""
    server.knows({TEXT: TREE})
    server.delay = 0.3
    with ThreadPoolExecutor(2) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        first = await _under_way(parser)
        others = [asyncio.to_thread(parser.read, TEXT) for _ in range(8)]
        answers = await asyncio.wait_for(asyncio.gather(first, *others), 60)
    assert {answer.query for answer in answers} == {TREE}
    assert server.asked[TEXT] == 1


async def test_the_loop_may_be_stopped_by_one_who_waits_in_a_thread(server: ScriptedServer, base_url: str) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.1
    patience = Patience(deadline=1.0)
    parser = CachedParser(OpenAIParser("m", base_url=base_url, patience=patience), ":memory:")
    task = await _under_way(parser)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(parser.read, TEXT).result(60).query == TREE
    assert (await task).query == TREE
    await parser.aclose()


def test_no_one_waits_for_a_loop_that_was_left(server: ScriptedServer, base_url: str) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.1
    patience = Patience(deadline=600.0)
    parser = CachedParser(OpenAIParser("m", base_url=base_url, patience=patience), ":memory:")
    left = asyncio.new_event_loop()
    task = left.run_until_complete(_under_way(parser))
    assert parser.read(TEXT).query == TREE
    parser.cache.clear()
    assert asyncio.run(parser.aread(TEXT)).query == TREE
    assert left.run_until_complete(task).query == TREE
    left.close()
    parser.close()


def test_what_is_asked_beside_a_loop_that_was_left_is_kept(server: ScriptedServer, base_url: str) -> None:
    server.knows({TEXT: TREE})
    parser = CachedParser(OpenAIParser("m", base_url=base_url, patience=QUICK), ":memory:")
    left = asyncio.new_event_loop()
    task = left.run_until_complete(_under_way(parser))
    assert [asyncio.run(parser.aread(TEXT)).query for _ in range(3)] == [TREE] * 3
    assert len(parser.cache) == 1
    assert server.asked[TEXT] <= 2  # once for the three, and once on the loop that was left, if it came that far
    assert left.run_until_complete(task).query == TREE
    left.close()
    parser.close()


async def test_warm_on_a_loop_does_not_wait_for_the_loop(server: ScriptedServer, base_url: str) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.1
    patience = Patience(deadline=600.0)
    parser = CachedParser(OpenAIParser("m", base_url=base_url, patience=patience), ":memory:")
    task = await _under_way(parser)
    assert parser.warm([TEXT]).asked == 1
    assert (await task).query == TREE
    await parser.aclose()


def test_no_one_waits_for_the_disk_but_the_one_who_asked(
    server: ScriptedServer, parser: CachedParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.knows({TEXT: TREE})
    writing, written = threading.Event(), threading.Event()

    def slow_put(key: object, query: Query) -> None:
        writing.set()
        assert written.wait(60)

    monkeypatch.setattr(parser.cache, "put", slow_put)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(parser.read, TEXT)
        assert writing.wait(60)
        assert parser(TEXT) == asyncio.run(parser.aread(TEXT)).query == TREE
        assert not first.done()
        written.set()
    assert server.asked[TEXT] == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_its_parents_question(server: ScriptedServer, base_url: str) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.5
    parser = CachedParser(OpenAIParser("m", base_url=base_url, patience=Patience(deadline=600.0)), ":memory:")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(parser.read, TEXT)
        while not server.at_once:
            time.sleep(0.01)
        child = os.fork()
        if child == 0:
            os._exit(0 if parser(TEXT) == TREE else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert first.result().query == TREE
    assert server.asked[TEXT] == 2
    parser.close()


def test_only_a_models_answers_are_kept() -> None:
    with pytest.raises(InvalidOption, match=r"HybridParser\(CachedParser"):
        CachedParser(HybridParser(Concept), ":memory:")  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda parser: pickle.loads(pickle.dumps(parser))])
def test_a_copy_shares_the_file(server: ScriptedServer, parser: CachedParser, copied: Callable[[Any], Any]) -> None:
    server.knows({TEXT: TREE})
    assert parser(TEXT) == copied(parser)(TEXT) == TREE
    assert server.asked[TEXT] == 1


def test_warm_asks_for_what_is_missing_with_bounded_concurrency(server: ScriptedServer, parser: CachedParser) -> None:
    texts = [f"a dog and {number} cats" for number in range(1, 21)]
    server.knows({text: Concept("dog") & Concept(text.split(" and ")[1]) for text in texts})
    server.fails(texts[3], [status(401, "no")])
    server.delay = 0.02
    parser.read(texts[0])
    report = parser.warm([*texts, *texts], concurrency=4)
    assert (report.asked, report.known) == (19, 1)
    assert [text for text, _ in report.failed] == [texts[3]]
    assert "no" in report.failed[0][1]
    assert 1 < server.most_at_once <= 4
    assert set(server.asked.values()) == {1}
    assert parser.warm(texts).asked == 1
    with pytest.raises(InvalidOption, match="a list of strings"):
        parser.warm(TEXT)
    with pytest.raises(InvalidOption, match="concurrency"):
        parser.warm(texts, concurrency=0)


async def test_warm_works_inside_a_running_loop(server: ScriptedServer, parser: CachedParser) -> None:
    server.knows({TEXT: TREE})
    assert parser.warm([TEXT]).asked == 1


def test_warm_draws_only_on_a_terminal(
    server: ScriptedServer, parser: CachedParser, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.knows({TEXT: TREE, "a dog": Concept("dog")})
    parser.warm([TEXT])
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    parser.warm(["a dog"])
    out, err = capfd.readouterr()
    assert out == ""
    assert "Reading queries" in err


def test_it_is_a_parser(parser: CachedParser) -> None:
    assert isinstance(parser, DetailedParser)


FAULTS: list[Fault] = [
    status(429, retry_after="0.01"),
    status(500),
    status(503),
    BreakOff(),
    says("oops"),
    says(encode(Concept("unicorn"))),
]
PLACES = "harbour meadow bridge market tunnel garden valley tower station library".split()
THINGS = "dog cat boat kite piano drum lamp ladder tent rose".split()
HUES = "red blue green white black brown grey pink gold violet".split()


async def test_load_64_at_once_1000_texts_and_every_tenth_request_fails(
    server: ScriptedServer, base_url: str, tmp_path: Path
) -> None:
    """No answer lost or mixed up, each text answered once, the model asked once for each distinct text."""
    texts = {
        f"a {place} and a {hue} {thing} but no person": Concept(place) & Concept(f"{hue} {thing}") & ~Concept("person")
        for place in PLACES
        for hue in HUES
        for thing in THINGS
    }
    assert len(texts) == 1000
    chance = random.Random(7)
    faulty = chance.sample(sorted(texts), 100)
    for number, text in enumerate(faulty):
        server.fails(text, [FAULTS[number % len(FAULTS)]])
    server.knows(texts)
    server.delay = 0.2  # long enough for many to be under way together
    asked = [*texts, *chance.choices(sorted(texts), k=500)]  # and half as many again ask for a text twice
    chance.shuffle(asked)
    patience = Patience(timeout=30, deadline=60, max_retries=3, first_wait=0.01)
    parser = CachedParser(
        OpenAIParser("m", base_url=base_url, patience=patience, on_error="raise", prompt=load_prompt(examples=3)),
        tmp_path / "parses.sqlite3",
    )
    gate = asyncio.Semaphore(64)

    async def ask(text: str) -> Parse:
        async with gate:
            return await parser.aread(text)

    answers = await asyncio.gather(*map(ask, asked))
    await parser.parser.aclose()
    assert [answer.text for answer in answers] == asked
    assert all(answer.query == texts[answer.text] for answer in answers)
    assert server.answered == Counter(dict.fromkeys(texts, 1))
    assert server.asked == Counter({text: 2 if text in faulty else 1 for text in texts})
    assert 8 < server.most_at_once <= 64
    assert len(parser.cache) == 1000
    assert parser.cache.notes == ()


async def test_a_storm_of_cancellations_leaves_nothing_behind(server: ScriptedServer, parser: CachedParser) -> None:
    texts = {f"{number} dogs": Concept(f"{number} dogs") for number in range(1, 11)}
    server.knows(texts)
    server.delay = 0.01
    chance = random.Random(3)
    tasks = [asyncio.create_task(parser.aread(chance.choice(list(texts)))) for _ in range(100)]
    for task in tasks:
        if chance.random() < 0.5:
            await asyncio.sleep(0)
            task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            answer = await task
            assert answer.query == texts[answer.text]
    for text, tree in texts.items():
        assert (await asyncio.wait_for(parser.aread(text), 10)).query == tree
    assert len(parser._flights) == 0


def test_threads_and_loops_together(server: ScriptedServer, parser: CachedParser) -> None:
    server.knows({TEXT: TREE})
    server.delay = 0.2
    trees: list[Query] = []

    async def several() -> None:
        trees.extend(answer.query for answer in await asyncio.gather(*(parser.aread(TEXT) for _ in range(4))))
        await parser.parser.aclose()

    threads = [threading.Thread(target=lambda: trees.append(parser(TEXT))) for _ in range(4)]
    threads += [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert trees == [TREE] * 12
    assert server.asked[TEXT] == 1
