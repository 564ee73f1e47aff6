"""Markdown text to sections and blocks with exact line ranges, offsets and addresses. Pure: text in, a Document out."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_tools.errors import InvalidInput
from memory_tools.front_matter import front_matter
from memory_tools.outline import Mark, outline
from memory_tools.pieces import CAP, Piece, split, trimmed
from memory_tools.records import Block, Document, Section
from memory_tools.slugs import Slugger, slug

VERSION = 2  # raise it when the same text would give other blocks, addresses or metadata
SOFT = 480  # characters after which a block of several lines is split at a line end
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BREAK = re.compile(r"\r\n|\r|\n")
_FENCE = re.compile(r"`{3,}|~{3,}")
_RULE = re.compile(r"[-*_=\s]*")
# OpenClaw's comments. Not behind a backtick: that is somebody writing about them.
_ARCHIVED = re.compile(r"(?m)^<!-- archived [^\n]{0,2000}?-->")  # where an archived section came from: nobody's text
_COMMENT = re.compile(r"(?<!`)<!--[ \t]{0,20}(importance|triggers?|project)[ \t]{0,20}:([^\n]{0,500}?)-->", re.IGNORECASE)
_GUIDELINE_MARK = re.compile(r"<!-- /?memory-tools:guideline -->")  # where tool memory's own part of a page begins and ends
_MAX_REFERENCE = 5_000  # characters of a path and a slug
_BROKEN = re.compile("[\0\ud800-\udfff]")  # half a surrogate pair is in no file, and SQLite takes none
_REFERENCE = re.compile(r"(?s)(.+?\.(?:md|markdown))#(.*)", re.IGNORECASE)
_LINES = re.compile(r"L(\d{1,9})(?:-L?(\d{1,9}))?")


def split_lines(text: str) -> list[str]:
    r"""Lines with their breaks, split on `\r\n|\r|\n` only, as markdown-it counts them."""
    return _LINE.findall(text)


def line_starts(text: str) -> list[int]:
    """Offset of each line, and the length of the text behind them."""
    starts = [0]
    if "\r" in text:
        starts.extend(m.end() for m in _BREAK.finditer(text))
    else:
        at = text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


@dataclass(frozen=True, slots=True)
class Reference:
    """What a caller names: a file, a section of it (`slug`), or lines of it (1-based, inclusive)."""

    path: str
    slug: str | None = None
    start_line: int | None = None
    end_line: int | None = None


def parse_reference(reference: str) -> Reference:
    """`MEMORY.md`, `MEMORY.md#slug`, `MEMORY.md#L3`, `MEMORY.md#L3-L7`, `@name/x.md#slug`. Raises InvalidInput where no file is named."""
    reference = reference.strip()
    if not reference or reference.startswith("#") or len(reference) > _MAX_REFERENCE or _BROKEN.search(reference):
        raise InvalidInput(f"not an address: {reference[:200]!r}", "name a file: MEMORY.md, MEMORY.md#section or MEMORY.md#L3-L7")
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return Reference(reference)
    path, fragment = match[1], match[2]
    if not fragment:
        return Reference(path)
    lines = _LINES.fullmatch(fragment)
    if lines is None:
        return Reference(path, slug=fragment)
    first = int(lines[1])
    last = int(lines[2]) if lines[2] else first
    if first < 1 or last < first:
        raise InvalidInput(f"{reference}: lines count from 1 and go up", f"for example {path}#L3-L7")
    return Reference(path, start_line=first, end_line=last)


def searched(block: Block) -> str:
    """The part of a block's text that is searched: without OpenClaw's comments and our marks; nothing for a bare rule such as `---`."""
    text = block.text
    if block.kind != "code" and "<!--" in text:
        text = _ARCHIVED.sub("", _GUIDELINE_MARK.sub("", _COMMENT.sub("", text)))
    return "" if _RULE.fullmatch(text) else text


def parse(path: str, text: str) -> Document:
    """Sections in reading order, each with its heading block first. Never fails on any text; what is odd is in `problems`."""
    starts = line_starts(text)
    matter = front_matter(text, starts)
    problems = list(matter.problems)
    marks = outline(text[starts[matter.body] :], [s - starts[matter.body] for s in starts[matter.body :]])
    shifted = [Mark(m.line + matter.body, m.kind, m.level, m.heading) for m in marks]
    if matter.broken:
        shifted.insert(0, Mark(0, "paragraph"))
    problems.extend(_unclosed(text, starts, shifted))
    first = matter.end
    groups: list[list[Mark]] = [[]]
    for mark in shifted:
        if mark.kind == "heading":
            groups.append([])
        groups[-1].append(mark)
    slugger = Slugger()
    trail: list[tuple[int, str]] = []
    sections: list[Section] = []
    for i, group in enumerate(groups):
        begin = group[0].line if i else first
        end = groups[i + 1][0].line if i + 1 < len(groups) else len(starts) - 1
        blocks = _blocks(text, starts, group, end)
        if i == 0 and not blocks:
            continue
        head = group[0] if i else Mark(first, "lead")
        base = slug(head.heading) if i else ""
        while trail and (trail[-1][0] >= head.level):
            trail.pop()
        if i:
            trail.append((head.level, head.heading))
        meta = _metadata(blocks, problems)
        sections.append(
            Section(
                address=f"{path}#{slugger.unique(base)}" if i else path,
                path=path,
                slug=base,
                heading=head.heading,
                headings=tuple(h for _, h in trail),
                level=head.level,
                start_line=begin + 1,
                end_line=end,
                start=starts[begin],
                end=starts[end],
                blocks=blocks,
                importance=meta.importance,
                triggers=meta.triggers,
                project=meta.project,
            )
        )
    return Document(path, tuple(sections), matter.values, matter.end, len(starts) - 1, tuple(problems))


def _unclosed(text: str, starts: Sequence[int], marks: Sequence[Mark]) -> list[str]:
    """What a file's last block swallowed: a fence or a comment without its end takes every heading behind it."""
    if not marks or marks[-1].kind not in ("code", "html"):
        return []
    line = marks[-1].line
    rest = text[starts[line] :].strip()
    fence = _FENCE.match(rest)
    if fence is not None and not _BREAK.split(rest)[-1].strip().startswith(fence[0]):
        return [f"line {line + 1}: a fence is opened here and never closed; what follows is taken as code"]
    if rest.startswith("<!--") and "-->" not in rest:
        return [f"line {line + 1}: a comment is opened here and never closed; what follows belongs to it"]
    return []


