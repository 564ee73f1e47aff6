"""Dates in a question or a note's name in, days out: ranges of `date.toordinal()` numbers, both ends included. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime

_ISO = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")


@dataclass(frozen=True, slots=True)
class DayRange:
    """Days first..last as `date.toordinal()`, both included."""

    first: int
    last: int


def note_day(path: str) -> int:
    """The day that a note is about, from its file name (`memory/2026-03-05.md`); 0 where the name has no date."""
    name = path.rsplit("/", 1)[-1]
    match = _ISO.search(name)
    if match is None:
        return 0
    try:
        return date(*(int(part) for part in match.groups())).toordinal()
    except ValueError:
        return 0


def query_days(text: str, now: datetime) -> tuple[DayRange, ...]:
    """Every day or span of days that a question names, relative ones against `now` (the user's local time)."""
    ranges = []
    for match in _ISO.finditer(text):
        try:
            day = date(*(int(part) for part in match.groups())).toordinal()
        except ValueError:
            continue
        ranges.append(DayRange(day, day))
    return tuple(ranges)
