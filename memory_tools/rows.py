"""One parsed file in, its rows in the index out: file, sections, blocks and postings; and the traces of sections read back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memory_tools import dates, postings, tokens, traits
from memory_tools.records import Block, Document, Found, Section, Stat, Text, Trace
from memory_tools.searched import searched_text, text_hash
from memory_tools.traits import Traits

if TYPE_CHECKING:
    import sqlite3


def stored_traces(connection: sqlite3.Connection, paths: Iterable[str] | None = None) -> list[Trace]:
    """Traces of the sections as the index has them, in path and file order; of all files without `paths`."""
    sql = (
        "SELECT s.id, s.address, f.path, s.slug, s.heading, s.ord, s.body, s.sketch, s.size, s.edited"
        " FROM sections s JOIN files f ON f.id = s.file"
    )
    if paths is None:
        rows = connection.execute(f"{sql} ORDER BY f.path, s.ord").fetchall()
    else:
        rows = [row for path in sorted(set(paths)) for row in connection.execute(f"{sql} WHERE f.path = ? ORDER BY s.ord", (path,))]
    return [
        Trace(id, address, path, slug, heading, order, body, sketch, size, datetime.fromtimestamp(edited, UTC))
        for id, address, path, slug, heading, order, body, sketch, size, edited in rows
    ]


def store_stat(connection: sqlite3.Connection, file: int, stat: Stat, now_ns: int) -> None:
    connection.execute(
        "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, read_ns = ? WHERE id = ?",
        (stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode, now_ns, file),
    )


def delete_file(connection: sqlite3.Connection, path: str) -> None:
    row = connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
    if row is not None:
        connection.execute("DELETE FROM blocks WHERE file = ?", row)
        connection.execute("DELETE FROM sections WHERE file = ?", row)
        connection.execute("DELETE FROM files WHERE id = ?", row)


def replace_file(
    connection: sqlite3.Connection,
    found: Found,
    text: Text,
    now_ns: int,
    document: Document,
    traces: Sequence[Trace],
    writer: postings.Writer,
) -> None:
    delete_file(connection, found.path)
    problems = json.dumps([*text.problems, *document.problems], ensure_ascii=False)
    stat = text.stat
    cursor = connection.execute(
        "INSERT INTO files (path, source, size, mtime_ns, ctime_ns, inode, hash, read_ns, day, lines, chars, problems, front_matter)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            found.path,
            found.source,
            stat.size,
            stat.mtime_ns,
            stat.ctime_ns,
            stat.inode,
            text.hash,
            now_ns,
            dates.note_day(found.path),
            document.total_lines,
            len(text.text),
            problems,
            json.dumps(document.front_matter, ensure_ascii=False, default=str),
        ),
    )
    file = cursor.lastrowid
    assert file is not None
    # Ids are never used twice: postings of deleted blocks are told by an id that no block has.
    first = int(connection.execute("SELECT coalesce((SELECT value FROM meta WHERE key = 'next_block'), 1)").fetchone()[0])
    key = int(connection.execute("SELECT coalesce((SELECT value FROM meta WHERE key = 'next_section'), 1)").fetchone()[0])
    block_rows: list[tuple[object, ...]] = []
    section_rows: list[tuple[object, ...]] = []
    for order, (section, trace) in enumerate(zip(document.sections, traces, strict=True)):
        assert trace.edited is not None
        section_rows.append(
            (
                key,
                trace.id,
                file,
                order,
                section.address,
                section.slug,
                section.heading,
                json.dumps(section.headings, ensure_ascii=False),
                section.level,
                section.start_line,
                section.end_line,
                text.text[section.start : section.end],
                trace.body,
                trace.sketch,
                trace.size,
                trace.edited.timestamp(),
                section.importance,
                json.dumps(section.triggers, ensure_ascii=False),
                section.project,
            )
        )
        below = document.sections[order + 1] if order + 1 < len(document.sections) else None
        # A heading with nothing but subsections under it says nothing by itself; its words are in the paths of those.
        title = len(section.blocks) == 1 and section.level > 0 and below is not None and below.level > section.level
        for block, traits_of in zip(section.blocks, traits.of_section(section), strict=True):
            row = replace(block, kind="title") if title else block
            block_rows.append(_block_row(first + len(block_rows), file, key, section, row, traits_of, writer))
        key += 1
    connection.executemany(f"INSERT INTO sections VALUES ({', '.join('?' * 19)})", section_rows)
    connection.executemany(
        "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT row FROM vectors WHERE hash = ?11))", block_rows
    )
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('next_block', ?)", (first + len(block_rows),))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('next_section', ?)", (key,))


def _block_row(id: int, file: int, key: int, section: Section, block: Block, found: Traits, writer: postings.Writer) -> tuple[object, ...]:
    searched = searched_text(block.kind, block.text, section.headings, section.triggers)
    terms = Counter(tokens.tokenize(searched))
    writer.add(id, {**terms, **dict.fromkeys(found.terms, 1)})
    return (
        id,
        file,
        key,
        block.kind,
        block.start_line,
        block.end_line,
        block.start - section.start,
        block.end - section.start,
        sum(terms.values()),
        found.flags,
        text_hash(searched),
    )
