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
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lcse_plugins.errors import InvalidOption, LcseError
from lcse_plugins.off_loop import wait
from lcse_plugins.parsing.cache import CacheKey, ParseCache
from lcse_plugins.parsing.llm.parser import LLMQueryParser, parse_of
from lcse_plugins.parsing.result import Parse
from lcse_plugins.parsing.service.flights import Abandoned, Flights
from lcse_plugins.query import Query
from lcse_plugins.scoring.arguments import check_count, texts_of

__all__ = ["CachedParser", "WarmReport"]

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class WarmReport:
    """What `warm` did with the distinct texts it was given."""

    asked: int
    known: int
    failed: tuple[tuple[str, str], ...]
    """Texts that the model did not answer, each with the reason; they are not in the cache."""


class CachedParser:
    """A language-model parser with a memory.

    Args:
        parser: The parser that asks the model.
        cache: A `ParseCache`, or the path of its file. `":memory:"` remembers until the process ends.

    Raises:
        InvalidOption: the parser asks no model itself.
    """

    def __init__(self, parser: LLMQueryParser, cache: ParseCache | str | os.PathLike[str]) -> None:
        if not isinstance(parser, LLMQueryParser):
            raise InvalidOption(
                "a language model's answers are kept, so pass its parser, such as OpenAIParser(), not"
                f" {type(parser).__name__}; HybridParser goes around: HybridParser(CachedParser(OpenAIParser(), ...))"
            )
        self.parser = parser
        self.cache = cache if isinstance(cache, ParseCache) else ParseCache(cache)
        self._flights = Flights()

    def __reduce__(self) -> tuple[type[CachedParser], tuple[LLMQueryParser, ParseCache]]:
        return type(self), (self.parser, self.cache)

    def __call__(self, text: str, /) -> Query:
        """The tree of `text`."""
        return self.read(text).query

    def read(self, text: str) -> Parse:
        """The tree of `text`: remembered, from the question already under way, or from the model."""
        return self._read(text, stopped=_running_loop())

    def _read(self, text: str, *, stopped: asyncio.AbstractEventLoop | None) -> Parse:
        """`read` while the loop `stopped` stands still: what that loop would have to bring is not waited for."""
        while True:
            key = self._key(text)
            if known := self.cache.get(key):
                return self._known(known, text)
            flight, mine = self._flights.board(key, loop=None)
            if mine:
                break
            if flight.stands_still or (flight.loop is not None and flight.loop is stopped):
                return self._ask(key, text)
            try:
                return flight.answer.result(self._deadline)
            except Abandoned:
                continue
            except FutureTimeoutError:  # the loop that brings it may be waiting for us in some other way
                return self._ask(key, text)
        with self._flights.flying(key, flight):
            known = self.cache.get(key)  # answered between our look and our boarding?
            parse = self._known(known, text) if known else self.parser.read(text)
            flight.answer.set_result(parse)  # those who wait need not wait for the disk
            if not known:
                self._keep(key, parse)
        return parse

    async def aread(self, text: str) -> Parse:
        """`read` without blocking."""
        while True:
            key = self._key(text)
            if known := await wait(self.cache.get, key):
                return self._known(known, text)
            flight, mine = self._flights.board(key, loop=asyncio.get_running_loop())
            if mine:
                break
            if flight.stands_still:
                return await self._aask(key, text)
            try:
                return await asyncio.wait_for(asyncio.wrap_future(flight.answer), self._deadline)
            except Abandoned:
                continue
            except asyncio.TimeoutError:
                return await self._aask(key, text)
        with self._flights.flying(key, flight):
            known = await wait(self.cache.get, key)
            parse = self._known(known, text) if known else await self.parser.aread(text)
            flight.answer.set_result(parse)
            if not known:
                await wait(self._keep, key, parse)
        return parse

    def warm(self, texts: Iterable[str], *, concurrency: int = 8) -> WarmReport:
        """Ask for all texts that are not remembered yet, at most `concurrency` at a time.

        A progress bar is drawn when standard error is a terminal.

        Raises:
            InvalidOption: `texts` is a single text, or the concurrency is below 1.
        """
        check_count("concurrency", concurrency)
        distinct = list(dict.fromkeys(texts_of(texts)))
        missing = [text for text in distinct if self.cache.get(self._key(text)) is None]
        failed: dict[str, str] = {}
        read = partial(self._read, stopped=_running_loop())
        pool = ThreadPoolExecutor(concurrency, thread_name_prefix="lcse-warm")
        try:
            asked: dict[Future[Parse], str] = {pool.submit(read, text): text for text in missing}
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
        """`close` without blocking, and what the parser keeps open on the running event loop."""
        await self.parser.aclose()
        await wait(self.close)

    @property
    def _deadline(self) -> float:
        return min(self.parser.patience.deadline, threading.TIMEOUT_MAX)

    def _key(self, text: str) -> CacheKey:
        return (text, *self.parser.fingerprint)

    def _known(self, query: Query, text: str) -> Parse:
        return parse_of(query, text, parser=self.parser.parser_name)

    def _ask(self, key: CacheKey, text: str) -> Parse:
        """The model's answer whether or not another is asking."""
        parse = self.parser.read(text)
        self._keep(key, parse)
        return parse

    async def _aask(self, key: CacheKey, text: str) -> Parse:
        parse = await self.parser.aread(text)
        await wait(self._keep, key, parse)
        return parse

    def _keep(self, key: CacheKey, parse: Parse) -> None:
        if parse.error is None:
            self.cache.put(key, parse.query)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _progress(items: Iterable[_T], *, total: int) -> Iterable[_T]:
    if not total or not sys.stderr.isatty():
        return items
    from rich.console import Console
    from rich.progress import track

    return track(items, total=total, description="Reading queries", console=Console(stderr=True))
