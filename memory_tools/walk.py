"""A root folder and globs to the files in it that they name, each with its state, and what was skipped. Reads folders only."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path

from memory_tools import globs
from memory_tools.records import Found, Scan, Skipped, Stat

SUFFIXES = (".md", ".markdown")
UNPRINTABLE = re.compile("[\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]")
LEADS_OUT = "is a symbolic link that leads out of its root; to search it, name its folder under extra_roots"
NEVER_WALKED = frozenset({"node_modules", "__pycache__", "venv"})  # and whatever begins with a dot
_MAX_DEPTH = 40
MOST_NAMES = 200_000


@dataclass(slots=True)
class Earlier:
    """What the last walk over the same roots and patterns found: what is as it was then is not made, nor judged by its name, again."""

    named: dict[str, bool] = field(default_factory=dict)  # path -> whether the patterns name it
    found: dict[str, Found] = field(default_factory=dict)  # before files that are there twice are sorted out
    skipped: list[Skipped] = field(default_factory=list)  # the same
    scan: Scan = field(default_factory=lambda: Scan(()))

    def same(self, path: str, real: str, state: os.stat_result) -> Found | None:
        """What was found at this path, if it is as it was."""
        before = self.found.get(path)
        return before if before and before.real == real and stat.S_ISREG(state.st_mode) and before.stat.is_of(state) else None


@dataclass(slots=True)
class Walk:
    """Collects over one or more roots. `exclude` is globs.excluded's pattern; files above `max_bytes` are skipped."""

    exclude: re.Pattern[str]
    max_bytes: int
    earlier: Earlier = field(default_factory=Earlier)
    changed: bool = False  # something is not as the walk before found it
    found: list[Found] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def root(self, root: str, prefix: str, include: tuple[str, ...]) -> None:
        """Adds the files under the real path `root` that `include` names; their paths begin with `prefix`."""
        branch = _Branch(self, root, prefix, globs.included(include))
        for folder, deep in globs.walks(include):
            if folder and branch.left_out(folder):
                continue
            start = str(Path(root, folder))
            real = os.path.realpath(start)
            if not is_inside(root, real):
                self.skip(prefix + folder, LEADS_OUT)
            else:
                branch.folder(real, folder + "/" if folder else "", deep, (real,))

    def skip(self, path: str, reason: str, keep: bool = False) -> None:
        self.skipped.append(Skipped(path.encode("utf-8", "backslashreplace").decode(), reason, keep))

    def scan(self) -> Scan:
        """All that was collected, by path. The same object as the last time where nothing changed."""
        earlier = self.earlier
        if not self.changed and len(self.found) == len(earlier.found) and self.skipped == earlier.skipped:
            return earlier.scan
        skipped = list(self.skipped)
        scan = Scan(self._once(), tuple(sorted(self.skipped, key=lambda s: (s.path, s.reason))))
        earlier.scan = scan  # first: interrupted here (Ctrl-C), the next walk still sees the change
        earlier.found, earlier.skipped = {one.path: one for one in self.found}, skipped
        return scan

    def _once(self) -> tuple[Found, ...]:
        """Found files by path, each once by identity: MEMORY.md and memory.md may be one file, a link may lead to another note."""
        known: dict[tuple[int, int, int], str] = {}
        kept: list[Found] = []
        for one in sorted(self.found, key=lambda f: f.path):
            # Size and time too: some network file systems give the same inode number to several files.
            key = (one.stat.inode, one.stat.size, one.stat.mtime_ns)
            first = known.setdefault(key, one.path) if one.stat.inode else one.path
            if first == one.path:
                kept.append(one)
            elif _same_file(one.real, next(f.real for f in kept if f.path == first)):
                self.skip(one.path, f"is the same file as {first}")
            else:
                kept.append(one)
        return tuple(kept)


