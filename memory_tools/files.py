"""A workspace folder to the memory files in it, and a path to its text. Finds, reads and contains; writes nothing."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memory_tools import globs, seam
from memory_tools.durable import refused
from memory_tools.errors import Forbidden, InvalidInput, MemoryToolsError, NotFound, TooLarge
from memory_tools.records import Found, Scan, Skipped, Stat, Text

DEFAULT_INCLUDE: tuple[str, ...] = ("MEMORY.md", "memory.md", "memory/**/*.md", "knowledge/**/*.md", "TOOLS.md", "USER.md")
MAX_BYTES = 32 * 1024 * 1024  # a longer note is reported instead of read
_EVERYTHING = ("**/*.md",)
_SUFFIXES = (".md", ".markdown")
_NEVER_WALKED = frozenset({"node_modules", "__pycache__", "venv"})  # and whatever begins with a dot
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]")
_MAX_PATH = 4096
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LEADS_OUT = "is a symbolic link that leads out of its root; to search it, name its folder under extra_roots"


def scan(workspace: Path, include: Sequence[str], exclude: Sequence[str], extra_roots: Mapping[str, Path]) -> Scan:
    """All memory files under the roots, by path. NotFound or InvalidInput where the workspace itself is no folder; the rest is skipped with a reason."""
    root = _root(workspace)
    walk = _Walk(globs.excluded(globs.as_key(exclude)))
    walk.root(root, "", globs.as_key(include))
    for name, folder in sorted(extra_roots.items()):
        walk.root(os.path.realpath(folder), f"@{name}/", _EVERYTHING)
    found = [f for f, _ in sorted(walk.found.values(), key=lambda pair: pair[0].path)]
    return Scan(tuple(_once(found, walk)), tuple(sorted(walk.skipped, key=lambda s: (s.path, s.reason))))


def read(found: Found, max_bytes: int = MAX_BYTES) -> Text:
    """The file's text as UTF-8. NotFound where it vanished, Forbidden where it may not be read or is no longer itself, TooLarge above `max_bytes`."""
    real = os.fspath(found.real)
    try:
        seam.step("open", real)
        fd = os.open(real, _OPEN)
        try:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                raise Forbidden(f"{found.path}: not a regular file")
            # O_NOFOLLOW looks at the last name only; a folder above may have become a link since.
            if os.path.realpath(real) != real:
                raise Forbidden(f"{found.path}: {_LEADS_OUT}")
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
    return Text(text, hashlib.blake2b(raw, digest_size=16).hexdigest(), _stat(state), problems)


def resolve(workspace: Path, extra_roots: Mapping[str, Path], path: str) -> Path:
    """The real path of an existing Markdown file under one of the roots, for reading."""
    root, parts = _contained_parts(workspace, extra_roots, path)
    real = os.path.realpath(os.path.join(root, *parts))
    _check_inside(root, real, path)
    try:
        state = os.stat(real)
    except OSError as e:
        raise _unreadable(e, path) from e
    if stat.S_ISDIR(state.st_mode):
        raise InvalidInput(f"{path}: is a folder", "name a Markdown file in it")
    if not stat.S_ISREG(state.st_mode):
        raise Forbidden(f"{path}: not a regular file")
    return Path(real)


def read_path(workspace: Path, extra_roots: Mapping[str, Path], path: str) -> Text:
    """`resolve` and `read` in one."""
    real = resolve(workspace, extra_roots, path)
    return read(Found(path, real, source_of(path), Stat(0, 0, 0, 0)))


def writable(workspace: Path, path: str) -> Path:
    """Where a Markdown file of the workspace may be written: its folder contained after links, the file itself no link. It may not exist yet."""
    root, parts = _contained_parts(workspace, {}, path)
    folder = os.path.realpath(os.path.join(root, *parts[:-1]))
    target = os.path.join(folder, parts[-1])
    _check_inside(root, target, path)
    if os.path.islink(target):
        raise Forbidden(f"{path}: is a symbolic link", "name the file it leads to")
    return Path(target)


