"""A scan of the files in, the index brought up to it: what changed is parsed anew, ids are carried along. Never writes a note."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from memory_tools import dates, files, freshness, identity, postings, sections
from memory_tools.errors import MemoryToolsError, NotFound
from memory_tools.freshness import Adopt, Progress, Taken
from memory_tools.records import Document, Found, Scan, Section, Skipped, Text, Trace
from memory_tools.rows import delete_file, replace_file, store_stat, stored_traces

if TYPE_CHECKING:
    import sqlite3

    from memory_tools.index import Index

CHUNK_BYTES = 1_000_000  # of new files in one transaction, so that a long first index can be stopped and gone on with

Read = Callable[[Found], Text]


def take_in(
    index: Index,
    scan: Scan,
    *,
    read: Read = files.read,
    deadline: float | None = None,
    before: Sequence[Trace] = (),
    adopt: Adopt | None = None,
    progress: Progress | None = None,
) -> Taken:
    """Bring the index up to the scan. Raises Busy.

    `deadline`: time.monotonic() after which no further chunk of new files is begun. `before`: sections of an
    earlier index, whose ids go on.
    """
    if index.meta("versions") != freshness.VERSIONS:
        _forget_texts(index)
    to_read, gone = freshness.differences(index, scan)
    if not to_read and not gone:
        return Taken()
    known = freshness.known_files(index)
    familiar = [f for f in to_read if f.path in known]
    # The newest notes first: they are the ones asked about while an old archive is still being read.
    fresh = sorted((f for f in to_read if f.path not in known), key=lambda f: ("/" in f.path, -f.stat.mtime_ns, f.path))
    if before:
        chunks = [fresh]
    elif familiar or gone:  # sections may have moved among these and the new files, so they are matched in one go
        first, *others = _chunks(fresh)
        chunks = [familiar + first, *others]
    else:
        chunks = _chunks(fresh)
    changed: list[str] = []
    skipped: list[Skipped] = []
    done, removed = 0, gone
    for number, chunk in enumerate(chunks):
        if number and deadline is not None and time.monotonic() > deadline:
            return Taken(tuple(changed), tuple(gone), tuple(skipped), waiting=len(to_read) - done)
        report = (lambda n, base=done: progress(base + n, len(to_read))) if progress else None
        with index.write() as connection:
            _take_chunk(index, connection, chunk, removed, before, read, adopt, changed, skipped, report)
        done, removed = done + len(chunk), []
    return Taken(tuple(changed), tuple(gone), tuple(skipped))


def _chunks(found: Sequence[Found]) -> list[list[Found]]:
    """At least one, in the order given."""
    chunks: list[list[Found]] = [[]]
    size = 0
    for one in found:
        if chunks[-1] and size + one.stat.size > CHUNK_BYTES:
            chunks.append([])
            size = 0
        chunks[-1].append(one)
        size += one.stat.size
    return chunks


def _forget_texts(index: Index) -> None:
    """Another splitter or tokeniser: every file is read anew; sections stay until then, so that ids are carried."""
    with index.write() as connection:
        connection.execute("UPDATE files SET hash = '', read_ns = 0")
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('versions', ?)", (freshness.VERSIONS,))


def _take_chunk(
    index: Index,
    connection: sqlite3.Connection,
    chunk: Sequence[Found],
    gone: Sequence[str],
    before_all: Sequence[Trace],
    read: Read,
    adopt: Adopt | None,
    changed: list[str],
    skipped: list[Skipped],
    progress: Callable[[int], None] | None,
) -> None:
    known = freshness.read_known(index)  # again, inside the transaction: another process may have been first
    gone = [p for p in gone if p in known]
    parsed: list[tuple[Found, Text, int, Document]] = []
    for done, found in enumerate(chunk, 1):
        before = known.get(found.path)
        if before is not None and not freshness.suspect(before, found.stat):
            continue
        try:
            text = read(found)
        except NotFound:  # vanished between the scan and now
            gone = [*gone, found.path] if before else gone
            continue
        except MemoryToolsError as e:  # cannot be read: what is known of it stays, and it is told
            skipped.append(Skipped(found.path, e.message, keep=True))
            continue
        now_ns = time.time_ns()
        if before is not None and before.hash == text.hash:
            if before.stat != text.stat or now_ns - max(text.stat.mtime_ns, text.stat.ctime_ns) >= freshness.RACY_NS:
                store_stat(connection, before.id, text.stat, now_ns)
            continue
        parsed.append((found, text, now_ns, sections.parse(found.path, text.text)))
        if progress:
            progress(done)
    old = [*before_all, *stored_traces(connection, [*gone, *(f.path for f, *_ in parsed if f.path in known)])]
    traces = _carry_ids(connection, old, [(f, t, d.sections) for f, t, _, d in parsed], adopt)
    writer = postings.Writer()
    # First out, then in: a section that moved to another file keeps its id, which no two rows may hold.
    for path in [*gone, *(found.path for found, *_ in parsed)]:
        delete_file(connection, path)
    for found, text, now_ns, document in parsed:
        replace_file(connection, found, text, now_ns, document, traces[found.path], writer)
        changed.append(found.path)
    writer.flush(connection)


# --- identity -------------------------------------------------------------------


def _carry_ids(
    connection: sqlite3.Connection,
    old: Sequence[Trace],
    parsed: Sequence[tuple[Found, Text, tuple[Section, ...]]],
    adopt: Adopt | None,
) -> Mapping[str, list[Trace]]:
    """Traces of the new sections by path: with the id of the section they continue, or one that the sidecar knows, or a new one."""
    old_files = {t.path for t in old}
    new: list[Trace] = []
    for found, text, found_sections in parsed:
        first_seen = _first_seen(found, new_file=found.path not in old_files)
        new += [replace(identity.trace_of(s, text.text, order), edited=first_seen) for order, s in enumerate(found_sections)]
    for n, o in {n: o for o, n in identity.match(old, new).pairs.items()}.items():
        before = old[o]  # white space is no edit: the same body keeps its time
        new[n] = replace(new[n], id=before.id, edited=before.edited if before.body == new[n].body else new[n].edited)
        if before.address != new[n].address:
            connection.execute("INSERT OR REPLACE INTO former VALUES (?, ?)", (before.address, before.id))
    ids = {*(row[0] for row in connection.execute("SELECT id FROM sections")), *(t.id for t in old), *(t.id for t in new)}
    if adopt is not None and not all(t.id for t in new):
        paths = {t.path for t in new}
        others = [t for t in stored_traces(connection) if t.path not in paths]
        for at, id in adopt([*new, *others]).items():
            if at < len(new) and not new[at].id and id not in ids:
                new[at] = replace(new[at], id=id)
                ids.add(id)
    out: dict[str, list[Trace]] = {found.path: [] for found, _, _ in parsed}
    for trace in new:
        named = trace if trace.id else replace(trace, id=identity.new_id(trace, ids))
        ids.add(named.id)
        out[trace.path].append(named)
    return out


def _first_seen(found: Found, *, new_file: bool) -> datetime:
    """A note that the index meets for the first time was written on its day; an edit of a known one was made when the file says."""
    day = dates.note_day(found.path)
    if new_file and day:
        return datetime.combine(date.fromordinal(day), datetime.min.time(), UTC)
    return datetime.fromtimestamp(min(max(found.stat.mtime_ns / 1e9, 0), 4e9), UTC)
