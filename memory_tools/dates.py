"""Dates in a question or a note's name in, days out: ranges of `date.toordinal()` numbers, both ends included. Pure."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from memory_tools import date_words as w


@dataclass(frozen=True, slots=True)
class DayRange:
    """Days first..last as `date.toordinal()`, both included. `weight` < 1: one of several readings, and not the likeliest."""

    first: int
    last: int
    weight: float = 1.0


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
            return _ordinal(*(int(part) for part in match.groups()))
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
    for cue, pattern, read in _RULES:
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


# --- calendar -------------------------------------------------------------------

YEARS_BACK = 5  # a month without a year may be meant of any of these years


def _ordinal(year: int, month: int, day: int) -> int:
    try:
        return date(year, month, day).toordinal()
    except ValueError:
        return 0


def _day(year: int, month: int, day: int) -> Iterator[DayRange]:
    ordinal = _ordinal(year, month, day)
    if ordinal:
        yield DayRange(ordinal, ordinal)


def _month(year: int, month: int, weight: float = 1.0, months: int = 1) -> Iterator[DayRange]:
    if 1 <= month <= 12 and 1 <= year < 9999:
        last = month - 1 + months - 1
        end_year, end_month = year + last // 12, last % 12 + 1
        yield DayRange(_ordinal(year, month, 1), _ordinal(end_year, end_month, calendar.monthrange(end_year, end_month)[1]), weight)


def _year(year: int) -> Iterator[DayRange]:
    yield DayRange(_ordinal(year, 1, 1), _ordinal(year, 12, 31))


def _yearless(today: date, month: int, day: int | None) -> Iterator[DayRange]:
    """The most recent one counts in full, earlier years half: notes are of the past, and mostly of the near past."""
    weight = 1.0
    for year in range(today.year + 1, today.year - YEARS_BACK, -1):
        ranges = list(_day(year, month, day) if day else _month(year, month))
        if ranges and ranges[0].first <= today.toordinal() + 31:
            yield DayRange(ranges[0].first, ranges[0].last, weight)
            weight = 0.5


def _back(today: date, months: int) -> tuple[int, int]:
    total = today.year * 12 + today.month - 1 - months
    return total // 12, total % 12 + 1


def _week(today: date, weeks: int) -> Iterator[DayRange]:
    monday = today.toordinal() - today.weekday() + 7 * weeks
    yield DayRange(monday, monday + 6)


def _weekend(today: date, weeks: int) -> Iterator[DayRange]:
    saturday = today.toordinal() - today.weekday() + 5 + 7 * weeks
    yield DayRange(saturday, saturday + 1)


def _step(today: date, unit: str, steps: int) -> Iterator[DayRange]:
    """`steps` weeks, months or years from now as a whole."""
    if unit == "week":
        yield from _week(today, steps)
    elif unit == "month":
        yield from _month(*_back(today, -steps))
    elif 1 <= today.year + steps < 9999:
        yield from _year(today.year + steps)


def _ago(today: date, unit: str, count: int) -> Iterator[DayRange]:
    """About `count` units ago: the further back, the less exact it is meant."""
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[unit] * count
    slack = {"day": 0, "week": 3, "month": 10, "year": 120}[unit]
    try:
        middle = (today - timedelta(days=days)).toordinal()
    except OverflowError:
        return
    yield DayRange(max(1, middle - slack), middle + slack)


# --- numbers --------------------------------------------------------------------

_HAN_DIGITS = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}


def _han(text: str) -> int:
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


def _small(word: str) -> int:
    return int(word) if word.isdecimal() else w.SMALL.get(word, 0)


# --- rules, the more exact ones first --------------------------------------------


def _names(words: object) -> str:
    return "|".join(sorted(map(re.escape, words), key=lambda s: (-len(s), s)))  # type: ignore[call-overload]


_N = r"[\d〇零一二三四五六七八九十廿卅]"
_ALL_MONTHS = w.MONTHS | w.SHORT_MONTHS
_NAME = _names(_ALL_MONTHS)
_FULL = _names(name for name in w.MONTHS if name not in w.AMBIGUOUS)
_BY = r"in|of|last|past|next|this|since|until|till|during|by|before|after|early|late|mid|im|seit|letzten|en|au|em|de|del|в|с|до|прошлом"
_UNITS = (("day", w.DAY), ("week", w.WEEKS), ("month", w.MONTHS_AGO), ("year", w.YEARS))
_NOTE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_./]?(0[1-9]|1[0-2])[-_./]?(0[1-9]|[12]\d|3[01])(?!\d)")


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _month_number(name: str) -> int:
    return _ALL_MONTHS[name.rstrip(".")]


def _read_ymd(match: re.Match[str], today: date) -> Iterator[DayRange]:
    yield from _day(*(_han(part) for part in match.groups()))


def _read_numeric(match: re.Match[str], today: date) -> Iterator[DayRange]:
    a, separator, b, year = int(match[1]), match[2], int(match[3]), int(match[4])
    yield from _day(year, b, a)
    if separator != "." and a != b:
        yield from _day(year, a, b)


def _read_day_month(match: re.Match[str], today: date) -> Iterator[DayRange]:
    day, month = int(match["day"]), _month_number(match["month"])
    yield from _day(int(match["year"]), month, day) if match["year"] else _yearless(today, month, day)


def _read_month_year(match: re.Match[str], today: date) -> Iterator[DayRange]:
    yield from _month(int(match["year"]), _month_number(match["month"]))


def _read_month(match: re.Match[str], today: date) -> Iterator[DayRange]:
    yield from _yearless(today, _month_number(match["month"]), None)


_RELATIVE_YEAR = {"今年": 0, "去年": -1, "前年": -2, "明年": 1}


def _han_year(text: str | None, today: date) -> int | None:
    if not text:
        return None
    if text in _RELATIVE_YEAR:
        return today.year + _RELATIVE_YEAR[text]
    value = _han(text.rstrip("年년 "))
    return value if value >= 1900 else 2000 + value if 0 < value < 100 else None


def _read_han(match: re.Match[str], today: date) -> Iterator[DayRange]:
    year, month = _han_year(match["year"], today), _han(match["month"])
    day = _han(match["day"]) if match["day"] else None
    if not 1 <= month <= 12 or day is not None and not 1 <= day <= 31:
        return
    if year is None:
        yield from _yearless(today, month, day)
    else:
        yield from _day(year, month, day) if day else _month(year, month)


def _read_year(match: re.Match[str], today: date) -> Iterator[DayRange]:
    year = _han_year(match["year"], today)
    if year is not None and 1900 <= year <= 2999:
        yield from _year(year)


def _read_season(match: re.Match[str], today: date) -> Iterator[DayRange]:
    first = w.SEASONS[match["season"]]
    if match["year"]:
        yield from _month(int(match["year"]), first, months=3)
        return
    year = today.year if (today.month - first) % 12 < 9 and today.month >= first + 3 else today.year - 1
    yield from _month(year, first, months=3)


def _read_word(match: re.Match[str], today: date) -> Iterator[DayRange]:
    ordinal = today.toordinal() + w.DAYS[match[0]]
    yield DayRange(ordinal, ordinal)


def _read_ago(match: re.Match[str], today: date) -> Iterator[DayRange]:
    number = _small(match["n"])
    for unit, _ in _UNITS:
        if match[unit] and number:
            yield from _ago(today, unit, number)


def _read_han_ago(match: re.Match[str], today: date) -> Iterator[DayRange]:
    unit = {"天": "day", "日": "day", "周": "week", "月": "month", "年": "year"}[match["unit"][-1]] if match["unit"] not in ("星期", "礼拜") else "week"
    number = _han(match["n"])
    if number > 0:
        yield from _ago(today, unit, number)


def _read_span(match: re.Match[str], today: date) -> Iterator[DayRange]:
    steps = -1 if match["last"] else 1 if match["next"] else 0
    if match["weekend"]:
        yield from _weekend(today, steps)
    elif match["weekday"]:
        yield from _weekday(today, w.WEEKDAYS[match["weekday"]], steps)
    else:
        yield from _step(today, "week" if match["week"] else "month" if match["month"] else "year", steps)


def _weekday(today: date, weekday: int, steps: int) -> Iterator[DayRange]:
    """`last Monday` and plain `on Monday` are the most recent one; `next Monday` the first one to come."""
    back = (today.weekday() - weekday) % 7
    ordinal = today.toordinal() + ((weekday - today.weekday() - 1) % 7 + 1 if steps > 0 else -(back or (7 if steps < 0 else 0)))
    yield DayRange(ordinal, ordinal)


_HAN_SPAN = {"上上": -2, "上个": -1, "上": -1, "先": -1, "这个": 0, "这": 0, "本": 0, "今": 0, "下个": 1, "下": 1, "来": 1, "지난": -1, "이번": 0, "다음": 1}


def _read_han_span(match: re.Match[str], today: date) -> Iterator[DayRange]:
    steps = _HAN_SPAN[match["which"].strip()]
    unit = match["unit"]
    if match["day"]:
        monday = today.toordinal() - today.weekday() + 7 * steps
        ordinal = monday + "一二三四五六日天".index(match["day"]) - (match["day"] == "天")
        yield DayRange(ordinal, ordinal)
    elif unit in ("周末", "週末", "주말"):
        yield from _weekend(today, steps)
    else:
        yield from _step(today, "month" if unit in ("月", "달") else "year" if unit in ("年", "해") else "week", steps)


def _read_han_weekday(match: re.Match[str], today: date) -> Iterator[DayRange]:
    yield from _weekday(today, min(6, "一二三四五六日天".index(match["day"])), 0)


_YEAR4 = r"(?P<year>(?:19|20)\d\d)"
_WORD = re.compile(r"[^\W\d_]+")
_DIGIT = re.compile(r"\d")
_HAN_CUE = re.compile(r"[年月日天周週期拜去前달월주해년]")
_MONTH_CUE = frozenset(_ALL_MONTHS)
_SEASON_CUE = frozenset(("spring", "summer", "autumn", "fall", "winter"))
_AGO_CUE = frozenset(("ago", "назад"))
_WEEKDAY_CUE = frozenset(part for name in w.WEEKDAYS for part in name.split("-"))
_SPAN_CUE = _WEEKDAY_CUE | frozenset("week woche semaine semana settimana неделе неделю неделя month monat mois mes mese mês месяце месяц".split()) | frozenset(
    "year jahr année an año anno ano году год weekend wochenende end fin выходные".split()
)
_LATIN_DAYS = [d for d in w.DAYS if d.isascii() or d[0] in "вспзв"]
_OTHER_DAYS = [d for d in w.DAYS if d not in _LATIN_DAYS]
_DAY_CUE = re.compile(rf"{_names(w.DAYS)}")
_LATIN_SMALL = [n for n in w.SMALL if not re.match("[一-龥]", n)]
_UNIT = rf"(?:(?P<day>{w.DAY})|(?P<week>{w.WEEKS})|(?P<month>{w.MONTHS_AGO})|(?P<year>{w.YEARS}))"
_SPAN = rf"(?:(?P<weekend>{w.WEEKEND})|(?P<weekday>{_names(w.WEEKDAYS)})|(?P<week>{w.WEEK})|(?P<month>{w.MONTH})|(?P<year>{w.YEAR}))"
_NONE = "(?P<last>)(?P<next>)(?P<weekend>)(?P<week>)(?P<month>)(?P<year>)"
_Cue = re.Pattern[str] | frozenset[str]
_Read = Callable[[re.Match[str], date], Iterator[DayRange]]
_RULES: tuple[tuple[_Cue, str, _Read], ...] = (
    (_DIGIT, r"(?<!\d)((?:19|20)\d\d)(?:[-/.]|年\s*)(\d{1,2})(?:[-/.]|月\s*)(\d{1,2})(?:日|号|號)?(?!\d)", _read_ymd),
    (_DIGIT, r"(?<!\d)((?:19|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?!\d)", _read_ymd),
    (_DIGIT, r"(?<![\d.])(\d{1,2})([./-])(\d{1,2})\2((?:19|20)\d\d)(?!\d)", _read_numeric),
    (
        _MONTH_CUE,
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|er|º)?\s+(?:of\s+|de\s+)?(?P<month>{_NAME})\b\.?(?:,?\s+(?:de\s+|of\s+)?{_YEAR4}\b)?",
        _read_day_month,
    ),
    (
        _MONTH_CUE,
        rf"\b(?P<month>{_NAME})\.?\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d|[.:]\d)(?:,?\s+(?:of\s+)?{_YEAR4}\b)?",
        _read_day_month,
    ),
    (_MONTH_CUE, rf"\b(?P<month>{_NAME})\.?,?\s+(?:of\s+|de\s+)?{_YEAR4}\b", _read_month_year),
    (_SEASON_CUE, rf"\b(?P<season>spring|summer|autumn|fall|winter)(?:\s+(?:of\s+|in\s+)?{_YEAR4}\b)", _read_season),
    (_SEASON_CUE, r"\b(?:last|past|previous)\s+(?P<season>spring|summer|autumn|fall|winter)\b(?P<year>)", _read_season),
    (
        _HAN_CUE,
        rf"(?P<year>(?:{_N}{{4}}|\d\d)\s*[年년]\s*|今年|去年|前年|明年)?的?(?P<month>\d{{1,2}}|[一二三四五六七八九十]{{1,2}})\s*[月월]\s*"
        rf"(?:(?P<day>{_N}{{1,3}})\s*(?:日|号|號|일)?(?!\d|个|個|天|年))?",
        _read_han,
    ),
    (_AGO_CUE, rf"\b(?P<n>\d{{1,3}}|{_names(_LATIN_SMALL)})\s+(?:of\s+)?{_UNIT}\s+(?:ago|назад)\b", _read_ago),
    (_HAN_CUE, r"(?P<n>\d{1,3}|[一二两三四五六七八九十]{1,3})\s*个?(?P<unit>天|日|周|星期|礼拜|月|年)(?:之?前|以前)", _read_han_ago),
    (_SPAN_CUE, rf"\b(?:(?P<last>{w.LAST})|(?P<next>{w.NEXT})|(?:{w.THIS}))\s+{_SPAN}\b", _read_span),
    (_WEEKDAY_CUE, rf"\b(?:on|am|le|el|em|в|во)\s+(?P<weekday>{_names(w.WEEKDAYS)})\b{_NONE}", _read_span),
    (
        _HAN_CUE,
        r"(?P<which>上上|上个|上|这个|这|本|下个|下|先|今|来|지난\s?|이번\s?|다음\s?)(?P<unit>周末|週末|주말|周|星期|礼拜|週|주|月|달|해)"
        r"(?P<day>(?<=[周期拜])[一二三四五六日天])?",
        _read_han_span,
    ),
    (_HAN_CUE, r"(?:周|星期|礼拜)(?P<day>[一二三四五六日天])", _read_han_weekday),
    (_HAN_CUE, r"(?P<year>[\d〇零一二三四五六七八九]{4}年|今年|去年|前年|明年)", _read_year),
    (_DIGIT, rf"\b(?:in|since|during|of|from|year|im\s+jahr|en|в)\s+{_YEAR4}\b(?![-/.]\d)", _read_year),
    (_MONTH_CUE, rf"\b(?:{_BY})\s+(?P<month>{_names(w.MONTHS)})\b(?!\s+(?:\d|have|be|not|i|we|you|he|she|they)\b)", _read_month),
    (_MONTH_CUE, rf"\b(?P<month>{_FULL})\b", _read_month),
    (_DAY_CUE, rf"(?:\b(?:{_names(_LATIN_DAYS)})\b|{_names(_OTHER_DAYS)})", _read_word),
)
