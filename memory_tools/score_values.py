"""A JSON value from utility-scores.json in, a number, time, flag or text out, or None where it is none; and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

COUNTS = ("use_count", "success_count", "fail_count")
_TIMES = ("last_used", "last_success", "edited", "orphaned")
_FLAGS = ("positive_feedback", "pinned", "muted")
_TEXTS = ("id", "body", "sketch", "recent", "event")
_NUMBERS = ("q", "utility")
KNOWN = frozenset((*COUNTS, *_TIMES, *_FLAGS, *_TEXTS, *_NUMBERS))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -1e15 <= value <= 1e15 else None  # NaN and infinity are outside too


def _count(value: object) -> float | None:
    if type(value) is int and -1e15 <= value <= 1e15:
        return value
    number = _number(value)
    return None if number is None else int(number) if float(number).is_integer() else number


def read_time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def time_text(moment: datetime) -> str:
    """`2026-03-05T11:00:00Z`: whole seconds, UTC."""
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:39] + "…"


def _rounded(value: float) -> float:
    return round(value, 4)


READ: Mapping[str, Callable[[object], object]] = (
    dict.fromkeys(COUNTS, _count)
    | dict.fromkeys(_NUMBERS, _number)
    | dict.fromkeys(_TIMES, read_time)
    | dict.fromkeys(_FLAGS, _flag)
    | dict.fromkeys(_TEXTS, _text)
)
EXPECTED: Mapping[str, str] = (
    dict.fromkeys((*COUNTS, *_NUMBERS), "a number")
    | dict.fromkeys(_TIMES, "a time like 2026-03-05T11:00:00Z")
    | dict.fromkeys(_FLAGS, "true or false")
    | dict.fromkeys(_TEXTS, "a text")
)
WRITE: Mapping[str, Callable[..., object]] = {
    **dict.fromkeys(_TIMES, time_text),
    **dict.fromkeys(_NUMBERS, _rounded),
}
