"""Calls to the yes-or-no questions that their inputs answer: is this value used, is that number above a bound. Pure."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_tools.tool_files import one_line
from memory_tools.tool_records import Advice, Json, ToolCall

SUPPORT = 3  # calls on each side, or nothing can be told
_MAX_TEXT = 60  # characters of a text that may be an option
_MAX_NAMES, _MAX_CUTS = 40, 7
_SUFFIX = re.compile(r"[^\s/\\]\.([A-Za-z][A-Za-z0-9]{0,7})\Z")
_SCHEME = re.compile(r"\A([a-z][a-z0-9+.-]{1,12})://")
ABSENT = object()

Row = Mapping[str, object]  # one call's parameters by name; nested ones with a dot


@dataclass(frozen=True, slots=True)
class Feature:
    """A question about one parameter. `holds[n]`: whether it is so for call n; `words` and `others` say the two sides for a reader."""

    parameter: str
    holds: tuple[bool, ...]
    words: str
    others: str
    derived: bool  # about a property of the value (its length, suffix) and not the value itself
    where_true: Advice  # if the side where it holds is the bad one
    where_false: Advice  # if the other is


def rows_of(calls: Sequence[ToolCall]) -> list[Row]:
    return [_flat(c.input) for c in calls]


def features_of(rows: Sequence[Row]) -> list[Feature]:
    """All questions with enough calls on both sides, in a fixed order; each way of dividing the calls once for each parameter."""
    names = sorted({name for row in rows for name in row})[:_MAX_NAMES]
    out: list[Feature] = []
    for name in names:
        values = [row.get(name, ABSENT) for row in rows]
        seen: set[tuple[bool, ...]] = set()
        for feature in (*_values(name, values), *_bounds(name, values), *_presence(name, values), *_properties(name, values)):
            flipped = tuple(not h for h in feature.holds)
            if min(sum(feature.holds), sum(flipped)) >= SUPPORT and feature.holds not in seen and flipped not in seen:
                seen.add(feature.holds)
                out.append(feature)
    return out


def shown(value: object) -> str:
    """A value as it may stand in Markdown: one line, in backticks, bounded."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f`\u2028\u2029]", " ", text).split())
    return f"`{text[:_MAX_TEXT]}{'…' if len(text) > _MAX_TEXT else ''}`" if text else '`""`'


def is_option(value: object) -> bool:
    """Whether a value is one of a few that a caller may choose from, and not free text."""
    return (
        value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _MAX_TEXT and "\n" not in value)
    )


def finite(value: object) -> float | None:
    """A number as such; None for anything else, and for what no comparison can use."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{value:,.0f}"


def _flat(given: Json) -> Row:
    if isinstance(given, str):
        try:
            parsed = json.loads(given) if given[:1] == "{" else None
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            return {"input": given}
        given = parsed
    out: dict[str, object] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, dict):
            out.update({_name(f"{name}.{inner}"): v for inner, v in value.items() if not isinstance(v, dict)})
        else:
            out[_name(str(name))] = value
    return out


def _name(name: str) -> str:
    """A parameter's name as it may stand between backticks."""
    return one_line(name.replace("`", "'"))[:80]


def _values(name: str, values: Sequence[object]) -> Iterator[Feature]:
    """Is it exactly this value?"""
    options = {_key(v): v for v in values if v is not ABSENT and is_option(v)}
    if len(options) > 12:  # numbers and texts of any kind: bounds and properties ask about those
        counts = {k: sum(_key(v) == k for v in values if v is not ABSENT) for k in options}
        options = {k: v for k, v in options.items() if counts[k] >= SUPPORT}
    for key in sorted(options):
        value = options[key]
        holds = tuple(v is not ABSENT and _key(v) == key for v in values)
        rest = sorted({k for v in values if v is not ABSENT and is_option(v) and (k := _key(v)) != key})
        other: list[Json] | None = [_json(options[k]) for k in rest if k in options][:5] or None
        only = len(rest) == 1 and rest[0] in options and ABSENT not in values
        others = f"`{name}` {shown(options[rest[0]])}" if only else "other calls"
        here: list[Json] = [_json(value)]
        yield Feature(name, holds, f"`{name}` {shown(value)}", others, False, Advice(other, here), Advice(here, other if only else None))


