"""Markdown source to its outline: the lines where headings, items, paragraphs, tables and fences begin. Pure; markdown-it's block rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.utils import EnvType

ITEM_CHARS = 300  # an item with its nested items stays one block up to this length
_LONG_LINE = 2000
_HEADING_CHARS = 1000
_HEADING_MARKS = 60
_NESTING = 100  # out of reach for a tamed source: beyond it markdown-it drops the rest of the file
_LINE_BREAK = re.compile(r"\r\n?|\n")
# What costs markdown-it quadratic time or deep recursion: long lines, long runs of markers, deep indents.
_MARKER = r"(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+)"
_WILD = re.compile(rf"(?:\A|\n)(?:[^\n]{{{_LONG_LINE + 1}}}|[ \t]{{11}}|[ \t]*{_MARKER}{{9}})")
_MARKERS = re.compile(rf"^([ \t]*{_MARKER}{{8}}){_MARKER}+")
_INDENT = re.compile(r"^[ \t]+")
_INLINE = re.compile(r"[\\`*_\[\]<>&!~\n]")

_KINDS = {
    "paragraph_open": "paragraph",
    "bullet_list_open": "item",
    "ordered_list_open": "item",
    "blockquote_open": "paragraph",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "hr": "paragraph",
    "heading_open": "heading",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A block begins on `line` (from 0) and goes on to the next mark. `level` and `heading` are set for headings."""

    line: int
    kind: str  # heading | item | paragraph | table | code | html
    level: int = 0
    heading: str = ""


# A rule that cannot match without its sign is not tried on every line: a quarter of the time for a plain note.
_SIGNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("table", ("|",)),
    ("html_block", ("<",)),
    ("reference", ("]:",)),
    ("blockquote", (">",)),
    ("fence", ("```", "~~~")),
)


@lru_cache(maxsize=32)
def _parser(without: tuple[str, ...] = ()) -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": _NESTING}).enable("table").disable(list(without))


def outline(text: str, starts: Sequence[int]) -> list[Mark]:
    """Marks in order of their lines, at most one a line. `starts[i]` is the offset of line i of `text`, and one more at the end."""
    source = _tamed(text)
    md = _parser(tuple(rule for rule, signs in _SIGNS if not any(sign in source for sign in signs)))
    env: EnvType = {}
    tokens: list[Token] = []
    md.block.parse(source, md, env, tokens)
    marks: dict[int, Mark] = {}
    ends: dict[int, str] = {}  # where a block ends and nothing that is known begins: a link definition, an item's later text
    for i, token in enumerate(tokens):
        if token.map is None or token.nesting < 0:
            continue
        if token.level == 0:
            first, end = token.map
            kind = _KINDS.get(token.type)
            if kind == "heading":
                marks[first] = Mark(first, kind, int(token.tag[1:]), _heading_text(md, tokens[i + 1].content, env))
            elif kind == "item":
                _items(tokens, i, starts, marks, ends)
            elif kind is not None:
                marks[first] = Mark(first, kind)
            ends.setdefault(end, "paragraph")
    ends.setdefault(0, "paragraph")  # a file of link definitions alone has no token
    for line, kind in ends.items():
        if line not in marks and line < len(starts) - 1:
            marks[line] = Mark(line, kind)
    return [marks[line] for line in sorted(marks)]


def _items(tokens: Sequence[Token], at: int, starts: Sequence[int], marks: dict[int, Mark], ends: dict[int, str]) -> None:
    """Marks for the items of the list that opens at tokens[at]: an item with all below it if that is short, else each on its own."""
    covered = -1
    for i in range(at + 1, len(tokens)):
        token = tokens[i]
        if token.level == 0 and token.nesting < 0:
            break
        if token.type != "list_item_open" or token.map is None:
            continue
        first, end = token.map
        if first < covered:
            continue
        marks.setdefault(first, Mark(first, "item"))
        ends.setdefault(end, "item")
        if starts[end] - starts[first] <= ITEM_CHARS:
            covered = end


def _tamed(text: str) -> str:
    """The text for markdown-it: same lines, `\\n` between them, NUL replaced, and what is hostile cut down to the same structure."""
    source = _LINE_BREAK.sub("\n", text) if "\r" in text else text
    source = source.replace("\0", "\ufffd")
    if _WILD.search(source) is None:
        return source
    return "\n".join(_tame_line(line) for line in source.split("\n"))


def _tame_line(line: str) -> str:
    if len(line) > _LONG_LINE:
        # Both ends decide what a line is; a comment that closes in the middle must still close.
        middle = "-->" if "-->" in line else ""
        line = f"{line[: _LONG_LINE // 2]}{middle}{line[-_LONG_LINE // 4 :]}"
    indent = _INDENT.match(line)
    if indent is not None and len(indent[0]) > 10:
        line = " " * min(40, len(indent[0].expandtabs(4))) + line[indent.end() :]
    return _MARKERS.sub(r"\1", line)


def _heading_text(md: MarkdownIt, content: str, env: EnvType) -> str:
    """Inline markup reduced to its text: `[a](b)` is `a`, `**a**` is `a`, an image is its alternative text, HTML is nothing."""
    content = content[:_HEADING_CHARS]
    # A row of opening brackets or marks costs the inline rules quadratic time; nobody meant a link by it.
    if _INLINE.search(content) is None or len(_INLINE.findall(content)) > _HEADING_MARKS:
        return content.strip()
    tokens: list[Token] = []
    md.inline.parse(content, md, env, tokens)
    return _text(tokens).strip()


def _text(tokens: Sequence[Token]) -> str:
    parts: list[str] = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type == "image":
            parts.append(_text(token.children or ()))
        elif token.type != "html_inline":
            parts.append(token.content)
    return "".join(parts)
