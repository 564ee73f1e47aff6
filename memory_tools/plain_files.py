"""The path of a file that a workspace brought in, its bytes out: regular files only, never through a link, never more than a bound.

A stranger's workspace may hold links to files elsewhere, pipes that nobody writes to, and files without an end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from memory_tools import durable
from memory_tools.errors import Forbidden

MAX_BYTES = 256 * 1024 * 1024
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")  # not blocking: opening a FIFO waits for a writer
_OPEN = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in _FLAGS)


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes | None:
    """A regular file's bytes, None where there is none. Raises Forbidden, InvalidInput or Busy."""
    stream = opened(path, max_bytes)
    if stream is None:
        return None
    with stream:
        try:
            return stream.read(max_bytes)
        except OSError as e:
            raise durable.refused(e, path) from e


def opened(path: Path, max_bytes: int = MAX_BYTES) -> BinaryIO | None:
    """As `read_bytes`, but the open file."""
    try:
        fd = os.open(path, _OPEN)
    except FileNotFoundError:
        return None
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.EMLINK):
            raise Forbidden(f"{path}: is a symbolic link", "only plain files are read here; put the file itself in its place") from e
        raise durable.refused(e, path) from e
    state = os.fstat(fd)
    if stat.S_ISREG(state.st_mode) and state.st_size <= max_bytes:
        return os.fdopen(fd, "rb")
    os.close(fd)
    what = "is a directory" if stat.S_ISDIR(state.st_mode) else "is not a regular file"
    raise Forbidden(f"{path}: {f'larger than {max_bytes:,} bytes' if stat.S_ISREG(state.st_mode) else what}")


def leads_out(root: Path, folder: Path) -> bool:
    """Whether `folder`, there or not yet, lies outside `root` once links are followed."""
    real, top = os.path.realpath(folder), os.path.realpath(root)
    return real != top and not real.startswith(top.rstrip(os.sep) + os.sep)


def check_inside(root: Path, folder: Path) -> None:
    """Raises Forbidden where `folder` leads out of `root` through a link."""
    if leads_out(root, folder):
        raise Forbidden(f"{folder}: is a symbolic link that leads out of the workspace", "put a folder in its place")
