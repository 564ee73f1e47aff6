"""Dates in a question or a note's name in, days out: ranges of `date.toordinal()` numbers, both ends included. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from memory_tools.date_rules import RULES
from memory_tools.day_ranges import YEARS_BACK, DayRange, ordinal_of

__all__ = ["YEARS_BACK", "DayRange", "Mention", "mentions", "note_day", "query_days"]

_NOTE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_./]?(0[1-9]|1[0-2])[-_./]?(0[1-9]|[12]\d|3[01])(?!\d)")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Mention:
    """text[start:end] names a day or a span of days."""

    start: int
    end: int
    ranges: tuple[DayRange, ...]


def note_day(path: str) -> int:
    """The day that a note is about, from its name (`2026-03-05.md`, `20260305-retro.md`, `2026/03/05.md`); 0 where it has none."""
    tail = path.rsplit("/", 1)[-1]
    for text in (tail, "/".join(path.split("/")[-3:])):
        match = _NOTE.search(text)
        if match is not None:
            return ordinal_of(*(int(part) for part in match.groups()))
    return 0


def query_days(text: str, now: datetime) -> tuple[DayRange, ...]:
    """Every day or span of days that a question names, relative ones against `now` (the user's local time)."""
    return tuple(dict.fromkeys(r for mention in mentions(text, now) for r in mention.ranges))


def mentions(text: str, now: datetime) -> tuple[Mention, ...]:
    """The places that name a day, from left to right and not overlapping. A longer reading wins over one inside it."""
    found: list[Mention] = []
    taken = [False] * len(text)
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters, such as U+0130, become two
        lowered = text
    words = frozenset(_WORD.findall(lowered))
    for cue, pattern, read in RULES:
        # A pattern is compiled when a question first needs it: all of them take 90 ms, as much as importing numpy.
        if not (cue.search(lowered) if isinstance(cue, re.Pattern) else not words.isdisjoint(cue)):
            continue
        for match in _compiled(pattern).finditer(lowered):
            if any(taken[match.start() : match.end()]):
                continue
            ranges = tuple(read(match, now.date()))
            if ranges:
                found.append(Mention(match.start(), match.end(), ranges))
                taken[match.start() : match.end()] = [True] * (match.end() - match.start())
    return tuple(sorted(found, key=lambda mention: mention.start))


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
