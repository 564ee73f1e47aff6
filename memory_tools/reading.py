"""A path, citation or address in, exact lines of one file out. Reads the file itself; the index only says where a section is."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tools import files, sections
from memory_tools.errors import InvalidInput, NotFound
from memory_tools.reports import Excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memory_tools.index import Index

MAX_CHARS = 20_000  # of one excerpt: what an agent's host loads of a file at the most; `next` says where to go on


def excerpt(
    workspace: Path,
    extra_roots: Mapping[str, Path],
    index: Index,
    reference: str,
    from_line: int | str | None,
    lines: int | None,
) -> Excerpt:
    """Lines of the file that `reference` names. `from_line` is a line, or `line:character` as an earlier excerpt's `next` gave it.

    Raises InvalidInput, NotFound (with the nearest names), Forbidden.
    """
    asked = sections.parse_reference(reference)
    first, offset = _start(from_line)
    if lines is not None and (isinstance(lines, bool) or not isinstance(lines, int) or lines < 1):
        raise InvalidInput(f"lines: expected a whole number from 1, not {lines!r}")
    last: int | None = None
    if asked.slug is not None:
        low, high = section_lines(index, f"{asked.path}#{asked.slug}")
        first, last = max(first or low, low), high
    elif asked.start_line is not None:
        first, last = first or asked.start_line, asked.end_line or asked.start_line
    first, asked_end = first or 1, last
    try:
        text = files.read_path(workspace, extra_roots, asked.path)
    except NotFound as e:
        raise NotFound(e.message, e.hint or nearest(asked.path, known_paths(index))) from e
    found = sections.split_lines(text.text)
    total = len(found)
    if lines is not None:
        last = min(last, first + lines - 1) if last is not None else first + lines - 1
    notes = list(text.problems)
    # What was named is read to its end, not on into what stands behind it.
    end = min(asked_end or total, total)
    if first > end:
        notes.append(f"end of file: {asked.path} has {total} lines" if first > total else f"{reference} ends at line {end}")
        return Excerpt(asked.path, "", first, first - 1, total, None, tuple(notes))
    if last is not None and last > total:
        notes.append(f"end of file: {asked.path} has {total} lines")
    return _bounded(asked.path, found, first, min(last or end, end), end, offset, notes)


def _start(from_line: int | str | None) -> tuple[int | None, int]:
    """(line, characters of it to leave out)."""
    if from_line is None:
        return None, 0
    line, _, offset = str(from_line).partition(":")
    if (
        isinstance(from_line, bool)
        or len(str(from_line)) > 18  # before int(), which refuses thousands of digits in its own way
        or not line.isdecimal()
        or int(line) < 1
        or (offset and not offset.isdecimal())
    ):
        raise InvalidInput(f"from: expected a line number from 1 (or line:character), not {str(from_line)[:60]!r}")
    return int(line), int(offset or 0)


def _bounded(path: str, found: Sequence[str], first: int, last: int, end: int, offset: int, notes: list[str]) -> Excerpt:
    """Whole lines up to MAX_CHARS; a line that is longer alone is cut, and `next` goes on inside it. `end`: the last line asked for."""
    total = len(found)
    taken: list[str] = []
    room, line = MAX_CHARS, first
    while line <= last:
        piece = found[line - 1][offset:] if line == first else found[line - 1]
        if len(piece) > room:
            if not taken:
                begin = offset if line == first else 0
                notes.append(f"line {line} is cut at character {begin + room}")
                return Excerpt(path, piece[:room], first, line, total, f"{line}:{begin + room}", tuple(notes))
            return Excerpt(path, "".join(taken), first, line - 1, total, line, tuple(notes))
        taken.append(piece)
        room -= len(piece)
        line += 1
    return Excerpt(path, "".join(taken), first, last, total, last + 1 if last < end else None, tuple(notes))


def section_lines(index: Index, address: str) -> tuple[int, int]:
    """First and last line of a section and its subsections. NotFound names the nearest addresses."""
    row = index.connection.execute("SELECT file, ord, level, start_line, end_line FROM sections WHERE address = ?", (address,)).fetchone()
    if row is None:
        raise NotFound(f"{address}: no such section", nearest(address, known_addresses(index)))
    file, order, level, start, end = row
    below = index.connection.execute(
        "SELECT coalesce((SELECT min(ord) FROM sections WHERE file = ?1 AND ord > ?2 AND level <= ?3), 1 << 60)", (file, order, level)
    ).fetchone()[0]
    last = index.connection.execute("SELECT max(end_line) FROM sections WHERE file = ? AND ord >= ? AND ord < ?", (file, order, below))
    return int(start), max(int(end), int(last.fetchone()[0]))


def known_paths(index: Index) -> list[str]:
    return [r[0] for r in index.connection.execute("SELECT path FROM files ORDER BY path")]


def known_addresses(index: Index) -> list[str]:
    return [r[0] for r in index.connection.execute("SELECT address FROM sections ORDER BY address")]


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint with the names that look like this one; those of the same file first where the file is known."""
    path, _, slug = name.partition("#")
    same = [k for k in known if slug and k.startswith(path + "#")]
    near = difflib.get_close_matches(name, same, n=3, cutoff=0.3) or difflib.get_close_matches(name, known[:20_000], n=3, cutoff=0.5)
    if not near and slug:
        near = [k for k in known if k.endswith("#" + slug)][:3]
    return f"nearest: {', '.join(near)}" if near else ""
