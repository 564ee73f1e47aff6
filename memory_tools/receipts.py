"""The file .memory-tools/recalls.jsonl: one line for each search and each credit, newest last; recall_log.py says what they hold.

A search appends without the lock (it must not wait, nor import what locks); whoever trims looks after what was appended meanwhile.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path

from memory_tools import durable, plain_files, seam
from memory_tools.errors import MemoryToolsError
from memory_tools.recall_log import QUERY_CHARS, Log, Part, Shown, encoded, kept, parse
from memory_tools.records import Stat
from memory_tools.score_values import time_text

_TRIM_BYTES = 400_000
_OVERLAP = 200  # bytes read again, to see that what was read before is still there
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_ID = re.compile(rb'"(r\w{4})"')  # also of a recall that was trimmed away and whose outcome is still known
_TRIMMED = re.compile(rb'{"trimmed_to":(\d{1,12})}\n')
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that look alike


@dataclass(slots=True)
class Receipts:
    """The file at `path`, of which only what was appended is read again."""

    path: Path
    _log: Log | None = None
    _ids: set[bytes] = field(default_factory=set)
    _seen: Stat | None = None  # the file's state when it was last read
    _read: int = 0  # bytes, and the last of them
    _end: bytes = b""
    _new: list[bytes] = field(default_factory=list)  # what is not in the log yet
    _trimmed_to: int = 0  # its size after the last trimming: without it, a thousand long recalls would be trimmed at every search

    # --- write -------------------------------------------------------------------

    def append(self, now: datetime, query: str, shown: Sequence[Shown]) -> str:
        """Remember what a search showed; returns the recall's id. Raises Forbidden or Busy where the folder cannot be written."""
        id = self._free_id()
        rows = [[s.section_id, s.address, s.citation] for s in shown]
        size = self._line({"recall": id, "time": time_text(now), "query": query[:QUERY_CHARS], "shown": rows})
        if size > _TRIM_BYTES and size > 2 * self._trimmed_to:
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
        content = encoded(row)
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
        with suppress(MemoryToolsError, OSError):
            self._catch_up()
        while (id := "r" + _random(4)).encode() in self._ids:
            continue
        return id

    def trim(self, now: datetime) -> bool:
        """Keep the last 1,000 recalls and 7 days. False where another process is at it, or the folder cannot be written."""
        try:
            with durable.lock(self.path, timeout_s=0.5), plain_files.opened(self.path) or BytesIO() as file:
                whole, _, begun = file.read().rpartition(b"\n")
                body = b"".join(encoded(row) for row in kept(parse(whole), now))
                durable.replace(self.path, encoded({"trimmed_to": len(body)}) + body)
                late = begun + file.read()  # what was appended meanwhile to the file that was replaced
                if late:
                    durable.append_unlocked(self.path, late)
            return True
        except (MemoryToolsError, OSError):
            return False

    def forget(self) -> None:
        """Read all again the next time."""
        self._seen = None

    # --- read --------------------------------------------------------------------

    def load(self) -> Log:
        """Never raises for what is in the file; a missing file is an empty one. Raises Forbidden where it cannot be read."""
        try:
            if not self._catch_up():
                return Log()
        except OSError as e:
            raise durable.refused(e, self.path) from e
        if self._log is None or self._new:
            self._log = parse(b"".join(self._new), self._log)
            self._new.clear()
            if not self._end.endswith(b"\n"):
                self._seen = None  # a line that is still being written: all is read again
        return self._log

    def _catch_up(self) -> bool:
        """Read what was appended since the last time; another file, or one that was rewritten, as a whole. False without a file."""
        with plain_files.opened(self.path) or nullcontext() as file:
            if file is None:
                return False
            state = Stat.of(os.fstat(file.fileno()))
            if state == self._seen:
                return True
            content = b""
            if self._seen is not None and state.inode == self._seen.inode and state.size > self._read:
                file.seek(self._read - len(self._end))
                content = file.read()
            if self._end and content.startswith(self._end):
                content = content[len(self._end) :]
            else:
                file.seek(0)
                content = file.read()
                self._log, self._read, self._end = None, 0, b""
                self._new.clear()
                self._ids.clear()
                trimmed = _TRIMMED.match(content)
                self._trimmed_to = int(trimmed[1]) if trimmed else 0
        self._ids.update(_ID.findall(content))
        self._new.append(content)
        self._read += len(content)
        self._end = (self._end + content)[-_OVERLAP:]
        self._seen = state
        return True


def _random(letters: int) -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(letters))
