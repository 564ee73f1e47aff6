"""The ways to write a date, as patterns, and what each means: a match in, ranges of days out. The more exact ones come first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date

from memory_tools import date_words as w
from memory_tools.day_ranges import (
    DayRange,
    about_ago,
    han_number,
    months_of,
    one_day,
    small_number,
    weekday_day,
    weekend,
    whole_unit,
    whole_year,
    without_year,
)


def _names(words: object) -> str:
    return "|".join(sorted(map(re.escape, words), key=lambda s: (-len(s), s)))  # type: ignore[call-overload]


_N = r"[\d〇零一二三四五六七八九十廿卅]"
_ALL_MONTHS = w.MONTHS | w.SHORT_MONTHS
_NAME = _names(_ALL_MONTHS)
_FULL = _names(name for name in w.MONTHS if name not in w.AMBIGUOUS)
_BY = r"in|of|last|past|next|this|since|until|till|during|by|before|after|early|late|mid|im|seit|letzten|en|au|em|de|del|в|с|до|прошлом"
_UNITS = (("day", w.DAY), ("week", w.WEEKS), ("month", w.MONTHS_AGO), ("year", w.YEARS))


def _month_number(name: str) -> int:
    return _ALL_MONTHS[name.rstrip(".")]


def _read_ymd(match: re.Match[str], today: date) -> Iterator[DayRange]:
    yield from one_day(*(han_number(part) for part in match.groups()))


def _read_numeric(match: re.Match[str], today: date) -> Iterator[DayRange]:
    a, separator, b, year = int(match[1]), match[2], int(match[3]), int(match[4])
    yield from one_day(year, b, a)
    if separator != "." and a != b:
        yield from one_day(year, a, b)


def _read_day_month(match: re.Match[str], today: date) -> Iterator[DayRange]:
    day, month = int(match["day"]), _month_number(match["month"])
    yield from one_day(int(match["year"]), month, day) if match["year"] else without_year(today, month, day)


def _read_month_year(match: re.Match[str], today: date) -> Iterator[DayRange]:
    yield from months_of(int(match["year"]), _month_number(match["month"]))


def _read_month(match: re.Match[str], today: date) -> Iterator[DayRange]:
    yield from without_year(today, _month_number(match["month"]), None)


_RELATIVE_YEAR = {"今年": 0, "去年": -1, "前年": -2, "明年": 1}


def _han_year(text: str | None, today: date) -> int | None:
    if not text:
        return None
    if text in _RELATIVE_YEAR:
        return today.year + _RELATIVE_YEAR[text]
    value = han_number(text.rstrip("年년 "))
    return value if value >= 1900 else 2000 + value if 0 < value < 100 else None


def _read_han(match: re.Match[str], today: date) -> Iterator[DayRange]:
    year, month = _han_year(match["year"], today), han_number(match["month"])
    day = han_number(match["day"]) if match["day"] else None
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return
    if year is None:
        yield from without_year(today, month, day)
    else:
        yield from one_day(year, month, day) if day else months_of(year, month)


def _read_year(match: re.Match[str], today: date) -> Iterator[DayRange]:
    year = _han_year(match["year"], today)
    if year is not None and 1900 <= year <= 2999:
        yield from whole_year(year)


def _read_season(match: re.Match[str], today: date) -> Iterator[DayRange]:
    first = w.SEASONS[match["season"]]
    if match["year"]:
        yield from months_of(int(match["year"]), first, months=3)
        return
    year = today.year if (today.month - first) % 12 < 9 and today.month >= first + 3 else today.year - 1
    yield from months_of(year, first, months=3)


def _read_word(match: re.Match[str], today: date) -> Iterator[DayRange]:
    ordinal = today.toordinal() + w.DAYS[match[0]]
    yield DayRange(ordinal, ordinal)


def _read_ago(match: re.Match[str], today: date) -> Iterator[DayRange]:
    number = small_number(match["n"])
    for unit, _ in _UNITS:
        if match[unit] and number:
            yield from about_ago(today, unit, number)


def _read_han_ago(match: re.Match[str], today: date) -> Iterator[DayRange]:
    unit = (
        {"天": "day", "日": "day", "周": "week", "月": "month", "年": "year"}[match["unit"][-1]]
        if match["unit"] not in ("星期", "礼拜")
        else "week"
    )
    number = han_number(match["n"])
    if number > 0:
        yield from about_ago(today, unit, number)


def _read_span(match: re.Match[str], today: date) -> Iterator[DayRange]:
    steps = -1 if match["last"] else 1 if match["next"] else 0
    if match["weekend"]:
        yield from weekend(today, steps)
    elif match["weekday"]:
        yield from weekday_day(today, w.WEEKDAYS[match["weekday"]], steps)
    else:
        yield from whole_unit(today, "week" if match["week"] else "month" if match["month"] else "year", steps)


_HAN_SPAN = {
    "上上": -2,
    "上个": -1,
    "上": -1,
    "先": -1,
    "这个": 0,
    "这": 0,
    "本": 0,
    "今": 0,
    "下个": 1,
    "下": 1,
    "来": 1,
    "지난": -1,
    "이번": 0,
    "다음": 1,
}


def _read_han_span(match: re.Match[str], today: date) -> Iterator[DayRange]:
    steps = _HAN_SPAN[match["which"].strip()]
    unit = match["unit"]
    if match["day"]:
        monday = today.toordinal() - today.weekday() + 7 * steps
        ordinal = monday + "一二三四五六日天".index(match["day"]) - (match["day"] == "天")
        yield DayRange(ordinal, ordinal)
    elif unit in ("周末", "週末", "주말"):
        yield from weekend(today, steps)
    else:
        yield from whole_unit(today, "month" if unit in ("月", "달") else "year" if unit in ("年", "해") else "week", steps)


def _read_han_weekday(match: re.Match[str], today: date) -> Iterator[DayRange]:
    yield from weekday_day(today, min(6, "一二三四五六日天".index(match["day"])), 0)


_YEAR4 = r"(?P<year>(?:19|20)\d\d)"
_DIGIT = re.compile(r"\d")
_HAN_CUE = re.compile(r"[年月日天周週期拜去前달월주해년]")
_MONTH_CUE = frozenset(_ALL_MONTHS)
_SEASON_CUE = frozenset(("spring", "summer", "autumn", "fall", "winter"))
_AGO_CUE = frozenset(("ago", "назад"))
_WEEKDAY_CUE = frozenset(part for name in w.WEEKDAYS for part in name.split("-"))
_SPAN_CUE = _WEEKDAY_CUE | frozenset(w.SPAN_WORDS.split())
_LATIN_DAYS = [d for d in w.DAYS if d.isascii() or d[0] in "вспзв"]
_OTHER_DAYS = [d for d in w.DAYS if d not in _LATIN_DAYS]
_DAY_CUE = re.compile(rf"{_names(w.DAYS)}")
_LATIN_SMALL = [n for n in w.SMALL if not re.match("[一-龥]", n)]
_UNIT = rf"(?:(?P<day>{w.DAY})|(?P<week>{w.WEEKS})|(?P<month>{w.MONTHS_AGO})|(?P<year>{w.YEARS}))"
_SPAN = rf"(?:(?P<weekend>{w.WEEKEND})|(?P<weekday>{_names(w.WEEKDAYS)})|(?P<week>{w.WEEK})|(?P<month>{w.MONTH})|(?P<year>{w.YEAR}))"
_NONE = "(?P<last>)(?P<next>)(?P<weekend>)(?P<week>)(?P<month>)(?P<year>)"
Cue = re.Pattern[str] | frozenset[str]
Read = Callable[[re.Match[str], date], Iterator[DayRange]]
RULES: tuple[tuple[Cue, str, Read], ...] = (
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