@dataclass(frozen=True, slots=True)
class _Branch:
    walk: Walk
    root: str
    prefix: str
    wanted: re.Pattern[str]

    def folder(self, folder: str, below: str, deep: bool, above: tuple[str, ...]) -> None:
        """Lists one folder. `above`: the real folders on the way down to it, itself included, so that links make no circles."""
        try:
            with os.scandir(folder) as entries:
                listed = list(entries)
        except FileNotFoundError:
            if not below and self.prefix:
                self.walk.skip(self.prefix, "the folder does not exist", keep=True)
            return
        except OSError as e:
            # NotADirectoryError: `memory` may be a file. Anything else may pass: what is known of the folder stays.
            self.walk.skip(self.prefix + below, reason(e), keep=e.errno != errno.ENOTDIR)
            return
        earlier, found, top = self.walk.earlier, self.walk.found, self.prefix + below
        for entry in listed:
            name = entry.name
            if name[0] == "." or name in NEVER_WALKED:
                continue
            try:
                # Nearly all files are as they were, and this is done before every search.
                if top + name in earlier.found and (same := earlier.same(top + name, entry.path, _state(entry))):
                    found.append(same)
                    continue
                self.entry(entry, below + name, deep, above)
            except FileNotFoundError:
                continue  # gone since the listing
            except OSError as e:
                self.walk.skip(self.prefix + below + name, reason(e), keep=True)

    def entry(self, entry: os.DirEntry[str], path: str, deep: bool, above: tuple[str, ...]) -> None:
        if entry.is_symlink():
            self.link(entry, path, deep, above)
        elif entry.is_dir(follow_symlinks=False):
            if deep and not self.left_out(path):
                self.below(entry.path, path, above)
        elif self.names(path):
            self.file(entry.path, path, _state(entry))

    def below(self, folder: str, path: str, above: tuple[str, ...]) -> None:
        if len(above) > _MAX_DEPTH:
            self.walk.skip(self.prefix + path, f"is nested more than {_MAX_DEPTH} folders deep")
        else:
            self.folder(folder, path + "/", True, (*above, folder))

    def names(self, path: str) -> bool:
        named = self.walk.earlier.named
        known = named.get(self.prefix + path)
        if known is None:
            if len(named) > MOST_NAMES:
                named.clear()
            known = named[self.prefix + path] = self._names(path)
        return known

    def _names(self, path: str) -> bool:
        suffix = path[-3:].lower()
        if suffix != ".md" and not path.lower().endswith(SUFFIXES):
            return False
        plain = path[:-3] + suffix if suffix == ".md" else path  # NOTES.MD is Markdown
        return self.wanted.fullmatch(plain) is not None and not self.left_out(path)

    def left_out(self, path: str) -> bool:
        return self.walk.exclude.fullmatch(self.prefix + path) is not None

    def link(self, entry: os.DirEntry[str], path: str, deep: bool, above: tuple[str, ...]) -> None:
        """A link is followed where it stays inside its root and leads to what would be searched there."""
        names = self.names(path)
        if not names and (not deep or self.left_out(path)):
            return
        real = os.path.realpath(entry.path)
        try:
            state = Path(real).stat()
        except FileNotFoundError:
            if names:
                self.walk.skip(self.prefix + path, "is a symbolic link that leads nowhere")
            return
        is_folder = stat.S_ISDIR(state.st_mode)
        if not (names or is_folder):
            return
        shown = self.prefix + path
        if not is_inside(self.root, real):
            self.walk.skip(shown, LEADS_OUT)
        elif any(part[0] == "." or part in NEVER_WALKED for part in Path(real).relative_to(self.root).parts):
            self.walk.skip(shown, "is a symbolic link into a hidden folder")
        elif is_folder:
            if any(is_inside(real, one) for one in above):
                self.walk.skip(shown, "is a symbolic link to a folder above it")
            else:
                self.below(real, path, above)
        elif real.lower().endswith(SUFFIXES):
            self.file(real, path, state)
        else:
            self.walk.skip(shown, "is a symbolic link to a file that is not Markdown")

    def file(self, real: str, path: str, state: os.stat_result) -> None:
        path = self.prefix + path
        same = self.walk.earlier.same(path, real, state)
        if same is not None:  # through a link
            self.walk.found.append(same)
        elif UNPRINTABLE.search(path):
            self.walk.skip(path, "its name holds a control character or is not UTF-8")
        elif not stat.S_ISREG(state.st_mode):
            self.walk.skip(path, "is not a regular file")
        elif state.st_size > self.walk.max_bytes:
            self.walk.skip(path, f"{state.st_size:,} bytes, the limit is {self.walk.max_bytes:,}; split it")
        else:
            self.walk.changed = True
            self.walk.found.append(Found(path, real, source_of(path), Stat.of(state)))


def source_of(path: str) -> str:
    """memory | knowledge | tools | archive | extra, by the path alone."""
    if path.startswith("@"):
        return "extra"
    if path == "TOOLS.md" or path.startswith("memory/tools/"):
        return "tools"
    if path.startswith("memory/archive/"):
        return "archive"
    return "knowledge" if path.startswith("knowledge/") else "memory"


def _state(entry: os.DirEntry[str]) -> os.stat_result:
    # On Windows the listing knows neither inode nor link count.
    return Path(entry.path).stat() if sys.platform == "win32" else entry.stat(follow_symlinks=False)


def is_inside(root: str, real: str) -> bool:
    """Whether a real path is the real path `root` or below it."""
    return real == root or real.startswith(root if root.endswith(os.sep) else root + os.sep)


def reason(e: OSError) -> str:
    return (e.strerror or str(e)).lower()


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
