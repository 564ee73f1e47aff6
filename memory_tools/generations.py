"""Which generation of the index is current: a number in a small file, swapped when a new one is complete.

Beside the number stands the inode of its database. A workspace that was cloned or unpacked brings other ones, so that an index which
was not made here is never opened: a stranger's database could hold views that have no end, or a journal that deletes files elsewhere.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memory_tools import plain_files, seam
from memory_tools.errors import MemoryToolsError

_POINTER = re.compile(rb"(\d{1,15}) (\d{1,20})\s*")
_NUMBERED = re.compile(r"(?:index|vectors)-(\d{1,12})[.-].*", re.ASCII)


def current(folder: Path) -> int:
    """The current generation's number; the folder, its .gitignore and the pointer are made where they are missing."""
    number = _pointer(folder)
    return number if number else start_generation(folder, after=0)


def start_generation(folder: Path, after: int, make: Callable[[int], None] | None = None) -> int:
    """Move on from generation `after`: `make` builds the new one aside, then the pointer is swapped.

    Returns the number that is current then; another process may have been first.
    """
    from memory_tools import durable

    durable.make_folder(folder)
    pointer = folder / "current"
    with durable.lock(pointer):
        ignore = folder / ".gitignore"
        if not ignore.exists():
            durable.replace(ignore, b"*\n")
        now = _pointer(folder)
        if now > after:
            return now
        # Beyond every number that is there, also of a journal or matrix alone: nothing of those may come to belong to the new one.
        number = max([after, now, *map(_number, folder.iterdir())]) + 1
        database = folder / f"index-{number}.db"
        if make is not None:
            make(number)
        else:
            seam.step("open", str(database))
            os.close(os.open(database, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        durable.replace(pointer, f"{number} {os.lstat(database).st_ino}\n".encode())
        for path in folder.iterdir():
            if 0 < _number(path) < number:
                with suppress(OSError):  # Windows keeps what is open elsewhere; the next swap takes it
                    seam.step("unlink", str(path))
                    path.unlink()
    return number


def _pointer(folder: Path) -> int:
    """0 without one, where it is torn, and where its database is not the one that it was written for: a new generation follows."""
    try:
        found = _POINTER.fullmatch(plain_files.read_bytes(folder / "current", 1_000) or b"")
        state = os.lstat(folder / f"index-{int(found[1])}.db") if found else None
    except (MemoryToolsError, OSError):
        return 0
    return int(found[1]) if found and state and stat.S_ISREG(state.st_mode) and state.st_ino == int(found[2]) else 0


def _number(path: Path) -> int:
    found = _NUMBERED.fullmatch(path.name)
    return int(found[1]) if found else 0
