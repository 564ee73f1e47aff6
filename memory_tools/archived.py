"""A note's bytes and an archive's bytes in, the same with a section moved from one to the other, or back. Pure: bytes in, bytes out.

An archive (memory/archive/YYYY-MM.md) is a note like any other. Before each section stands one comment that says where it was; the section
follows byte for byte. Everything works on bytes and lines, so that odd encodings and mixed line breaks come through unharmed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memory_tools import identity, sections
from memory_tools.records import Section

BOM = b"\xef\xbb\xbf"
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NUMBER = re.compile(r"-[0-9]+\Z")
_COMMENT = re.compile(rb"^<!-- archived (\{[^\r\n]*\}) -->(?:\r\n|\n)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The section before or after one, to find the place again."""

    address: str
    body: str


@dataclass(frozen=True, slots=True)
class Record:
    """Where an archived section was. `size`: its bytes; `pad`: bytes of white space that were put behind it.

    `note`: hash of the note with the section still in it; `back`: of the note into which it is being restored. A move that was killed
    between its two writes is known by them.
    """

    address: str
    body: str
    id: str
    time: str
    after: Neighbour | None
    before: Neighbour | None
    size: int
    pad: int
    digest: str
    note: str
    back: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """An archived section in its archive: content[start:end] is the comment and all, `text` the section."""

    record: Record
    start: int
    end: int
    text: bytes
    line: int  # of the section's heading, from 1


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a note with what identifies it."""

    section: Section
    body: str
    level: int

    @property
    def neighbour(self) -> Neighbour:
        return Neighbour(self.section.address, self.body)


def text_of(content: bytes) -> str:
    return content.removeprefix(BOM).decode("utf-8", "replace")


def parts_of(path: str, content: bytes) -> list[Part]:
    text = text_of(content)
    return [Part(s, identity.trace_parts(identity.body_of(s, text))[0], s.level) for s in sections.parse(path, text).sections]


def lines_of(content: bytes) -> list[bytes]:
    return _LINE.findall(content)


def cut(content: bytes, section: Section) -> tuple[bytes, bytes]:
    """(the section's bytes, the note without them). A byte order mark stays with the note."""
    mark = BOM if content.startswith(BOM) else b""
    lines = lines_of(content[len(mark) :])
    first, last = section.start_line - 1, section.end_line
    return b"".join(lines[first:last]), mark + b"".join(lines[:first] + lines[last:])


def record_of(part: Part, parts: Sequence[Part], chunk: bytes, id: str, time: str, note: bytes) -> Record:
    at = parts.index(part)
    after = parts[at - 1].neighbour if at else None
    before = parts[at + 1].neighbour if at + 1 < len(parts) else None
    pad = 0 if chunk.endswith((b"\n\n", b"\n\r\n", b"\r\r")) else 1 if chunk.endswith((b"\n", b"\r")) else 2
    return Record(part.section.address, part.body, id, time, after, before, len(chunk), pad, digest(chunk), digest(note))


def put(archive: bytes, title: str, record: Record, chunk: bytes) -> bytes:
    """The archive with one more section at its end; a new one begins with its title."""
    if not archive:
        archive = f"# {title}\n\n".encode()
    elif not archive.endswith((b"\n", b"\r")):
        archive += b"\n"
    return archive + _comment(record) + chunk + b"\n" * record.pad


def _comment(record: Record) -> bytes:
    fields: dict[str, object] = {"from": record.address, "body": record.body, "id": record.id, "time": record.time}
    fields |= {name: [n.address, n.body] for name, n in (("after", record.after), ("before", record.before)) if n}
    fields |= {"bytes": record.size, "pad": record.pad, "hash": record.digest, "note": record.note}
    fields |= {"back": record.back} if record.back else {}
    # No `-->` may end the comment early.
    text = json.dumps(fields, ensure_ascii=False).replace(">", "\\u003e")
    return f"<!-- archived {text} -->\n".encode("utf-8", "backslashreplace")


def marked(archive: bytes, one: Held, note: bytes) -> bytes:
    """The archive in which a section says that it is being restored, and what the note will be then."""
    comment = _COMMENT.match(archive, one.start)
    assert comment is not None
    return archive[: one.start] + _comment(replace(one.record, back=digest(note))) + archive[comment.end() :]


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def held(archive: bytes) -> list[Held]:
    """The archived sections in order. One that a person edited since goes up to the next comment."""
    found: list[Held] = []
    at = 0
    while (match := _COMMENT.search(archive, at)) is not None:
        at = match.end()
        record = _record(match[1])
        if record is None:
            continue
        chunk = archive[at : at + record.size]
        end = at + record.size + record.pad
        if digest(chunk) != record.digest:
            following = _COMMENT.search(archive, at)
            end = following.start() if following else len(archive)
            chunk = archive[at:end]
        found.append(Held(record, match.start(), min(end, len(archive)), chunk, archive.count(b"\n", 0, at) + 1))
        at = max(at, min(end, len(archive)))
    return found


def _record(raw: bytes) -> Record | None:
    """None for a comment that only looks like ours."""
    try:
        row = json.loads(raw)
        after, before = (Neighbour(str(row[n][0]), str(row[n][1])) if row.get(n) else None for n in ("after", "before"))
        size, pad = int(row["bytes"]), int(row["pad"])
        if size < 0 or not 0 <= pad <= 2:
            return None
        address, body, id, time, digest, note = (str(row[n]) for n in ("from", "body", "id", "time", "hash", "note"))
        return Record(address, body, id, time, after, before, size, pad, digest, note, str(row.get("back", "")))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return None


def take(archive: bytes, one: Held) -> bytes:
    """The archive without a section; empty when nothing but the title is left."""
    rest = archive[: one.start] + archive[one.end :]
    return b"" if not held(rest) and re.fullmatch(rb"# Archive [0-9]{4}-[0-9]{2}\s*", rest) else rest


def place(path: str, content: bytes, one: Held, others: Iterable[Held]) -> int:
    """The line (from 0) of the note before which an archived section belongs."""
    parts = parts_of(path, content)
    records = {Neighbour(h.record.address, h.record.body): h.record for h in others}
    after, passed = one.record.after, set[Neighbour]()
    while after is not None:
        archived = after in records and after not in passed
        part = _find(parts, after, exactly=archived)
        if part is not None:
            return part.section.end_line
        if not archived:
            break
        passed.add(after)  # its neighbour is archived too: what stood before that
        after = records[after].after
    part = _find(parts, one.record.before, exactly=one.record.before in records) if one.record.before else None
    if part is not None:
        return part.section.start_line - 1
    if after is None and parts:
        return parts[0].section.start_line - 1
    return len(lines_of(content.removeprefix(BOM)))


def _find(parts: Sequence[Part], wanted: Neighbour, exactly: bool) -> Part | None:
    """The section at that address with that body; else with that body anywhere, else at that address, unless `exactly`."""
    ranked = [p for p in parts if p.neighbour == wanted]
    if not exactly:
        # Of three of one heading the first was taken out: the others' numbers fell by one, and an empty body tells nothing alone.
        ranked += [p for p in parts if p.body == wanted.body and _unnumbered(p.section.address) == _unnumbered(wanted.address)]
        ranked += [p for p in parts if p.body and p.body == wanted.body]
        ranked += [p for p in parts if p.section.address == wanted.address]
    return ranked[0] if ranked else None


def _unnumbered(address: str) -> str:
    return _NUMBER.sub("", address)


def insert(path: str, content: bytes, line: int, chunk: bytes) -> tuple[bytes, int]:
    """(the note with the section before that line, the line of its heading from 1)."""
    mark = BOM if content.startswith(BOM) else b""
    lines = lines_of(content[len(mark) :])
    above, below = b"".join(lines[:line]), b"".join(lines[line:])
    brk = b"\r\n" if b"\r\n" in content else b"\n"
    if above and not above.endswith((b"\n", b"\r")):
        above += brk
    if below and not chunk.endswith((b"\n", b"\r")):
        chunk += brk
    made = mark + above + chunk + below
    heading = parts_of(path, chunk)[0].section.heading
    if above and not any(p.section.start_line == line + 1 and p.section.heading == heading for p in parts_of(path, made)):
        # An underlined heading right behind a paragraph would be the end of that paragraph.
        return mark + above + brk + chunk + below, line + 2
    return made, line + 1
