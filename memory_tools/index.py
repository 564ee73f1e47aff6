"""The derived index on disk: a SQLite database for each generation, its vectors beside it, and the pointer to the current one.

Everything here can be deleted at any time and comes back by itself.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory_tools import postings, seam
from memory_tools.errors import Busy, MemoryToolsError
from memory_tools.generations import current, start_generation
from memory_tools.records import Known

SCHEMA_VERSION = 2
BUSY_TIMEOUT_S = 5.0

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS files (id INTEGER PRIMARY KEY, path TEXT UNIQUE, source TEXT, size INTEGER, mtime_ns INTEGER,
       ctime_ns INTEGER, inode INTEGER, hash TEXT, read_ns INTEGER, day INTEGER, lines INTEGER, chars INTEGER, problems TEXT,
       front_matter TEXT)""",
    """CREATE TABLE IF NOT EXISTS sections (key INTEGER PRIMARY KEY, id TEXT UNIQUE, file INTEGER, ord INTEGER, address TEXT, slug TEXT,
       heading TEXT, headings TEXT, level INTEGER, start_line INTEGER, end_line INTEGER, text TEXT, body TEXT, sketch BLOB, size INTEGER,
       edited REAL, importance REAL, triggers TEXT, project TEXT)""",
    "CREATE INDEX IF NOT EXISTS sections_file ON sections (file, ord)",
    "CREATE INDEX IF NOT EXISTS sections_address ON sections (address)",
    # first and last are characters in the section's text; vector is a row of the matrix, NULL where it is still to be made
    """CREATE TABLE IF NOT EXISTS blocks (id INTEGER PRIMARY KEY, file INTEGER, section INTEGER, kind TEXT, start_line INTEGER,
       end_line INTEGER, first INTEGER, last INTEGER, tokens INTEGER, flags INTEGER, hash BLOB, vector INTEGER)""",
    "CREATE INDEX IF NOT EXISTS blocks_file ON blocks (file)",
    "CREATE INDEX IF NOT EXISTS blocks_section ON blocks (section)",
    "CREATE INDEX IF NOT EXISTS blocks_hash ON blocks (hash)",
    "CREATE INDEX IF NOT EXISTS blocks_pending ON blocks (id) WHERE vector IS NULL",
    # addresses that sections had before; scores written by hand are found by them until they are written again
    "CREATE TABLE IF NOT EXISTS former (address TEXT PRIMARY KEY, id TEXT) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS vectors (hash BLOB PRIMARY KEY, row INTEGER) WITHOUT ROWID",
    postings.SCHEMA,
)


class _Connection(sqlite3.Connection):
    """Every statement that writes passes the seam."""

    def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:
        if not sql.startswith(("SELECT", "BEGIN DEFERRED")):
            seam.step("sqlite", sql[:60])
        return super().execute(sql, *arguments)  # type: ignore[arg-type]

    def executemany(self, sql: str, *arguments: object) -> sqlite3.Cursor:
        seam.step("sqlite", sql[:60])
        return super().executemany(sql, *arguments)  # type: ignore[arg-type]


