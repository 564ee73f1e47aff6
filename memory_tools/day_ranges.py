"""Years, months, weeks and days in, ranges of days out. Pure calendar arithmetic; numbers in Chinese characters too."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from memory_tools import date_words as w


@dataclass(frozen=True, slots=True)
class DayRange:
    """Days first..last as `date.toordinal()`, both included. `weight` < 1: one of several readings, and not the likeliest."""

    first: int
    last: int
    weight: float = 1.0


YEARS_BACK = 5  # a month without a year may be meant of any of these years


def ordinal_of(year: int, month: int, day: int) -> int:
    try:
        return date(year, month, day).toordinal()
    except ValueError:
        return 0


def one_day(year: int, month: int, day: int) -> Iterator[DayRange]:
    ordinal = ordinal_of(year, month, day)
    if ordinal:
        yield DayRange(ordinal, ordinal)


def months_of(year: int, month: int, weight: float = 1.0, months: int = 1) -> Iterator[DayRange]:
    if 1 <= month <= 12 and 1 <= year < 9999:
        last = month - 1 + months - 1
        end_year, end_month = year + last // 12, last % 12 + 1
        yield DayRange(ordinal_of(year, month, 1), ordinal_of(end_year, end_month, calendar.monthrange(end_year, end_month)[1]), weight)


def whole_year(year: int) -> Iterator[DayRange]:
    yield DayRange(ordinal_of(year, 1, 1), ordinal_of(year, 12, 31))


def without_year(today: date, month: int, day: int | None) -> Iterator[DayRange]:
    """The most recent one counts in full, earlier years half: notes are of the past, and mostly of the near past."""
    weight = 1.0
    for year in range(today.year + 1, today.year - YEARS_BACK, -1):
        ranges = list(one_day(year, month, day) if day else months_of(year, month))
        if ranges and ranges[0].first <= today.toordinal() + 31:
            yield DayRange(ranges[0].first, ranges[0].last, weight)
            weight = 0.5


def months_back(today: date, months: int) -> tuple[int, int]:
    total = today.year * 12 + today.month - 1 - months
    return total // 12, total % 12 + 1


def week(today: date, weeks: int) -> Iterator[DayRange]:
    monday = today.toordinal() - today.weekday() + 7 * weeks
    yield DayRange(monday, monday + 6)


def weekend(today: date, weeks: int) -> Iterator[DayRange]:
    saturday = today.toordinal() - today.weekday() + 5 + 7 * weeks
    yield DayRange(saturday, saturday + 1)


def whole_unit(today: date, unit: str, steps: int) -> Iterator[DayRange]:
    """`steps` weeks, months or years from now as a whole."""
    if unit == "week":
        yield from week(today, steps)
    elif unit == "month":
        yield from months_of(*months_back(today, -steps))
    elif 1 <= today.year + steps < 9999:
        yield from whole_year(today.year + steps)


def about_ago(today: date, unit: str, count: int) -> Iterator[DayRange]:
    """About `count` units ago: the further back, the less exact it is meant."""
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[unit] * count
    slack = {"day": 0, "week": 3, "month": 10, "year": 120}[unit]
    try:
        middle = (today - timedelta(days=days)).toordinal()
    except OverflowError:
        return
    yield DayRange(max(1, middle - slack), middle + slack)


def weekday_day(today: date, weekday: int, steps: int) -> Iterator[DayRange]:
    """`last Monday` and plain `on Monday` are the most recent one; `next Monday` the first one to come."""
    back = (today.weekday() - weekday) % 7
    ordinal = today.toordinal() + ((weekday - today.weekday() - 1) % 7 + 1 if steps > 0 else -(back or (7 if steps < 0 else 0)))
    yield DayRange(ordinal, ordinal)


_HAN_DIGITS = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}


def han_number(text: str) -> int:
    """`5`, `五`, `十五`, `二十`, `廿三`, `二〇二三` as a number; -1 for what is none."""
    if text.isdecimal():
        return int(text)
    text = text.replace("廿", "二十").replace("卅", "三十")
    if "十" in text:
        tens, _, ones = text.partition("十")
        if len(tens) > 1 or len(ones) > 1:
            return -1
        return _HAN_DIGITS.get(tens, 1 if not tens else 0) * 10 + (_HAN_DIGITS.get(ones, 0) if ones else 0)
    value = 0
    for char in text:
        if char not in _HAN_DIGITS:
            return -1
        value = value * 10 + _HAN_DIGITS[char]
    return value


def small_number(word: str) -> int:
    return int(word) if word.isdecimal() else w.SMALL.get(word, 0)
