"""What searches showed and what was credited for it: .memory-tools/recalls.jsonl, one JSON object a line, newest last.

A recall: {"recall", "time", "query", "shown": [[section id, address, citation], ...]}.
A credit: {"try": token, "time", "event", "parts": [[section id, recall, what], ...]}, written before the sidecar, and {"done": token} or
{"void": token} after it. A try that has neither is settled by the sidecar itself: the entries it changed hold its token.

A search appends without the lock (it must not wait, nor import what locks); whoever trims looks after what was appended meanwhile.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path

from memory_tools import durable, plain_files, seam
from memory_tools.errors import MemoryToolsError
from memory_tools.records import Stat
from memory_tools.score_values import read_time, time_text

KEEP_RECALLS = 1000
KEEP_DAYS = 7
SHOWN_HOURS = 1  # how long a search explains a later read or outcome that names no recall
USED_HOURS = 24  # how long a read waits for an outcome that names no recall
_QUERY_CHARS = 300
_TRIM_BYTES = 400_000
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that look alike


@dataclass(frozen=True, slots=True)
class Shown:
    section_id: str
    address: str  # as it was then
    citation: str


@dataclass(frozen=True, slots=True)
class Recall:
    """One search. `shown`: in the order of its results; several may share a section."""

    id: str
    time: datetime
    query: str
    shown: tuple[Shown, ...]

    def showed(self, section_id: str) -> bool:
        return any(s.section_id == section_id for s in self.shown)


@dataclass(frozen=True, slots=True)
class Part:
    """One memory in a credit. `what`: use, success or failure; `recall` "" where none showed it."""

    section_id: str
    recall: str
    what: str


@dataclass(frozen=True, slots=True)
class Try:
    token: str
    time: datetime
    event: str
    parts: tuple[Part, ...]


@dataclass(slots=True)
class Log:
    """The file as it was read."""

    recalls: dict[str, Recall] = field(default_factory=dict)  # oldest first
    tries: dict[str, Try] = field(default_factory=dict)
    ended: dict[str, bool] = field(default_factory=dict)  # token -> whether it was counted
    broken: int = 0  # lines that are no JSON: half written in a crash
    states: dict[tuple[str, str], str] = field(default_factory=dict)  # (recall, section id) -> use, success or failure
    events: dict[str, str] = field(default_factory=dict)  # event id -> token

    def count(self, token: str) -> None:
        """A try was counted: what it credited is known from now on."""
        self.ended[token] = True
        done = self.tries[token]
        if done.event:
            self.events[done.event] = token
        for part in done.parts:
            if part.recall and (part.what != "use" or (part.recall, part.section_id) not in self.states):
                self.states[part.recall, part.section_id] = part.what

    def pending(self) -> list[Try]:
        return [t for t in self.tries.values() if t.token not in self.ended]

    def find(self, name: str, now: datetime) -> Recall | None:
        """A recall of the last 7 days by its id, or the newest by the name `last`."""
        recent = self._since(now, timedelta(days=KEEP_DAYS))
        if name == "last":
            return next(recent, None)
        recall = self.recalls.get(name)
        return recall if recall is not None and now - recall.time <= timedelta(days=KEEP_DAYS) else None

    def to_use(self, section_id: str, now: datetime) -> Recall | None:
        """The newest recall of the last hour that showed the section and has no outcome for it yet."""
        for recall in self._since(now, timedelta(hours=SHOWN_HOURS)):
            if recall.showed(section_id) and self.states.get((recall.id, section_id), "use") == "use":
                return recall
        return None

    def to_judge(self, section_id: str, now: datetime) -> Recall | None:
        """The newest one in which the section was read and waits for an outcome; else as `to_use`."""
        for recall in self._since(now, timedelta(hours=USED_HOURS)):
            if self.states.get((recall.id, section_id)) == "use":
                return recall
        return self.to_use(section_id, now)

    def _since(self, now: datetime, age: timedelta) -> Iterator[Recall]:
        return (r for r in reversed(self.recalls.values()) if now - r.time <= age)


@dataclass(slots=True)
class Receipts:
    """The file at `path`, read again only when its stat changed."""

    path: Path
    _stat: Stat | None = None
    _log: Log | None = None

    # --- write -------------------------------------------------------------------

    def append(self, now: datetime, query: str, shown: Sequence[Shown]) -> str:
        """Remember what a search showed; returns the recall's id. Raises Forbidden or Busy where the folder cannot be written."""
        id = self._free_id()
        rows = [[s.section_id, s.address, s.citation] for s in shown]
        size = self._line({"recall": id, "time": time_text(now), "query": query[:_QUERY_CHARS], "shown": rows})
        if size > _TRIM_BYTES and size > 2 * self._kept_bytes():
            self.trim(now)
        return id

    def begin(self, now: datetime, event: str, parts: Sequence[Part]) -> str:
        """Write down what is about to be counted; returns the token that the sidecar's entries get."""
        token = _random(8)
        rows = [[p.section_id, p.recall, p.what] for p in parts]
        self._line({"try": token, "time": time_text(now), "event": event, "parts": rows}, sync=True)
        return token

    def end(self, token: str, counted: bool) -> None:
        self._line({"done" if counted else "void": token})

    def _line(self, row: Mapping[str, object], sync: bool = False) -> int:
        """One write of one line; returns the file's size."""
        content = _encoded(row)
        durable.make_folder(self.path.parent)
        while True:
            try:
                seam.step("open", str(self.path))
                fd = os.open(self.path, _FLAGS, 0o666)
                try:
                    state = os.fstat(fd)
                    if not stat.S_ISREG(state.st_mode):  # a pipe would take the line, and one day wait for a reader
                        raise OSError(errno.EINVAL, "not a regular file")
                    size = state.st_size
                    if size and os.lseek(fd, size - 1, os.SEEK_SET) >= 0 and os.read(fd, 1) != b"\n":  # a line that a crash cut
                        content = b"\n" + content
                    seam.step("write", str(self.path))
                    if os.write(fd, content) != len(content):
                        raise OSError(28, "No space left on device")
                    if sync:
                        seam.step("fsync", str(self.path))
                        os.fsync(fd)
                    mine = os.fstat(fd)
                finally:
                    os.close(fd)
                there = self.path.stat()
            except FileNotFoundError:
                durable.make_folder(self.path.parent)
                continue
            except OSError as e:
                raise durable.refused(e, self.path) from e
            # Trimming puts another file in this one's place; a line that went into the old one is written again. Twice does no harm.
            if (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev):
                return there.st_size

    def _free_id(self) -> str:
        try:
            known = plain_files.read_bytes(self.path) or b""
        except MemoryToolsError:
            known = b""
        while f'"{(id := "r" + _random(4))}"'.encode() in known:
            continue
        return id

    def _kept_bytes(self) -> int:
        """The size after the last trimming: without it, a thousand long recalls would be trimmed at every search."""
        try:
            with plain_files.opened(self.path) or BytesIO() as file:
                return int(json.loads(file.readline(200))["trimmed_to"])
        except (MemoryToolsError, OSError, ValueError, KeyError, TypeError):
            return 0

    def trim(self, now: datetime) -> bool:
        """Keep the last 1,000 recalls and 7 days. False where another process is at it, or the folder cannot be written."""
        try:
            with durable.lock(self.path, timeout_s=0.5), plain_files.opened(self.path) or BytesIO() as file:
                whole, _, begun = file.read().rpartition(b"\n")
                body = b"".join(_encoded(row) for row in _kept(parse(whole), now))
                durable.replace(self.path, _encoded({"trimmed_to": len(body)}) + body)
                late = begun + file.read()  # what was appended meanwhile to the file that was replaced
                if late:
                    durable.append_unlocked(self.path, late)
            return True
        except (MemoryToolsError, OSError):
            return False

    # --- read --------------------------------------------------------------------

    def load(self) -> Log:
        """Never raises for what is in the file; a missing file is an empty one. Raises Forbidden where it cannot be read."""
        try:
            state = self.path.stat()
            now = Stat(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)
            if self._log is None or self._stat != now:
                self._log = parse(plain_files.read_bytes(self.path) or b"")
                self._stat = now
            return self._log
        except FileNotFoundError:
            return Log()
        except OSError as e:
            raise durable.refused(e, self.path) from e


