"""`CachedParser`: asks the language model once for each text, however many ask at the same time.

    parser = CachedParser(OpenAIParser(), "parses.sqlite3")

Only replies that were believed are kept, never what a fallback said in their place; a reply out of the file is checked
against the query again, as if the model had just given it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from lcse_plugins.errors import InvalidOption, ParserOutputError
from lcse_plugins.parsing.llm.parser import LLMQueryParser
from lcse_plugins.parsing.llm.schema import encode, reply_of
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Query

__all__ = ["CachedParser", "ParseCache"]

_T = TypeVar("_T")
_Key = tuple[str, str]

logger = logging.getLogger(__name__)


class ParseCache:
    """Replies in one SQLite file, shared by threads and processes, the oldest dropped when there are too many.

    A fault of the file never loses an answer: what cannot be read is a miss, what cannot be written is left out, and a
    damaged file is set aside and begun anew.

    Args:
        path: The file, for its owner only; it is made when missing. `":memory:"` keeps all in this process.
        max_entries: How many replies are kept.
        timeout: Seconds to wait for another process that writes.

    Raises:
        InvalidOption: the path is another program's database or a folder, or cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_entries: int = 100_000, timeout: float = 5.0) -> None:
        self.path, self.max_entries, self.timeout = os.fspath(path), max_entries, timeout
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
            if os.path.isdir(self.path):
                raise IsADirectoryError(f"{self.path} is a folder")
        except OSError as error:
            raise InvalidOption(f"the parse cache cannot be opened: {error}") from error
        self._run(lambda db: None)

    def get(self, model: str, text: str) -> str | None:
        """The reply kept for `text`, or None."""
        ask = "SELECT reply FROM replies WHERE model = ? AND text = ?"
        row = self._run(lambda db: db.execute(ask, (model, text)).fetchone())
        return row[0] if row and isinstance(row[0], str) else None

    def put(self, model: str, text: str, reply: str) -> None:
        """Keep the reply for `text`."""

        def write(db: sqlite3.Connection) -> None:
            with db:
                db.execute("INSERT OR REPLACE INTO replies (model, text, reply) VALUES (?, ?, ?)", (model, text, reply))
                oldest = "DELETE FROM replies WHERE number <= (SELECT max(number) FROM replies) - ?"
                db.execute(oldest, (self.max_entries,))

        self._run(write)

    def close(self) -> None:
        """Close the file; the next use opens it again. What is kept in memory is gone."""
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                db.close()

    def __del__(self) -> None:
        if (db := getattr(self, "_db", None)) is not None:
            db.close()

    def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Do `work`; None if the database would not let us."""
        with self._lock:
            for _ in range(2):
                try:
                    self._db = self._db or self._opened()
                    return work(self._db)
                except (sqlite3.Error, UnicodeError, OSError) as error:
                    logger.warning("parse cache %s: %s", self.path, error)
                    unfit = isinstance(error, UnicodeEncodeError | OSError)  # the text's fault, or the folder's
                    if unfit or not self._set_aside(error):
                        return None
        return None

    def _opened(self) -> sqlite3.Connection:
        if self.path != ":memory:":
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # made here, for its mode
        db = sqlite3.connect(self.path, timeout=self.timeout, check_same_thread=False)
        try:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and "replies" not in tables:
                raise InvalidOption(f"{self.path} is another program's database; name another file for the parse cache")
            if (verdict := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(verdict)
            db.execute("PRAGMA synchronous = NORMAL")
            columns = "number INTEGER PRIMARY KEY, model TEXT, text TEXT, reply TEXT, UNIQUE (model, text)"
            db.execute(f"CREATE TABLE IF NOT EXISTS replies ({columns})")
            db.execute("SELECT number, model, text, reply FROM replies LIMIT 1")
        except BaseException:
            db.close()
            raise
        return db

    def _set_aside(self, error: Exception) -> bool:
        """Rename a damaged file; one that is only busy, full or not ours to write stays, and is not used this time."""
        self.close()
        ours = os.access(self.path, os.W_OK) and os.access(Path(self.path).absolute().parent, os.W_OK)
        if not ours or any(word in str(error) for word in ("locked", "full", "unable to open")):
            return False
        aside = f"{self.path}.damaged-{time.time_ns()}"
        with suppress(FileNotFoundError):  # another process was first
            os.replace(self.path, aside)
            logger.warning("parse cache %s was damaged; it is kept as %s and a new one begun", self.path, aside)
        with suppress(OSError):
            os.unlink(f"{self.path}-journal")  # it belongs to the file that has been set aside
        return True


class CachedParser:
    """A language-model parser with a memory.

    Args:
        parser: The parser that asks the model.
        cache: The path of the file, or a `ParseCache`. `":memory:"` remembers until the process ends.

    Raises:
        InvalidOption: the parser asks no model itself.
    """

    def __init__(self, parser: LLMQueryParser, cache: ParseCache | str | os.PathLike[str]) -> None:
        if not isinstance(parser, LLMQueryParser):
            raise InvalidOption(
                f"CachedParser keeps a language model's replies: pass OpenAIParser() or the like, not"
                f" {type(parser).__name__}; HybridParser goes around it: HybridParser(CachedParser(OpenAIParser(), …))"
            )
        self.parser = parser
        self.cache = cache if isinstance(cache, ParseCache) else ParseCache(cache)
        self._lock = threading.Lock()
        self._flights: dict[_Key, Future[Parse]] = {}
        self._tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, asyncio.Task[Parse]]] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return CachedParser, (self.parser, self.cache.path)

    def __call__(self, text: str, /) -> Query:
        """The tree of `text`."""
        return self.read(text).query

    def read(self, text: str) -> Parse:
        """The tree of `text`: remembered, from the question another thread has under way, or from the model."""
        key, mine = (self.parser.fingerprint, text), Future[Parse]()
        with self._lock:
            flight = self._flights.setdefault(key, mine)
        if flight is mine:
            try:
                mine.set_result(self._known(key) or self._keep(key, self.parser.read(text)))
            except BaseException as error:
                mine.set_exception(error)
            finally:
                with self._lock:
                    del self._flights[key]
        return flight.result()

    async def aread(self, text: str) -> Parse:
        """`read` without blocking; those who ask on one event loop share one question."""
        key = (self.parser.fingerprint, text)
        under_way = self._tasks.setdefault(asyncio.get_running_loop(), {})
        if (task := under_way.get(key)) is None:
            task = under_way[key] = asyncio.ensure_future(self._fly(key))
            task.add_done_callback(lambda done: under_way.pop(key, None))
        return await asyncio.shield(task)  # whoever stops waiting does not stop it for the others

    async def _fly(self, key: _Key) -> Parse:
        if known := await asyncio.to_thread(self._known, key):
            return known
        return await asyncio.to_thread(self._keep, key, await self.parser.aread(key[1]))

    def _known(self, key: _Key) -> Parse | None:
        reply = self.cache.get(*key)
        try:
            return None if reply is None else self.parser.believed(key[1], reply)
        except ParserOutputError:
            return None  # damaged, or no longer believed; the next answer takes its place

    def _keep(self, key: _Key, parse: Parse) -> Parse:
        if parse.error is None:
            self.cache.put(*key, encode(reply_of(parse.query)))
        return parse

    def close(self) -> None:
        """Close the cache file and the parser's connections."""
        self.cache.close()
        self.parser.close()

    async def aclose(self) -> None:
        """`close` without blocking, and what the parser keeps open on the running event loop."""
        await self.parser.aclose()
        await asyncio.to_thread(self.close)
