"""A text, the question's terms and a room in characters in, the part to show out: around the match, through no character. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from memory_tools.pieces import safe_cut
from memory_tools.tokens import MAX_CHARS, tokenize

_WORD = re.compile(r"[\w.\-'’@:+#]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7a3\U00020000-\U000323af]")
_BREAK = re.compile(r"[.!?…。！？；;]+[\"'”’)\]）」』]*\s*|\r\n|\r|\n")


def shorten(text: str, terms: Collection[str], room: int) -> tuple[int, int]:
    """The part text[start:end] of at most `room` characters that holds most of `terms` (tokens, stemmed as tokenize does).

    (0, len(text)) where all of it fits. Without a match, the beginning. Starts at a sentence or a word where one is near.
    """
    if len(text) <= room:
        return 0, len(text)
    if room <= 0:
        return 0, 0
    hits = matches(text, terms)
    start, end = _densest(hits, room) if hits else (0, 0)
    spare = room - (end - start)
    start = _tidy_start(text, max(0, start - spare // 2), start)
    stop = min(len(text), start + room)
    if stop == len(text):  # the room that the end does not need goes to the front
        start = _tidy_start(text, max(0, stop - room), start)
    if stop < len(text):
        stop = _tidy_end(text, max(end, start + 1), stop)
    stop = safe_cut(text, stop, start) if stop < len(text) else stop
    if stop - start > room:  # one visible character that is longer than the room
        stop = start + room
    return start, stop


def matches(text: str, terms: Collection[str]) -> list[tuple[int, int, str]]:
    """Where the terms are: (start, end, term), by start."""
    wanted = frozenset(terms)
    found: list[tuple[int, int, str]] = []
    if not wanted:
        return found
    for word in _WORD.finditer(text[:MAX_CHARS]):
        if _UNSPACED.search(word[0]) is None:
            hit = next((token for token in tokenize(word[0]) if token in wanted), None)
            if hit is not None:
                found.append((word.start(), word.end(), hit))
            continue
        for at in range(word.start(), word.end()):
            pair = text[at : at + 2]
            if len(pair) == 2 and at + 2 <= word.end() and wanted.intersection(t for t in tokenize(pair) if len(t) > 1):
                found.append((at, at + 2, pair))
            elif wanted.intersection(tokenize(text[at])):
                found.append((at, at + 1, text[at]))
    return found


def _densest(hits: list[tuple[int, int, str]], room: int) -> tuple[int, int]:
    """The span of at most `room` characters with most distinct terms; among equals the shortest, then the first."""
    best = (0, 0, 0)
    chosen = (hits[0][0], min(hits[0][1], hits[0][0] + room))
    first = 0
    counts: dict[str, int] = {}
    for _, end, term in hits:
        counts[term] = counts.get(term, 0) + 1
        while end - hits[first][0] > room and hits[first][1] < end:
            counts[hits[first][2]] -= 1
            first += 1
        distinct = sum(count > 0 for count in counts.values())
        start = hits[first][0]
        key = (distinct, -(end - start), -start)
        if end - start <= room and key > best:
            best, chosen = key, (start, end)
    return chosen


def _tidy_start(text: str, low: int, high: int) -> int:
    """A good place to begin in low..high: behind a sentence's end, else at a word; safe in any case."""
    if low <= 0:
        return 0
    reach = min(high, low + 80)
    for match in _BREAK.finditer(text, low, reach):
        if match.end() <= high:
            return match.end()
    for at in range(low, min(high, low + 25)):
        if text[at - 1].isspace():
            return at
    return safe_cut(text, low)


def _tidy_end(text: str, low: int, high: int) -> int:
    """A good place to end in low..high: at a sentence's end, else at a word's."""
    best = 0
    for match in _BREAK.finditer(text, max(low, high - 80), high):
        best = match.end()
    if best > low:
        return low + len(text[low:best].rstrip()) if text[low:best].strip() else high
    for at in range(high, max(low, high - 25), -1):
        if text[at].isspace():
            return at
    return high
