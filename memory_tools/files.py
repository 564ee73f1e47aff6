"""A workspace folder to the memory files in it, and a path to its text. Finds, reads and contains; writes nothing."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memory_tools import globs, seam
from memory_tools.durable import refused
from memory_tools.errors import Forbidden, InvalidInput, MemoryToolsError, NotFound, TooLarge
from memory_tools.records import Found, Scan, Stat, Text
from memory_tools.walk import LEADS_OUT, SUFFIXES, UNPRINTABLE, Earlier, Walk, is_inside, source_of

DEFAULT_INCLUDE: tuple[str, ...] = ("MEMORY.md", "memory.md", "memory/**/*.md", "knowledge/**/*.md", "TOOLS.md", "USER.md")
MAX_BYTES = 32 * 1024 * 1024  # a longer note is reported instead of read
_EVERYTHING = ("**/*.md",)
_MAX_PATH = 4096
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")  # not blocking: a FIFO may have been put in the file's place
_OPEN = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in _FLAGS)


def scan(
    workspace: Path,
    include: Sequence[str],
    exclude: Sequence[str],
    extra_roots: Mapping[str, Path],
    earlier: Earlier | None = None,
) -> Scan:
    """All memory files under the roots, by path; without `include` those of DEFAULT_INCLUDE.

    `earlier`: kept between scans with the same arguments, it makes them faster; while nothing changes the same object comes out.
    NotFound or InvalidInput where the workspace itself is no folder; anything less is skipped with a reason.
    """
    root = _root(workspace)
    walk = Walk(globs.excluded(globs.usable(exclude)), MAX_BYTES, earlier or Earlier())
    for pattern in (*include, *exclude):
        wrong = globs.check_pattern(pattern)
        if wrong is not None:
            walk.skip(pattern, wrong)
    walk.root(root, "", globs.usable(include) if include else DEFAULT_INCLUDE)
    for name, folder in sorted(extra_roots.items()):
        walk.root(os.path.realpath(folder), f"@{name}/", _EVERYTHING)
    return walk.scan()


def read(found: Found, max_bytes: int = MAX_BYTES) -> Text:
    """The file's text, decoded from UTF-8.

    NotFound: vanished. Forbidden: may not be read, or something else stands in its place. TooLarge: above `max_bytes`.
    """
    real = found.real
    try:
        seam.step("open", real)
        fd = os.open(real, _OPEN)
        try:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                raise Forbidden(f"{found.path}: is not a regular file")
            # O_NOFOLLOW looks at the last name only; a folder above may have become a link since.
            if os.path.realpath(real) != real:
                raise Forbidden(f"{found.path}: {LEADS_OUT}")
            if state.st_size > max_bytes:
                raise TooLarge(f"{found.path}: {state.st_size:,} bytes, the limit is {max_bytes:,}", "split the file")
            with open(fd, "rb", closefd=False) as stream:
                raw = stream.read(max_bytes + 1)
        finally:
            os.close(fd)
    except OSError as e:
        raise _unreadable(e, found.path) from e
    if len(raw) > max_bytes:
        raise TooLarge(f"{found.path}: more than {max_bytes:,} bytes", "split the file")
    text, problems = _decoded(raw)
    # The state from before the reading: what is written meanwhile shows as a change the next time.
    return Text(text, hashlib.blake2b(raw, digest_size=16).hexdigest(), Stat.of(state), problems)


def resolve(workspace: Path, extra_roots: Mapping[str, Path], path: str) -> Path:
    """The real path of an existing Markdown file under one of the roots, for reading."""
    root, parts = _contained(workspace, extra_roots, path)
    try:
        # It may fail where a link is swapped for a file just then.
        real = os.path.realpath(root.joinpath(*parts))
    except OSError as e:
        raise _unreadable(e, path) from e
    _check_inside(root, real, path)
    try:
        state = Path(real).stat()
    except OSError as e:
        raise _unreadable(e, path) from e
    if stat.S_ISDIR(state.st_mode):
        raise InvalidInput(f"{path}: is a folder", "name a Markdown file in it")
    if not stat.S_ISREG(state.st_mode):
        raise Forbidden(f"{path}: is not a regular file")
    return Path(real)


def read_path(workspace: Path, extra_roots: Mapping[str, Path], path: str) -> Text:
    """`resolve` and `read` in one."""
    real = resolve(workspace, extra_roots, path)
    return read(Found(path, os.fspath(real), source_of(path), Stat(0, 0, 0, 0)))


def writable(workspace: Path, path: str) -> Path:
    """Where a Markdown file of the workspace may be written: inside after links, and no link itself. It may not exist yet."""
    root, parts = _contained(workspace, {}, path)
    target = Path(os.path.realpath(root.joinpath(*parts[:-1])), parts[-1])
    _check_inside(root, str(target), path)
    if target.is_symlink():
        raise Forbidden(f"{path}: is a symbolic link", "name the file it leads to")
    return target


def _root(workspace: Path) -> str:
    try:
        real = os.path.realpath(workspace, strict=True)
    except PermissionError as e:
        raise refused(e, workspace) from e
    except (OSError, ValueError) as e:  # ValueError: NUL in the name
        raise NotFound(f"{workspace}: no such workspace", "memory-tools init makes one") from e
    if not Path(real).is_dir():
        raise InvalidInput(f"{workspace}: is a file, a workspace is a folder")
    return real


def _contained(workspace: Path, extra_roots: Mapping[str, Path], path: str) -> tuple[Path, list[str]]:
    """The real root that `path` speaks of, and its names below it; all that can be refused by looking at the text is refused here."""
    shown = path[:200].encode("utf-8", "backslashreplace").decode()
    if not path.strip() or UNPRINTABLE.search(path) or len(path) > _MAX_PATH:
        raise InvalidInput(f"not a path: {shown!r}", "name a Markdown file, for example MEMORY.md")
    slashed = path.replace("\\", "/") if sys.platform == "win32" else path
    if slashed.startswith(("/", "~")) or (sys.platform == "win32" and ":" in slashed):
        raise Forbidden(f"{shown}: is not inside the workspace", "paths are relative to the workspace")
    parts = [p for p in slashed.split("/") if p not in ("", ".")]
    if ".." in parts:
        raise Forbidden(f"{shown}: is not inside the workspace", "paths may not hold `..`")
    root = workspace
    if parts and parts[0].startswith("@"):
        named = extra_roots.get(parts[0][1:])
        if named is None:
            known = ", ".join(f"@{name}" for name in sorted(extra_roots)) or "none"
            raise NotFound(f"{shown}: no extra root of that name", f"configured: {known}")
        root, parts = named, parts[1:]
    if not parts or not parts[-1].lower().endswith(SUFFIXES):
        raise Forbidden(f"{shown}: only Markdown files are served", "name a file that ends in .md")
    return Path(_root(root)), parts


def _check_inside(root: Path, real: str, path: str) -> None:
    if not is_inside(str(root), real):
        raise Forbidden(f"{path}: {LEADS_OUT}")
    if not real.lower().endswith(SUFFIXES):
        raise Forbidden(f"{path}: is a symbolic link to a file that is not Markdown")


def _unreadable(e: OSError, path: str) -> MemoryToolsError:
    if isinstance(e, FileNotFoundError):
        return NotFound(f"{path}: no such file")
    return refused(e, Path(path))


def _decoded(raw: bytes) -> tuple[str, tuple[str, ...]]:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace"), ("UTF-16, not UTF-8; save it as UTF-8",)
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode("utf-8"), ()
    except UnicodeDecodeError as e:
        line = len(raw[: e.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
        return raw.decode("utf-8", "replace"), (f"line {line}: not UTF-8; unreadable bytes are shown as \ufffd",)
