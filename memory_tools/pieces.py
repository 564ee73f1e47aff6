"""A span of text that is too long for one block to pieces under a cap: at line ends, else sentence ends, spaces, anywhere safe. Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

CAP = 1000  # characters that no block exceeds
_SENTENCE_END = re.compile(r"""[.!?…]+["'”’)\]]*(?=\s)|[。！？!?；;]+["'”’」』）】)\]]*""")
_CLAUSE_END = re.compile(r"[,:](?=\s)|[，、：,]")
_SPACE = re.compile(r"\s+")
_ZWJ = "\u200d"
# Hangul vowel and trailing jamo attach to the syllable before; variation selectors and emoji tags are marks or below.
_EXTENDS = re.compile("[\u1160-\u11ff\u200c\u200d\ufe00-\ufe0f\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters [start, end) on lines [first, last], counted from 0."""

    start: int
    end: int
    first: int
    last: int


def _joins(text: str, at: int) -> bool:
    """Whether text[at] belongs to the same visible character as text[at - 1]."""
    before, after = text[at - 1], text[at]
    if before == _ZWJ or _EXTENDS.match(after) or unicodedata.category(after)[0] == "M":
        return True
    if before == "\r" and after == "\n":
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if "\U0001f1e6" <= after <= "\U0001f1ff":  # flags are pairs of these
        run = 0
        while at - 1 - run >= 0 and run < CAP and "\U0001f1e6" <= text[at - 1 - run] <= "\U0001f1ff":
            run += 1
        return run % 2 == 1
    return "\u1100" <= before <= "\u115f" and "\uac00" <= after <= "\ud7a3"


def safe_cut(text: str, at: int, least: int = 0) -> int:
    """The greatest offset <= `at` and > `least` that splits no visible character; `at` itself where a cluster fills the whole range."""
    if not 0 < at < len(text):
        return at
    cut = at
    while cut > least and _joins(text, cut):
        cut -= 1
    return cut if cut > least else at


def _cut_line(text: str, start: int, end: int, limit: int) -> int:
    """Where a line longer than `limit` is cut first: the last good place in the second half of the allowed length."""
    low, high = start + limit // 2, start + limit
    window = text[low : min(high + 1, end)]
    for rule in (_SENTENCE_END, _CLAUSE_END, _SPACE):
        best = 0
        for match in rule.finditer(window):
            if low + match.end() <= high:
                best = match.end()
        if best:
            return safe_cut(text, low + best, start)
    return safe_cut(text, high, start)


def split_line(text: str, start: int, end: int, limit: int = CAP) -> list[tuple[int, int]]:
    """Character ranges of at most `limit` that cover everything but white space in text[start:end]."""
    ranges: list[tuple[int, int]] = []
    while start < end:
        cut = end if end - start <= limit else _cut_line(text, start, end, limit)
        ranges.append((start, cut))
        start = cut
        while start < end and text[start].isspace():
            start += 1
    return [(a, b) for a, b in ranges if not text[a:b].isspace()]


def split(text: str, starts: Sequence[int], first: int, last: int, soft: int, cap: int = CAP) -> list[Piece]:
    """Lines [first, last] to pieces of about `soft` characters, none above `cap`. `starts[i]` is line i's offset, one more at the end."""
    total = starts[last + 1] - starts[first]
    count = max(round(total / soft), math.ceil(total / (0.95 * cap)))
    target = total / count  # even pieces rather than a full one and a crumb
    pieces: list[Piece] = []
    begin = first
    while begin <= last:
        if line_end(text, starts, begin) - starts[begin] > cap:
            ranges = split_line(text, starts[begin], line_end(text, starts, begin), cap)
            pieces.extend(Piece(a, b, begin, begin) for a, b in ranges)
            begin += 1
            continue
        stop = begin
        goal = starts[first] + target * (1 + int((starts[begin] - starts[first]) / target + 0.5))
        while stop < last and line_end(text, starts, stop + 1) - starts[begin] <= cap:
            # Stop where the goal is nearer to this line's end than to the next one's.
            if goal - starts[stop + 1] <= starts[stop + 2] - goal:
                break
            stop += 1
        piece = trimmed(text, starts, begin, stop)
        if piece is not None:
            pieces.append(piece)
        begin = stop + 1
    return pieces


def line_end(text: str, starts: Sequence[int], line: int) -> int:
    """Offset behind the last character of a line, its line break left out."""
    end = starts[line + 1]
    if end > starts[line] and text[end - 1] == "\n":
        end -= 1
    if end > starts[line] and text[end - 1] == "\r":
        end -= 1
    return end


def trimmed(text: str, starts: Sequence[int], first: int, last: int) -> Piece | None:
    """Lines [first, last] without blank lines around them and without the last line break; None where all are blank."""
    while first <= last and not text[starts[first] : starts[first + 1]].strip():
        first += 1
    while last >= first and not text[starts[last] : starts[last + 1]].strip():
        last -= 1
    if first > last:
        return None
    return Piece(starts[first], line_end(text, starts, last), first, last)
