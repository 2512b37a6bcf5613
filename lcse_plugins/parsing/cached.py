"""`CachedParser`: asks the language model once for each text, however many ask at the same time.

    parser = CachedParser(OpenAIParser(), "parses.sqlite3")
    parser.warm(texts)                       # ahead of time, with a progress bar

Only the model's own answers are kept, never what a fallback said in its place.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from lcse_plugins.errors import InvalidOption, LcseError
from lcse_plugins.parsing.cache import CacheKey, ParseCache
from lcse_plugins.parsing.llm import LLMQueryParser, parse_of
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Query

__all__ = ["CachedParser", "WarmReport"]


@dataclass(frozen=True, kw_only=True)
class WarmReport:
    """What `warm` did with the distinct texts it was given."""

    asked: int
    known: int
    failed: tuple[tuple[str, str], ...]
    """Texts that the model did not answer, each with the reason; they are not in the cache."""


class _Abandoned(Exception):
    """Whoever was asking was cancelled; one of those who waited asks in its place."""


@dataclass(frozen=True)
class _Flight:
    """A question under way: where its answer will be, and the event loop that must run for it to come."""

    answer: Future[Parse]
    loop: asyncio.AbstractEventLoop | None


class CachedParser:
    """A language-model parser with a memory.

    Args:
        parser: The parser that asks the model.
        cache: A `ParseCache`, or the path of its file. `":memory:"` remembers until the process ends.
    """

    def __init__(self, parser: LLMQueryParser, cache: ParseCache | str | os.PathLike[str]) -> None:
        self.parser = parser
        self.cache = cache if isinstance(cache, ParseCache) else ParseCache(cache)
        self._lock = threading.Lock()
        self._flights: dict[CacheKey, _Flight] = {}

    def __call__(self, text: str, /) -> Query:
        """The tree of `text`."""
        return self.read(text).query

    def read(self, text: str) -> Parse:
        """The tree of `text`: remembered, from the question already under way, or from the model."""
        while True:
            key = self._key(text)
            if known := self.cache.get(key):
                return self._known(known, text)
            flight, mine = self._board(key, loop=None)
            if not mine:
                if flight.loop is not None and flight.loop is _running_loop():
                    return self.parser.read(text)  # waiting here would stop the very loop that brings the answer
                try:
                    return flight.answer.result()
                except _Abandoned:
                    continue
            try:
                if known := self.cache.get(key):  # answered between our look and our boarding
                    parse = self._known(known, text)
                else:
                    parse = self.parser.read(text)
                    self._keep(key, parse)
            except BaseException as error:
                self._land(key, flight, error)
                raise
            self._land(key, flight, parse)
            return parse

    async def aread(self, text: str) -> Parse:
        """`read` without blocking."""
        while True:
            key = self._key(text)
            if known := await asyncio.to_thread(self.cache.get, key):
                return self._known(known, text)
            flight, mine = self._board(key, loop=asyncio.get_running_loop())
            if not mine:
                try:
                    return await asyncio.wrap_future(flight.answer)
                except _Abandoned:
                    continue
            try:
                if known := await asyncio.to_thread(self.cache.get, key):
                    parse = self._known(known, text)
                else:
                    parse = await self.parser.aread(text)
                    await asyncio.to_thread(self._keep, key, parse)
            except BaseException as error:
                self._land(key, flight, error)
                raise
            self._land(key, flight, parse)
            return parse

    def warm(self, texts: Iterable[str], *, concurrency: int = 8) -> WarmReport:
        """Ask for all texts that are not remembered yet, at most `concurrency` at a time.

        A progress bar is drawn when standard error is a terminal.
        """
        if concurrency < 1:
            raise InvalidOption(f"concurrency is at least 1, not {concurrency}")
        distinct = list(dict.fromkeys(texts))
        missing = [text for text in distinct if self.cache.get(self._key(text)) is None]
        failed: dict[str, str] = {}
        pool = ThreadPoolExecutor(concurrency, thread_name_prefix="lcse-warm")
        try:
            asked: dict[Future[Parse], str] = {pool.submit(self.read, text): text for text in missing}
            for done in _progress(as_completed(asked), total=len(missing)):
                try:
                    error = done.result().error
                except LcseError as fault:
                    error = str(fault)
                if error is not None:
                    failed[asked[done]] = error
        finally:
            pool.shutdown(cancel_futures=True)
        return WarmReport(
            asked=len(missing),
            known=len(distinct) - len(missing),
            failed=tuple((text, failed[text]) for text in missing if text in failed),
        )

    def close(self) -> None:
        """Close the cache file and the parser's connections."""
        self.cache.close()
        self.parser.close()

    async def aclose(self) -> None:
        """`close`, and the parser's connections on the running event loop."""
        await self.parser.aclose()
        self.close()

    def _key(self, text: str) -> CacheKey:
        return (text, *self.parser.fingerprint)

    def _known(self, query: Query, text: str) -> Parse:
        return parse_of(query, text, parser=self.parser.parser_name)

    def _keep(self, key: CacheKey, parse: Parse) -> None:
        if parse.error is None:
            self.cache.put(key, parse.query)

    def _board(self, key: CacheKey, *, loop: asyncio.AbstractEventLoop | None) -> tuple[_Flight, bool]:
        """The flight for `key`, and whether it is the caller's to fly."""
        with self._lock:
            if flight := self._flights.get(key):
                return flight, False
            flight = self._flights[key] = _Flight(Future(), loop)
            flight.answer.set_running_or_notify_cancel()  # from now on a waiter's cancellation cannot cancel it
            return flight, True

    def _land(self, key: CacheKey, flight: _Flight, outcome: Parse | BaseException) -> None:
        with self._lock:
            del self._flights[key]
        if isinstance(outcome, Parse):
            flight.answer.set_result(outcome)
        else:
            flight.answer.set_exception(outcome if isinstance(outcome, Exception) else _Abandoned())


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _progress(items: Iterable[Any], *, total: int) -> Iterable[Any]:
    if not total or not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, total=total, description="Reading queries", console=Console(stderr=True))
