"""What a watcher says of itself, in a file beside the index, so that `status` in another process can tell: alive, polling, or died."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_tools import durable, plain_files
from memory_tools.errors import Busy, MemoryToolsError

FILE = "watcher.json"
_MAX_BYTES = 65_536  # ours has a line


@contextmanager
def claimed(folder: Path) -> Iterator[Path | None]:
    """The state file, held while the watcher lives and removed when it stops in order; None where another watcher has it.

    The lock is what tells that the process lives: the system drops it with the process, however that ends.
    """
    path = folder / FILE
    held = durable.lock(path, timeout_s=0.0)
    try:
        held.__enter__()
    except MemoryToolsError:  # another watcher's, or a folder that cannot be written: then there is no state to tell
        yield None
        return
    try:
        yield path
        durable.remove(path)
    finally:
        held.__exit__(None, None, None)


def write(path: Path | None, problem: str = "") -> None:
    """Say that the watcher lives, and what hinders it."""
    if path is not None:
        durable.replace(path, (json.dumps({"problem": problem}, ensure_ascii=False) + "\n").encode())


def told(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the watcher that was started last: words for `degraded`, and warnings. Both empty where there is none or it is well."""
    path = folder / FILE
    try:
        said = json.loads(plain_files.read_bytes(path, _MAX_BYTES) or b"")
    except (MemoryToolsError, ValueError, RecursionError):
        return (), ()
    try:
        with durable.lock(path, timeout_s=0.0):
            return ("watcher_died",), ("the watcher has died; searches still see every change, start it again to have them faster",)
    except Busy:
        problem = said.get("problem") if isinstance(said, dict) else None
        return (), (problem,) if isinstance(problem, str) and problem else ()
    except MemoryToolsError:
        return (), ()