def parse(content: bytes) -> Log:
    log = Log()
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            _take(log, row)
        except (ValueError, TypeError, KeyError, RecursionError):
            log.broken += 1
    return log


def _take(log: Log, row: dict[str, object]) -> None:
    if "recall" in row:
        id = str(row["recall"])
        shown = tuple(Shown(str(s), str(a), str(c)) for s, a, c in _rows(row["shown"]))
        log.recalls.pop(id, None)
        log.recalls[id] = Recall(id, _moment(row), str(row["query"]), shown)
    elif "try" in row:
        token = str(row["try"])
        parts = tuple(Part(str(s), str(r), str(w)) for s, r, w in _rows(row["parts"]))
        log.tries[token] = Try(token, _moment(row), str(row.get("event") or ""), parts)
        if row.get("done") is True:
            log.count(token)
    elif "done" in row and str(row["done"]) in log.tries:
        log.count(str(row["done"]))
    elif "void" in row:
        log.ended.setdefault(str(row["void"]), False)


def _rows(value: object) -> list[tuple[object, object, object]]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _moment(row: Mapping[str, object]) -> datetime:
    moment = read_time(row["time"])
    if moment is None:
        raise ValueError("not a time")
    return moment


def _kept(log: Log, now: datetime) -> Iterator[Mapping[str, object]]:
    oldest = now - timedelta(days=KEEP_DAYS)
    for t in log.tries.values():
        if t.time >= oldest and log.ended.get(t.token, True):
            parts = [[p.section_id, p.recall, p.what] for p in t.parts]
            ended = {"done": True} if t.token in log.ended else {}
            yield {"try": t.token, "time": time_text(t.time), "event": t.event, "parts": parts, **ended}
    for r in list(log.recalls.values())[-KEEP_RECALLS:]:
        if r.time >= oldest:
            rows = [[s.section_id, s.address, s.citation] for s in r.shown]
            yield {"recall": r.id, "time": time_text(r.time), "query": r.query, "shown": rows}


def _encoded(row: Mapping[str, object]) -> bytes:
    # Half a surrogate pair has no UTF-8; as \ud83d it is JSON all the same.
    return (json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "backslashreplace")


def _random(letters: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(letters))