def source_of(path: str) -> str:
    """memory | knowledge | tools | archive | extra, by the path alone."""
    if path.startswith("@"):
        return "extra"
    if path == "TOOLS.md" or path.startswith("memory/tools/"):
        return "tools"
    if path.startswith("memory/archive/"):
        return "archive"
    return "knowledge" if path.startswith("knowledge/") else "memory"


@dataclass(slots=True)
class _Walk:
    exclude: re.Pattern[str]
    found: dict[str, tuple[Found, int]] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def skip(self, path: str, reason: str, keep: bool = False) -> None:
        self.skipped.append(Skipped(path.encode("utf-8", "backslashreplace").decode(), reason, keep))

    def root(self, root: str, prefix: str, include: tuple[str, ...]) -> None:
        wanted = globs.included(include)
        for folder, deep in globs.walks(include):
            start = os.path.join(root, *folder.split("/")) if folder else root
            if folder and os.path.islink(start) or os.path.realpath(start) != start:
                real = os.path.realpath(start)
                if not _is_inside(root, real):
                    self.skip(prefix + folder, _LEADS_OUT)
                    continue
            self.folder(root, start, prefix, folder + "/" if folder else "", wanted, deep, frozenset())

    def folder(self, root: str, folder: str, prefix: str, below: str, wanted: re.Pattern[str], deep: bool, above: frozenset[str]) -> None:
        try:
            with os.scandir(folder) as entries:
                listed = list(entries)
        except FileNotFoundError:
            if not below and prefix:
                self.skip(prefix, "the folder does not exist", keep=True)
            return
        except OSError as e:
            # NotADirectoryError: `memory` may be a file. Anything else may pass: what is known of the folder stays.
            self.skip(prefix + below, _reason(e), keep=e.errno != errno.ENOTDIR)
            return
        for entry in listed:
            name = entry.name
            path = below + name
            if name[0] == "." or name in _NEVER_WALKED:
                continue
            try:
                if entry.is_symlink():
                    self.link(root, entry, prefix, path, wanted, deep, above | {folder})
                elif entry.is_dir(follow_symlinks=False):
                    if deep and not self.left_out(prefix + path):
                        self.folder(root, entry.path, prefix, path + "/", wanted, deep, above)
                elif wanted.fullmatch(_plain_suffix(path)) and not self.left_out(prefix + path):
                    self.file(entry.path, prefix + path, entry.stat(follow_symlinks=False) if sys.platform != "win32" else os.stat(entry.path))
            except FileNotFoundError:
                continue  # gone since the listing
            except OSError as e:
                self.skip(prefix + path, _reason(e), keep=True)

    def left_out(self, path: str) -> bool:
        return self.exclude.fullmatch(path) is not None

    def link(self, root: str, entry: os.DirEntry[str], prefix: str, path: str, wanted: re.Pattern[str], deep: bool, above: frozenset[str]) -> None:
        matches = wanted.fullmatch(_plain_suffix(path)) is not None
        if self.left_out(prefix + path) or not (matches or deep):
            return
        real = os.path.realpath(entry.path)
        try:
            state = os.stat(real)
        except FileNotFoundError:
            if matches:
                self.skip(prefix + path, "is a symbolic link that leads nowhere")
            return
        is_folder = stat.S_ISDIR(state.st_mode)
        if not is_folder and not matches:
            return
        if not _is_inside(root, real):
            self.skip(prefix + path, _LEADS_OUT)
        elif any(part[0] == "." or part in _NEVER_WALKED for part in os.path.relpath(real, root).split(os.sep) if part != "."):
            self.skip(prefix + path, "is a symbolic link into a hidden folder")
        elif not is_folder:
            if real.lower().endswith(_SUFFIXES):
                self.file(real, prefix + path, state)
            else:
                self.skip(prefix + path, "is a symbolic link to a file that is not Markdown")
        elif any(_is_inside(real, one) for one in above):
            self.skip(prefix + path, "is a symbolic link to a folder above it")
        else:
            self.folder(root, real, prefix, path + "/", wanted, True, above | {real})

    def file(self, real: str, path: str, state: os.stat_result) -> None:
        if _UNPRINTABLE.search(path):
            self.skip(path, "its name holds a control character or is not UTF-8")
        elif not stat.S_ISREG(state.st_mode):
            self.skip(path, "not a regular file")
        elif state.st_size > MAX_BYTES:
            self.skip(path, f"{state.st_size:,} bytes, the limit is {MAX_BYTES:,}; split it")
        else:
            self.found[path] = (Found(path, Path(real), source_of(path), _stat(state)), state.st_dev)


