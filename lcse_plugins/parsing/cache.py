"""`ParseCache`: trees that a language model gave, kept in one SQLite file shared by threads and processes.

A row is found by text, model, prompt version and schema version. Only the tree is kept; all else is derived from it
again. A fault of the cache never loses an answer: what cannot be read is a miss, what cannot be written is left out,
a damaged file is set aside, one that cannot be written is only read, and `notes` tells of it.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.forks import leave_to_parent, renew_when_forked
from lcse_plugins.query import Query, from_json, to_json
from lcse_plugins.scoring.arguments import check_count

__all__ = ["CacheKey", "ParseCache"]

CacheKey = tuple[str, str, str, str]
"""Text, model, prompt version, schema version."""

_T = TypeVar("_T")
_APPLICATION_ID = 0x6C637365  # "lcse": tells our file from another program's database
_LAYOUT = 1
_CREATE = (
    "CREATE TABLE IF NOT EXISTS parses (text TEXT NOT NULL, model TEXT NOT NULL, prompt TEXT NOT NULL,"
    " schema TEXT NOT NULL, tree TEXT NOT NULL, used INTEGER NOT NULL, PRIMARY KEY (text, model, prompt, schema))"
    " WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS parses_used ON parses (used)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_LAYOUT}",
)
_BUSY_SECONDS = 10.0
_READS_UNWRITTEN = 1000
"""Reads after which the times of use are written even if nothing else is."""
_WITHOUT = "; going on without it this time"
_OURS = "text = ? AND model = ? AND prompt = ? AND schema = ?"

logger = logging.getLogger(__name__)


class ParseCache:
    """Parses on disk, the least recently used dropped when there are too many.

    Args:
        path: The file; it is made when missing, as is its folder. `":memory:"` keeps it in this process only.
        max_entries: How many parses are kept.

    Raises:
        InvalidOption: the path is another program's database, a folder, or cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_entries: int = 100_000) -> None:
        check_count("max_entries", max_entries)
        self.path = os.fspath(path)
        self.max_entries = max_entries
        self.notes: tuple[str, ...] = ()
        self._lock = threading.RLock()
        self._touched: dict[CacheKey, int] = {}
        self._reads = 0
        self._db: sqlite3.Connection | None = None
        self._writable = True
        self._run(lambda db: None)
        if self._db is None:
            why = "; ".join(self.notes).replace(_WITHOUT, "")
            raise InvalidOption(f"the parse cache cannot be opened: {why}; name a file in a folder you can write to")
        renew_when_forked(self)

    def __reduce__(self) -> tuple[Callable[[str, int], ParseCache], tuple[str, int]]:
        return _reopen, (self.path, self.max_entries)

    def __del__(self) -> None:
        if (db := getattr(self, "_db", None)) is not None:
            db.close()

    def get(self, key: CacheKey) -> Query | None:
        """The tree kept for `key`, or None."""
        row = self._run(lambda db: db.execute(f"SELECT tree FROM parses WHERE {_OURS}", key).fetchone())
        if row is None:
            return None
        try:
            query = from_json(json.loads(row[0]))
        except (QueryError, ValueError, TypeError, RecursionError):
            return None  # written by something else; the next answer replaces it
        with self._lock:
            self._touched[key] = time.time_ns()  # written with the next `put`: reading never waits for a writer
            self._reads += 1
            if self._reads >= _READS_UNWRITTEN:
                self._flush()
        return query

    def put(self, key: CacheKey, query: Query) -> None:
        """Keep the tree of `key`."""
        tree = json.dumps(to_json(query), ensure_ascii=False, separators=(",", ":"))

        def write(db: sqlite3.Connection) -> None:
            if not self._writable:
                return
            with db:
                db.execute("BEGIN IMMEDIATE")
                self._write_uses(db)
                db.execute("INSERT OR REPLACE INTO parses VALUES (?, ?, ?, ?, ?, ?)", (*key, tree, time.time_ns()))
                excess = db.execute("SELECT count(*) FROM parses").fetchone()[0] - self.max_entries
                if excess > 0:
                    oldest = "SELECT text, model, prompt, schema FROM parses ORDER BY used LIMIT ?"
                    db.execute(f"DELETE FROM parses WHERE (text, model, prompt, schema) IN ({oldest})", (excess,))

        self._run(write)

    def __len__(self) -> int:
        row = self._run(lambda db: db.execute("SELECT count(*) FROM parses").fetchone())
        return int(row[0]) if row else 0

    def clear(self) -> None:
        """Forget all parses."""
        self._run(lambda db: db.execute("DELETE FROM parses") and None)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._flush()
            self._drop()

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None

    def _write_uses(self, db: sqlite3.Connection) -> None:
        uses = [(when, *key) for key, when in self._touched.items()]
        db.executemany(f"UPDATE parses SET used = ? WHERE {_OURS}", uses)
        self._touched, self._reads = {}, 0

    def _flush(self) -> None:
        """Write the times of use unless another is writing; they only decide what is dropped first."""
        self._reads = 0
        if self._db is None or not self._touched or not self._writable:
            return
        self._db.execute("PRAGMA busy_timeout = 0")
        with suppress(sqlite3.Error), self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._write_uses(self._db)
        self._db.execute(f"PRAGMA busy_timeout = {int(_BUSY_SECONDS * 1000)}")

    def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Do `work`; None if the database would not let us."""
        with self._lock:
            for second_try in (False, True):
                try:
                    if self._db is None:
                        self._db = self._open()
                    return work(self._db)
                except UnicodeEncodeError:  # half a surrogate pair: no file can hold it
                    return None
                except sqlite3.OperationalError as error:  # locked for too long, disk full, read only
                    self._drop()
                    self._writable = self._writable and "readonly" not in str(error)
                    self._tell(f"parse cache {self.path}: {error}{_WITHOUT}")
                    return None
                except sqlite3.DatabaseError as error:
                    self._drop()
                    if second_try:
                        self._tell(f"parse cache {self.path}: {error}{_WITHOUT}")
                    elif not self._set_aside(str(error)):
                        return None
        return None

    def _open(self) -> sqlite3.Connection:
        try:
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidOption(f"no folder for the parse cache: {error}") from error
        try:
            return self._prepared(self.path)
        except sqlite3.OperationalError:
            if os.access(Path(self.path).parent, os.W_OK) or not os.path.isfile(self.path):
                raise
        return self._open_to_read()

    def _open_to_read(self) -> sqlite3.Connection:
        """The file in a folder where no journal can be made: with the one its writer has, or as it was left."""
        uri = f"{Path(self.path).absolute().as_uri()}?mode=ro"
        try:
            db = self._prepared(uri, uri=True)
        except sqlite3.OperationalError:
            db = self._prepared(f"{uri}&immutable=1", uri=True)
        if self._writable:
            self._tell(f"parse cache {self.path} cannot be written; it is only read")
        self._writable = False
        return db

    def _prepared(self, name: str, *, uri: bool = False) -> sqlite3.Connection:
        db = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)
        ends = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._prepare(db)
                return db
            except sqlite3.OperationalError as error:  # SQLite does not wait while others switch the file to WAL
                if "locked" not in str(error) or time.monotonic() > ends:
                    db.close()
                    raise
                time.sleep(0.01)
            except BaseException:
                db.close()
                raise

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing; a power cut, the last rows
        db.execute("BEGIN")
        with db:  # one look at the file, while another process may be making it
            application, layout = _pragma(db, "application_id"), _pragma(db, "user_version")
            tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if (application, layout) == (_APPLICATION_ID, _LAYOUT):
            return
        if (application or tables) and application != _APPLICATION_ID:
            raise InvalidOption(f"{self.path} is another program's database; name another file for the parse cache")
        if layout not in (0, _LAYOUT):
            raise sqlite3.DatabaseError(f"it has layout {layout}, this version reads {_LAYOUT}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        with db:
            for statement in _CREATE:
                db.execute(statement)

    def _set_aside(self, why: str) -> bool:
        """Rename the damaged file and its journal, unless another process already has."""
        if self.path == ":memory:" or self._is_sound():
            return True
        aside = f"{self.path}.damaged-{time.time_ns()}"
        try:
            for ending in ("-wal", "-shm", ""):
                if os.path.exists(self.path + ending):
                    os.replace(self.path + ending, aside + ending)
        except FileNotFoundError:
            return True
        except OSError as error:
            self._tell(f"parse cache {self.path} is damaged ({why}) and cannot be set aside: {error}")
            return False
        self._tell(f"parse cache {self.path} was damaged ({why}); it is kept as {aside} and a new one begun")
        return True

    def _is_sound(self) -> bool:
        try:
            with closing(self._open()) as db:
                return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
        except sqlite3.Error:
            return False

    def _begin_anew(self) -> None:
        if self._db is not None:
            leave_to_parent(self._db)
        self._db, self._lock = None, threading.RLock()

    def _tell(self, note: str) -> None:
        logger.warning("%s", note)
        self.notes = (*self.notes[-19:], note)


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _reopen(path: str, max_entries: int) -> ParseCache:
    return ParseCache(path, max_entries=max_entries)