class Index:
    """One open generation. `folder` None, or one that cannot be written: everything is held in memory, and `in_memory` says so."""

    def __init__(self, folder: Path | None, aside: int | None = None) -> None:
        self.folder = folder
        self.problem: str | None = None
        self.generation = 0
        self.files_seen: tuple[tuple[int, int], dict[str, Known]] | None = None  # sync's own, for as long as changes() stays
        self._aside = aside  # a generation that is not current yet
        self._seen: tuple[object, ...] = ()
        self._connection: sqlite3.Connection | None = None
        self._open()

    @property
    def in_memory(self) -> bool:
        return self.folder is None

    @property
    def connection(self) -> sqlite3.Connection:
        assert self._connection is not None  # open from __init__ to close
        return self._connection

    def database(self, generation: int | None = None) -> Path:
        """The file of a generation (of the open one without a number)."""
        assert self.folder is not None
        return self.folder / f"index-{generation or self.generation}.db"

    def vectors_path(self) -> Path | None:
        """The matrix's file; its number rises when another encoder takes over, so that rows are never mixed."""
        if self.folder is None:
            return None
        return self.folder / f"vectors-{self.generation}-{self.meta('vectors_number') or 0}.i8"

    # --- opening ---------------------------------------------------------------

    def _open(self) -> None:
        if self.folder is not None:
            try:
                self.generation = self._aside or current(self.folder)
                self._connection = _connect(self.database())
                self._seen = self._look()
                return
            except (OSError, MemoryToolsError, sqlite3.Error) as e:
                if isinstance(e, Busy | sqlite3.OperationalError) and "locked" in str(e):
                    raise Busy(f"{self.folder}: another process holds the index ({e})", "try again in a moment") from e
                if isinstance(e, sqlite3.DatabaseError) and not isinstance(e, sqlite3.OperationalError):
                    self.problem = f"{self.database()}: {e}; made anew"
                    self.generation = start_generation(self.folder, after=self.generation)
                    self._connection = _connect(self.database())
                    self._seen = self._look()
                    return
                self.problem = f"{self.folder}: the index cannot be kept there ({_cause(e)})"
                self.folder = None
        self._connection = _connect(None)

    def _look(self) -> tuple[object, ...]:
        """What tells that another process swapped the generation, or that someone deleted the files under us."""
        assert self.folder is not None
        seen: list[object] = []
        for path in (self.folder / "current", self.folder / f"index-{self.generation}.db"):
            try:
                stat = path.stat()
                seen += (stat.st_ino, stat.st_dev, stat.st_mtime_ns if path.name == "current" else 0)
            except OSError:
                seen.append(None)
        return tuple(seen)

    def refresh(self) -> bool:
        """Open the current generation where it is no longer the open one. True: everything read before is void."""
        if self.folder is None or self._look() == self._seen:
            return False
        self._close()
        self._open()
        return True

    def start_over(self, why: str) -> None:
        """A damaged database: a new, empty generation takes its place."""
        self._close()
        if self.folder is not None:
            self.generation = start_generation(self.folder, after=self.generation)
        self._open()
        self.problem = f"{self.folder}: {why}; made anew"

    def rebuild(self, fill: Callable[[Index], None]) -> None:
        """Let `fill` make a new generation aside, then swap it in; a process that dies meanwhile leaves the old one in place."""
        if self.folder is None:
            aside = Index(None)
            fill(aside)
            self._close()
            self._connection = aside._connection
            self.generation += 1  # or changes() of two contents could be equal
            return
        from memory_tools import durable

        folder = self.folder

        def make(number: int) -> None:
            for stale in (self.database(number), self.database(number).with_name(f"vectors-{number}-0.i8")):
                if stale.exists():
                    durable.remove(stale)
            aside = Index(folder, number)
            try:
                if aside.in_memory:  # could not be kept there: the old one stays in place
                    raise Busy(aside.problem or f"{folder}: cannot be written", "the index is derived; nothing is lost")
                fill(aside)
                aside.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                aside.close()

        start_generation(folder, after=self.generation, make=make)
        self._close()
        self._open()

    def close(self) -> None:
        self._close()

    def _close(self) -> None:
        self.files_seen = None  # a new database may count as many changes
        if self._connection is not None:
            with suppress(sqlite3.Error):  # closing what is damaged may fail; nothing is pending on it
                self._connection.close()
            self._connection = None

    # --- transactions ----------------------------------------------------------

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """One writing transaction. Raises Busy while another process writes, and when the disk refuses."""
        connection = self.connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("INSERT INTO meta VALUES ('changes', 1) ON CONFLICT (key) DO UPDATE SET value = value + 1")
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # the first error is the one to tell
                    connection.rollback()
                raise
        except sqlite3.OperationalError as e:
            if any(word in str(e) for word in ("locked", "full", "readonly", "I/O")):
                raise Busy(
                    f"{self.database() if self.folder else 'index'}: cannot be written ({e})", "the index is derived; nothing is lost"
                ) from e
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is of one moment, whatever other processes write meanwhile."""
        self.connection.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):  # nothing was written; what failed inside is the error to tell
                self.connection.rollback()

    def meta(self, key: str) -> object:
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def set_meta(self, key: str, value: object) -> None:
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def changes(self) -> tuple[int, int]:
        """(generation, number of committed writes): equal numbers, equal contents."""
        value = self.meta("changes")
        return self.generation, value if isinstance(value, int) else 0

    def wasteful(self) -> bool:
        """Are there many more numbers given out than blocks alive? Then postings of deleted blocks slow every search."""
        alive, given = self.connection.execute(
            "SELECT (SELECT count(*) FROM blocks), (SELECT value FROM meta WHERE key = 'next_block')"
        ).fetchone()
        return int(given or 0) > 4 * int(alive) + 50_000

    def _count(self, table: str) -> int:
        return int(self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def counts(self) -> dict[str, int]:
        """Files, sections, blocks (headings not counted), and vectors ready and pending, as they are in the tables."""
        return {
            "files": self._count("files"),
            "sections": self._count("sections"),
            "blocks": self._count("blocks WHERE kind NOT IN ('heading', 'title')"),
            "ready": self._count("blocks WHERE vector IS NOT NULL"),
            "pending": self._count("blocks WHERE vector IS NULL"),
        }


def _connect(path: Path | None) -> sqlite3.Connection:
    """Opened, with its tables. Who makes a file a WAL one gets "locked" at once where others open it too, whatever the busy timeout is."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return _connect_once(path)
        except sqlite3.OperationalError as e:
            if "locked" not in str(e) or time.monotonic() >= deadline:
                raise
        time.sleep(0.005)


def _connect_once(path: Path | None) -> sqlite3.Connection:
    seam.step("open", str(path))
    connection = sqlite3.connect(
        str(path) if path else ":memory:", timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, factory=_Connection
    )
    try:
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")  # before anything that may meet a lock
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'postings'").fetchone() is None:
            connection.execute("PRAGMA journal_mode = WAL")  # stays with the file, so only a new one needs it
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (SCHEMA_VERSION,))
            connection.execute("COMMIT")
        elif connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone() != (SCHEMA_VERSION,):
            raise sqlite3.DatabaseError("of another version of memory-tools")
        connection.execute("PRAGMA synchronous = NORMAL")  # derived: a power cut may cost the last commit, never the file
    except BaseException:
        connection.close()
        raise
    if path is not None:
        with suppress(OSError):  # a file system without modes
            path.chmod(0o600)
    return connection


def _cause(error: BaseException) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
