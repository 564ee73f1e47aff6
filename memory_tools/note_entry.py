"""A text to an entry of a daily note, and a note to where an entry stands in it. Pure: text in, text and line numbers out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from memory_tools import sections
from memory_tools.errors import InvalidInput, TooLarge

MAX_TEXT_CHARS = 200_000  # ten times what an agent loads at start; more is a file of its own
MAX_HEADING_CHARS = 300

_BREAK = re.compile("\r\n|\r|\n")
_FENCE = re.compile(r"^(?:[ \t]*(?:[-*+]|\d+[.)]|>)[ \t]+)*[ \t]*(`{3,}|~{3,})", re.M)
# What a text may leave open, beside code fences, so that the next heading would be swallowed.
_HTML_CLOSERS = ("-->", "</pre>", "</script>", "</style>", "</textarea>", "?>", "]]>", ">")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands: the section that holds it, and its lines from its own heading on."""

    path: str
    address: str
    start_line: int
    end_line: int


def body_of(text: str) -> str:
    """The text with `\\n` line breaks, without blank lines around it; everything else as it is. Raises InvalidInput, TooLarge."""
    if not text.strip():
        raise InvalidInput("there is no text to remember")
    require_text("text", text, MAX_TEXT_CHARS)
    return re.sub(r"\A(?:[ \t]*\n)+", "", _BREAK.sub("\n", text.removeprefix("\ufeff"))).rstrip()


def title_of(heading: str | None, now: datetime) -> str:
    """The heading's text, `HH:MM` where none is given. Raises InvalidInput, TooLarge."""
    if heading is None or not heading.strip():
        return f"{now:%H:%M}"
    require_text("heading", heading, MAX_HEADING_CHARS)
    if _BREAK.search(heading.strip()):
        raise InvalidInput("heading: one line only", "put the rest into the text")
    title = re.sub(r"^#{1,6}\s+", "", heading.strip())
    return re.sub(r"(?<=\s)#+$", lambda marks: "\\" + marks.group(), title)  # "C #" would lose its last mark


def require_text(name: str, value: str, limit: int) -> None:
    """Raises InvalidInput for what no file can hold as text, TooLarge above `limit` characters."""
    if "\0" in value:
        raise InvalidInput(f"{name}: NUL characters cannot be stored in a note")
    try:
        value.encode()
    except UnicodeEncodeError as e:
        raise InvalidInput(f"{name}: character {e.start + 1} is half of a surrogate pair, not text") from None
    if len(value) > limit:
        raise TooLarge(f"{name}: {len(value):,} characters, at most {limit:,}", "write a file of its own under memory/")


def compose(path: str, note: str, title: str, body: str) -> str:
    """What to append to the note: in its own newline style, one blank line after what is there.

    A fence or comment that the body leaves open is closed behind it. Where the note itself has left one open, it is closed before the
    heading: until then it ended where the file ended, so nothing that was there changes its meaning.
    A note without a break at its end is given one by the append itself.
    """
    lines = _BREAK.sub("\n", note)
    ended = lines + ("" if lines.endswith("\n") or not lines else "\n")
    gap = "\n" if ended.strip() and not ended.endswith("\n\n") else ""
    left_open = _closing(body)
    own = f"## {title}\n\n{body}\n" + (f"{left_open}\n" if left_open else "")
    if not _starts_section(path, ended + gap, own):
        before = _closing(ended)
        gap = f"{before}\n\n" if before else gap
    return (gap + own).replace("\n", newline_of(note))


def newline_of(note: str) -> str:
    """The style that most lines have; `\\n` for a new note."""
    counts = {"\r\n": note.count("\r\n")}
    counts["\n"] = note.count("\n") - counts["\r\n"]
    counts["\r"] = note.count("\r") - counts["\r\n"]
    return max(("\n", "\r\n", "\r"), key=lambda style: counts[style])


def locate(path: str, note: str, body: str, before: str = "") -> Place | None:
    """Where this body stands: the first entry behind `before`, the note's beginning when it was stored, else the last place that holds it.

    None where the note does not hold it any more.
    """
    start, note = len(_BREAK.sub("\n", before)), _BREAK.sub("\n", note)
    # With the entry's heading: the body alone may stand elsewhere too, "```" even as the line that closes it.
    entry = re.compile(rf"^## [^\n]*\n\n(?={re.escape(body)}(?:\n|\Z))", re.M).search(note, min(start, len(note)))
    if entry is not None:
        first = note.count("\n", 0, entry.end()) + 1
    else:
        at = f"\n{note}\n".rfind(f"\n{body}\n")
        if at < 0:
            return None
        first = note.count("\n", 0, at) + 1
    return _place(path, note, first, first + body.count("\n"))


def locate_after(path: str, note: str, before: str) -> Place | None:
    """The first entry behind `before`, whatever its text; None where nothing follows."""
    start, note = len(_BREAK.sub("\n", before)), _BREAK.sub("\n", note)
    rest = note[start:].lstrip("\n")
    if not rest.strip():
        return None
    first = note.count("\n", 0, len(note) - len(rest)) + 1
    section = next((s for s in sections.parse(path, note).sections if s.start_line == first), None)
    return _place(path, note, first, section.end_line if section is not None else first)


def _place(path: str, note: str, first: int, last: int) -> Place:
    parsed = sections.parse(path, note).sections
    # Our own heading stands two lines above the text. A person may have moved the text since: then it counts from its first line.
    own = next((s for s in parsed if s.level and s.start_line == first - 2), None)
    holder = own or [s for s in parsed if s.start_line <= first][-1]
    return Place(path, holder.address, own.start_line if own is not None else first, last)


def _starts_section(path: str, before: str, own: str) -> bool:
    line = before.count("\n") + 1
    return any(section.start_line == line and section.level for section in sections.parse(path, before + own).sections)


def _closing(text: str) -> str:
    """The line that closes what the text leaves open, "" where nothing is: without it a heading behind the text would not be one."""
    fences = sorted({match.group(1) for match in _FENCE.finditer(text)}, key=lambda fence: (-len(fence), fence))
    for end in ("", *fences, *_HTML_CLOSERS):
        if _starts_section("a.md", f"## a\n\n{text}\n{end}\n\n", "## b\n"):
            return end
    return ""