def _blocks(text: str, starts: Sequence[int], group: Sequence[Mark], end: int) -> tuple[Block, ...]:
    """The blocks of one section, whose marks are given and whose last line is before `end` (from 0)."""
    blocks: list[Block] = []
    for i, mark in enumerate(group):
        stop = group[i + 1].line if i + 1 < len(group) else end
        whole = trimmed(text, starts, mark.line, stop - 1)
        if whole is None:
            continue
        pieces: Sequence[Piece] = (whole,)
        soft = CAP if mark.kind in ("code", "heading") else SOFT
        if whole.end - whole.start > soft:
            pieces = split(text, starts, whole.first, whole.last, soft)
        for n, p in enumerate(pieces):
            kind = "paragraph" if mark.kind == "heading" and n else mark.kind
            blocks.append(Block(p.first + 1, p.last + 1, p.start, p.end, text[p.start : p.end], kind))
    return tuple(blocks)


@dataclass(frozen=True, slots=True)
class _Metadata:
    importance: float | None = None
    triggers: tuple[str, ...] = ()
    project: str | None = None


def _metadata(blocks: Sequence[Block], problems: list[str]) -> _Metadata:
    importance: float | None = None
    triggers: dict[str, None] = {}
    project: str | None = None
    for block in blocks:
        if block.kind == "code" or "<!--" not in block.text:
            continue
        for match in _COMMENT.finditer(block.text):
            key, value = match[1].lower(), match[2].strip()
            if key == "project":
                project = value or project
            elif key == "importance":
                number = _number(value)
                if number is None:
                    line = block.start_line + len(_BREAK.findall(block.text, 0, match.start()))
                    problems.append(f"line {line}: importance is not a number: {value[:40]!r}")
                else:
                    importance = number
            else:
                triggers.update(dict.fromkeys(t.strip() for t in re.split("[,，、]", value) if t.strip()))
    return _Metadata(importance, tuple(triggers), project)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
