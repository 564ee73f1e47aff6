"""Which generation of the index is current: a number in a small file, swapped when a new one is complete."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memory_tools import seam


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
        number = max([after, now, *(_number(p) for p in folder.glob("index-*.db"))]) + 1
        if make is not None:
            make(number)
        durable.replace(pointer, f"{number}\n".encode())
        for path in [*folder.glob("index-*.db*"), *folder.glob("vectors-*.i8")]:
            if _number(path) < number:
                with suppress(OSError):  # Windows keeps what is open elsewhere; the next swap takes it
                    seam.step("unlink", str(path))
                    path.unlink()
    return number


def _pointer(folder: Path) -> int:
    try:
        return int((folder / "current").read_text(encoding="ascii").strip() or 0)
    except (FileNotFoundError, ValueError):  # none yet, or torn: a new generation follows
        return 0


def _number(path: Path) -> int:
    part = path.name.split("-")[1].split(".")[0]
    return int(part) if part.isdigit() else 0
