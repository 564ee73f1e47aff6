"""What a caller names in, stable section ids out: positions in a recall, addresses (also former ones that a recall showed), citations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memory_tools import sections
from memory_tools.errors import InvalidInput, MemoryToolsError, NotFound
from memory_tools.reading import known_addresses, nearest

if TYPE_CHECKING:
    from memory_tools.credit import Credit
    from memory_tools.index import Index

SHOWN = timedelta(hours=1)  # how long a search explains an address that was written down from it


def section_ids(
    index: Index, credit: Credit, used: str | int | Sequence[str | int], recall: str | None, now: datetime
) -> tuple[tuple[str, ...], str | None]:
    """The sections, and the recall they are credited to. Raises NotFound for one unknown name among many, InvalidInput."""
    names: list[str | int] = [used] if isinstance(used, str | int) else list(used) if isinstance(used, list | tuple) else []
    if not names or any(isinstance(n, bool) or not isinstance(n, str | int) for n in names):
        raise InvalidInput("used: expected addresses, citations, or positions in a recall", 'for example "MEMORY.md#deploy", or 1')
    if any(isinstance(n, str) and any("\ud800" <= c <= "\udfff" or c == "\0" for c in n) for n in names):
        raise InvalidInput("used: a name holds a NUL or half a surrogate pair, which no address does")
    if recall is None and any(isinstance(n, int) for n in names):
        recall = "last"
    ids: list[str] = []
    for name in names:
        ids += (
            [credit.at(credit.recall(recall or "last", now), name)] if isinstance(name, int) else _named(index, credit, name, recall, now)
        )
    return tuple(dict.fromkeys(ids)), recall


def _named(index: Index, credit: Credit, name: str, recall: str | None, now: datetime) -> list[str]:
    shown = _as_shown(credit, name.strip(), recall, now)
    if shown:
        return shown
    asked = sections.parse_reference(name)
    if asked.path.startswith("memory/tools/"):
        raise InvalidInput(f"{name}: a tool's page learns from the calls that are recorded", "memory-tools tool record")
    if asked.start_line is not None:
        found = overlapping(index, asked.path, asked.start_line, asked.end_line or asked.start_line)
        if not found:
            raise NotFound(f"{name}: no section there", nearest(asked.path, known_addresses(index)))
        return found
    address = asked.path if asked.slug is None else f"{asked.path}#{asked.slug}"
    row = index.connection.execute("SELECT id FROM sections WHERE address = ?", (address,)).fetchone()
    if row is None:
        raise NotFound(f"{name}: no such memory", nearest(address, known_addresses(index)))
    return [row[0]]


def _as_shown(credit: Credit, name: str, recall: str | None, now: datetime) -> list[str]:
    """Ids under an address or citation as a recall showed it: files may have changed since, and the name may be another section's now."""
    if recall is not None:
        try:
            recalls = [credit.recall(recall, now)]
        except NotFound:
            if recall == "last":
                raise
            return []  # told when it is credited
    else:
        try:
            log = credit.receipts.load()
        except MemoryToolsError:  # told with the search or by check; the names of today are still good
            return []
        recalls = [r for r in reversed(log.recalls.values()) if now - r.time <= SHOWN]
    for one in recalls:
        ids = [s.section_id for s in one.shown if name in (s.address, s.citation)]
        if ids:
            return ids
    return []


def overlapping(index: Index, path: str, first: int, last: int) -> list[str]:
    """Ids of the sections whose text these lines touch; a heading alone counts only where nothing else is touched."""
    rows = index.connection.execute(
        "SELECT DISTINCT s.id, s.ord, b.kind IN ('heading', 'title') FROM sections s JOIN files f ON f.id = s.file"
        " JOIN blocks b ON b.section = s.key WHERE f.path = ? AND b.start_line <= ? AND b.end_line >= ? ORDER BY s.ord",
        (path, last, first),
    ).fetchall()
    inside = [id for id, _, heading in rows if not heading]
    return list(dict.fromkeys(inside or [id for id, _, _ in rows]))