def _once(found: Sequence[Found], walk: _Walk) -> Iterator[Found]:
    """Each file once by identity: MEMORY.md and memory.md may be one file, and a link may lead to another note. The first path wins."""
    known: dict[tuple[int, int, int, int], str] = {}
    for one in found:
        key = (walk.found[one.path][1], one.stat.inode, one.stat.size, one.stat.mtime_ns)
        if one.stat.inode and known.setdefault(key, one.path) != one.path:
            walk.skip(one.path, f"is the same file as {known[key]}")
        else:
            yield one


def _stat(state: os.stat_result) -> Stat:
    return Stat(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


def _plain_suffix(path: str) -> str:
    return path[:-3] + ".md" if path[-3:].lower() == ".md" else path


def _root(workspace: Path) -> str:
    try:
        real = os.path.realpath(workspace, strict=True)
    except (OSError, ValueError) as e:
        if isinstance(e, PermissionError):
            raise refused(e, workspace) from e
        raise NotFound(f"{workspace}: no such workspace", "memory-tools init makes one") from e
    if not os.path.isdir(real):
        raise InvalidInput(f"{workspace}: is a file, a workspace is a folder")
    return real


def _contained_parts(workspace: Path, extra_roots: Mapping[str, Path], path: str) -> tuple[str, list[str]]:
    """The real root that `path` speaks of, and its names below it; all that can be refused by looking at the text is refused here."""
    shown = path.encode("utf-8", "backslashreplace").decode()[:200]
    if not path.strip() or _UNPRINTABLE.search(path) or len(path) > _MAX_PATH:
        raise InvalidInput(f"not a path: {shown!r}", "name a Markdown file, for example MEMORY.md")
    slashed = path.replace("\\", "/") if sys.platform == "win32" else path
    if slashed.startswith(("/", "~")) or (sys.platform == "win32" and ":" in slashed):
        raise Forbidden(f"{shown}: not inside the workspace", "paths are relative to the workspace")
    parts = [p for p in slashed.split("/") if p not in ("", ".")]
    if ".." in parts:
        raise Forbidden(f"{shown}: not inside the workspace", "paths may not hold `..`")
    root: Path | None = workspace
    if parts and parts[0].startswith("@"):
        root = extra_roots.get(parts[0][1:])
        if root is None:
            known = ", ".join(f"@{name}" for name in sorted(extra_roots)) or "none"
            raise NotFound(f"{shown}: no extra root of that name", f"configured: {known}")
        parts = parts[1:]
    if not parts or not parts[-1].lower().endswith(_SUFFIXES):
        raise Forbidden(f"{shown}: only Markdown files are served", "name a file that ends in .md")
    return _root(root), parts


def _check_inside(root: str, real: str, path: str) -> None:
    if not _is_inside(root, real):
        raise Forbidden(f"{path}: {_LEADS_OUT}")
    if not real.lower().endswith(_SUFFIXES):
        raise Forbidden(f"{path}: is a symbolic link to a file that is not Markdown")


def _is_inside(root: str, real: str) -> bool:
    return real == root or real.startswith(root if root.endswith(os.sep) else root + os.sep)


def _reason(e: OSError) -> str:
    return (e.strerror or str(e)).lower()


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
        line = raw.count(b"\n", 0, e.start) + 1
        return raw.decode("utf-8", "replace"), (f"line {line}: not UTF-8; unreadable bytes are shown as \ufffd",)