def _bounds(name: str, values: Sequence[object]) -> Iterator[Feature]:
    """Is the number above this?"""
    numbers = [finite(v) for v in values]
    for low, high in _cuts([n for n in numbers if n is not None]):
        holds = tuple(n is not None and n >= high for n in numbers)
        words, others = f"`{name}` from {number(high)} up", f"`{name}` up to {number(low)}"
        below: dict[str, Json] = {"max": _whole(low)}
        above: dict[str, Json] = {"min": _whole(high)}
        yield Feature(name, holds, words, others, False, Advice(below, above), Advice(above, below))


def _presence(name: str, values: Sequence[object]) -> Iterator[Feature]:
    """Is it given at all?"""
    holds = tuple(v is not ABSENT for v in values)
    yield Feature(name, holds, f"`{name}` given", f"`{name}` left out", False, Advice("left out", "given"), Advice("given", "left out"))


def _properties(name: str, values: Sequence[object]) -> Iterator[Feature]:
    """Is a text longer than this, a list larger, of this suffix, of this scheme?"""
    sizes = [float(len(v)) if isinstance(v, str | list) else None for v in values]
    unit = "entries" if all(isinstance(v, list) for v in values if v is not ABSENT) else "characters"
    for low, high in _cuts([s for s in sizes if s is not None]):
        holds = tuple(s is not None and s >= high for s in sizes)
        words, others = f"`{name}` of {number(high)} {unit} or more", f"`{name}` of up to {number(low)} {unit}"
        below, above = f"up to {number(low)} {unit}", f"{number(high)} {unit} or more"
        yield Feature(name, holds, words, others, True, Advice(below, above), Advice(above, below))
    for pattern, what in ((_SUFFIX, "ending in ."), (_SCHEME, "with the scheme ")):
        marks = [m[1].lower() if isinstance(v, str) and (m := pattern.search(v.strip())) else None for v in values]
        for mark in sorted({m for m in marks if m is not None}):
            holds = tuple(m == mark for m in marks)
            words, text = f"`{name}` {what}{mark}", f"{what}{mark}"
            yield Feature(name, holds, words, "other calls", True, Advice(None, text), Advice(text, None))


def _cuts(numbers: Sequence[float]) -> list[tuple[float, float]]:
    """Up to _MAX_CUTS places between neighbouring distinct numbers, spread over the calls: (largest below, smallest above)."""
    distinct = sorted(set(numbers))
    pairs = list(itertools.pairwise(distinct))
    if len(pairs) <= _MAX_CUTS:
        return pairs
    ordered = sorted(numbers)
    wanted = [ordered[len(ordered) * (i + 1) // (_MAX_CUTS + 1)] for i in range(_MAX_CUTS)]
    return [p for p in pairs if any(p[0] < w <= p[1] for w in wanted)]


def all_bounds(name: str, rows: Sequence[Row]) -> list[Feature]:
    """Every cut of a number, to say a bound exactly once it is known that there is one."""
    values = [row.get(name, ABSENT) for row in rows]
    numbers = sorted({n for v in values if (n := finite(v)) is not None})
    out: list[Feature] = []
    for low, high in itertools.pairwise(numbers):
        out += [
            f
            for f in _bounds(name, [v if v is ABSENT else _side(v, low, high) for v in values])
            if f.words.endswith(f"from {number(high)} up")
        ]
    return out


def _side(value: object, low: float, high: float) -> object:
    found = finite(value)
    return value if found is None else high if found >= high else low


def _key(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _json(value: object) -> Json:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _whole(value: float) -> Json:
    return int(value) if value == int(value) else value
