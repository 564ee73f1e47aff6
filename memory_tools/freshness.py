"""A scan of the files and the index in, what has to be read anew out. Light: most searches find nothing to do here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_tools.records import Found, Known, Scan, Skipped, Stat, Trace

if TYPE_CHECKING:
    from memory_tools.index import Index

# The VERSION of each module whose change gives the same text other rows; here, so that looking costs no import of them.
VERSIONS = "sections 2, tokens 1, traits 3, identity 1"
RACY_NS = 2_000_000_000  # a file changed so shortly before it was read may change again within the same time stamp

Progress = Callable[[int, int], None]  # done, to do
# Traces of all sections, "" as the id of new ones, in; the ids that the sidecar knows some of those by out (index of trace -> id).
Adopt = Callable[[Sequence[Trace]], Mapping[int, str]]


@dataclass(frozen=True, slots=True)
class Taken:
    """What one pass took in. `waiting`: files that a deadline left for the next pass."""

    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    waiting: int = 0


def stale(index: Index, scan: Scan) -> bool:
    """Is there anything to take in?"""
    return index.meta("versions") != VERSIONS or any(differences(index, scan))


def differences(index: Index, scan: Scan) -> tuple[list[Found], list[str]]:
    """Files to read (new, changed, or read too shortly after they changed) and paths that are gone."""
    known = known_files(index)
    to_read = [f for f in scan.found if f.path not in known or suspect(known[f.path], f.stat)]
    here = {f.path for f in scan.found}
    kept = tuple(s.path for s in scan.skipped if s.keep)
    gone = [p for p in known if p not in here and not any(p == k or p.startswith(k.rstrip("/") + "/") or k in ("", ".") for k in kept)]
    return to_read, sorted(gone)


def changed(index: Index, scan: Scan) -> int:
    """How many files are new, changed or gone, by what can be seen of them: not those that `differences` reads again to be sure."""
    known = known_files(index)
    to_read, gone = differences(index, scan)
    return len(gone) + sum(f.path not in known or known[f.path].stat != f.stat for f in to_read)


def known_files(index: Index) -> dict[str, Known]:
    """Files as the index has them, by path; read once for each state of the index."""
    changes = index.changes()
    if index.files_seen is None or index.files_seen[0] != changes:
        index.files_seen = (changes, read_known(index))
    return index.files_seen[1]


def read_known(index: Index) -> dict[str, Known]:
    """The same, read now: for a transaction, in which another process may have been first."""
    rows = index.connection.execute("SELECT path, id, size, mtime_ns, ctime_ns, inode, hash, read_ns FROM files")
    return {path: Known(id, Stat(size, mtime, ctime, inode), hash, read) for path, id, size, mtime, ctime, inode, hash, read in rows}


def suspect(known: Known, stat: Stat) -> bool:
    """Must it be read? Other stat, or read so shortly after its change that the stat may hide another one."""
    return known.stat != stat or known.read_ns - max(stat.mtime_ns, stat.ctime_ns) < RACY_NS
