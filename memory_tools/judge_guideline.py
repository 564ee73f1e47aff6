"""A tool's newest calls to a guideline by fixed rules: what it does, its parameters, what goes wrong with what, what to do. Pure."""

from __future__ import annotations

import re
import statistics as st
from collections import Counter
from collections.abc import Mapping, Sequence

from memory_tools.judge_causes import Cause, Slow, causes, slow
from memory_tools.judge_errors import brief, error_kind, reported_error
from memory_tools.judge_features import Row, finite, is_option, number, rows_of, shown
from memory_tools.judge_values import Guideline, SummaryRequest
from memory_tools.tool_files import one_line
from memory_tools.tool_records import Advice, Json, ToolCall

_MAX_PARAMETERS, _MAX_ERRORS = 20, 6
_WARNING = re.compile(r"\A\s*(?:\W{0,3}warn(?:ing)?\b|.{0,80}\bdeprecat)", re.I)
_EMPTY = re.compile(
    r"\A\s*(?:no (?:results?|matches|data|items|records|entries|files?)\b|(?:found )?0 (?:results?|matches|items|rows|records)\b"
    r"|\[\s*\]|\{\s*\}|null|none)",
    re.I,
)
_USELESS = "reported success, but was judged useless"


def guideline(request: SummaryRequest) -> Guideline:
    """Markdown with the parts Core Function, Parameters, Pitfalls, Recommendations, and the advice of its Parameters part."""
    calls, rows = request.calls, rows_of(request.calls)
    failed = [c.failed for c in calls]
    warned = [not c.failed and bool(_WARNING.match(c.output)) for c in calls]
    found = causes(rows, failed)
    warnings = causes(rows, warned)
    slows = slow(rows, [0.0 if c.failed else c.time_cost for c in calls])
    advice = _advice(rows, [not f and not w for f, w in zip(failed, warned, strict=True)], [*found, *warnings])
    parts = (
        ("Core Function", _core(request, rows)),
        ("Parameters", _parameters(calls, rows, advice)),
        ("Pitfalls", _pitfalls(calls, found, warnings, warned)),
        ("Recommendations", _recommendations(calls, found, warnings, slows)),
    )
    return Guideline("\n\n".join(f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines) for title, lines in parts), advice)


def _core(request: SummaryRequest, rows: Sequence[Row]) -> list[str]:
    calls = request.calls
    worked = [c for c in calls if not c.failed]
    names = Counter(name for row in rows for name in row)
    listed = ", ".join(f"`{one_line(n)}`" for n, _ in sorted(names.items(), key=lambda item: (-item[1], item[0]))[:8])
    lines = [
        f"`{one_line(request.tool_name)}` did what was asked in {len(worked)} of the newest {_calls(len(calls))}.",
        f"It is called with {listed}." if listed else "It is called without arguments.",
    ]
    typical = next((c for c in reversed(worked) if c.output.strip() and not _EMPTY.match(c.output) and not _WARNING.match(c.output)), None)
    if typical is not None:
        lines.append(f"A typical answer begins: {shown(brief(typical.output, 120))}")
    elif worked:
        lines.append("It answers nothing when it succeeds.")
    return lines


def _advice(rows: Sequence[Row], good: Sequence[bool], found: Sequence[Cause]) -> dict[str, Advice]:
    """What is known of values: to avoid, what a cause or its twin says; to use, what is usual in calls without trouble."""
    out: dict[str, Advice] = {}
    for name in _names(rows):
        said = [c.advice for cause in found for c in (cause, *cause.twins) if c.parameter == name]
        lists = [a.avoid for a in said if isinstance(a.avoid, list)]
        bad = [v for one in lists for v in one]
        avoid = list({repr(v): v for v in bad}.values())
        usual = _usual(
            [row[name] for row, g in zip(rows, good, strict=True) if g and name in row and repr(row[name]) not in map(repr, bad)]
        )
        if said:
            out[name] = Advice(usual if usual is not None else said[0].recommended, avoid if said[0].avoid in lists else said[0].avoid)
        elif usual is not None:
            out[name] = Advice(usual, None)
    return out


def _usual(values: Sequence[object]) -> Json:
    """The range of numbers, or the few options, that calls used; None for free text."""
    numbers = [v for v in values if isinstance(v, int | float) and finite(v) is not None]
    if values and len(numbers) == len(values):
        return {"min": min(numbers), "max": max(numbers)} if len(set(numbers)) > 1 else [numbers[0]]
    options = Counter(v if isinstance(v, str) else repr(v) for v in values if is_option(v))
    if not values or len(options) > 5 or sum(options.values()) < len(values) or max(options.values()) < 2:
        return None
    by_text = {v if isinstance(v, str) else repr(v): v for v in values}
    usual = [by_text[k] for k, _ in sorted(options.items(), key=lambda item: (-item[1], item[0]))]
    return [v if v is None or isinstance(v, bool | int | float | str) else str(v) for v in usual]


def _parameters(calls: Sequence[ToolCall], rows: Sequence[Row], advice: Mapping[str, Advice]) -> list[str]:
    lines: list[str] = []
    for name in _names(rows)[:_MAX_PARAMETERS]:
        given = [row[name] for row in rows if name in row]
        line = f"`{one_line(name)}` ({_type(given)}, in {len(given)} of {_calls(len(calls))})"
        found = advice.get(name, Advice())
        if found.recommended is not None:
            line += f": {'worked with' if found.avoid is None else 'use'} {_values(found.recommended)}"
        if found.avoid is not None:
            line += f"{';' if found.recommended is not None else ':'} avoid {_values(found.avoid)}"
        lines.append(line)
    return lines or ["None: it is called without arguments."]


def _pitfalls(calls: Sequence[ToolCall], found: Sequence[Cause], warnings: Sequence[Cause], warned: Sequence[bool]) -> list[str]:
    failures = [c for c in calls if c.failed]
    lines = [_told(cause, calls, "failed") for cause in found]
    lines += [_told(cause, calls, "came with a warning") for cause in warnings]
    kinds = Counter(_kind(c) for c in failures)
    for kind, count in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))[:_MAX_ERRORS]:
        example = next(c for c in reversed(failures) if _kind(c) == kind)
        said = reported_error(example.output) or brief(example.output)
        lines.append(f"{kind}: {count} of {_count(len(failures), 'failure')}" + (f", last as {shown(brief(said, 100))}" if said else ""))
    if any(warned):
        example = next(c for c, w in zip(reversed(calls), reversed(warned), strict=True) if w)
        lines.append(f"{_calls(sum(warned))} succeeded with a warning, last as {shown(brief(example.output, 100))}")
    empty = sum(not c.failed and bool(_EMPTY.match(c.output)) for c in calls)
    if empty:
        lines.append(f"{_calls(empty)} of {len(calls)} found nothing.")
    run = _failing_run(calls)
    if run:
        lines.append(
            f"The newest {_calls(run)} all failed, after {len(failures) - run} of {len(calls) - run} before: the tool may be down."
        )
    return lines or [f"None seen in {_calls(len(calls))}."]


def _recommendations(calls: Sequence[ToolCall], found: Sequence[Cause], warnings: Sequence[Cause], slows: Sequence[Slow]) -> list[str]:
    lines = [f"Avoid {c.words}: otherwise {c.good} of {_calls(c.good_calls)} failed." for c in found]
    lines += [f"Avoid {c.words}, which brings a warning." for c in warnings]
    lines += [
        f"{s.words} is slow: {_seconds(s.median_s)} (median of {_calls(s.calls)}) against {_seconds(s.other_median_s)}; "
        "use it only where needed."
        for s in slows
    ]
    failures = sum(c.failed for c in calls)
    if failures and not found:
        lines.append(
            f"The {_count(failures, 'failure')} of {_calls(len(calls))} do not go with any one parameter: "
            "check the output before relying on it."
        )
    times = [c.time_cost for c in calls if c.time_cost > 0 and not c.failed]
    tokens = [c.token_cost for c in calls if c.token_cost > 0]
    cost = ([f"{_seconds(st.median(times))}"] if times else []) + ([f"{st.median(tokens):.0f} tokens"] if tokens else [])
    if cost:
        slowest = f" (up to {_seconds(max(times))})" if times and max(times) > 2 * st.median(times) else ""
        lines.append(f"Expect about {' and '.join(cost)} for a call{slowest}.")
    return lines or ["Nothing stands out: call it as before."]


def _told(cause: Cause, calls: Sequence[ToolCall], verb: str) -> str:
    twins = " and ".join(t.words for t in cause.twins)
    together = f" (always together with {twins}, so these cannot be told apart)" if twins else ""
    text = f"{cause.words}{together}: {cause.bad} of {_calls(cause.bad_calls)} {verb}, against {cause.good} of {cause.good_calls} otherwise"
    kinds = Counter(_kind(calls[n]) for n in cause.members if calls[n].failed) if verb == "failed" else Counter()
    if kinds:
        kind, count = min(kinds.items(), key=lambda item: (-item[1], item[0]))
        text += f"; mostly {kind}" if count * 2 > cause.bad else ""
    return text


def _kind(call: ToolCall) -> str:
    return error_kind(call) if not call.success or reported_error(call.output) else _USELESS


def _failing_run(calls: Sequence[ToolCall]) -> int:
    """How many of the newest calls failed in a row, where that is new: four or more, after mostly successes."""
    run = next((n for n, c in enumerate(reversed(calls)) if not c.failed), len(calls))
    before = calls[: len(calls) - run]
    return run if run >= 4 and len(before) >= 5 and sum(c.failed for c in before) <= 0.3 * len(before) else 0


def _names(rows: Sequence[Row]) -> list[str]:
    counts = Counter(name for row in rows for name in row)
    return [n for n, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _type(values: Sequence[object]) -> str:
    kinds = {
        "true or false" if isinstance(v, bool) else "number" if isinstance(v, int | float) else "list" if isinstance(v, list)
        else "text" if isinstance(v, str) else "null" if v is None else "object"
        for v in values
    }  # fmt: skip
    return " or ".join(sorted(kinds))


def _values(value: Json) -> str:
    if isinstance(value, list):
        return ", ".join(shown(v) for v in value)
    if isinstance(value, dict):
        low, high = (v if isinstance(v, int | float) else None for v in (value.get("min"), value.get("max")))
        if low is not None and high is not None:
            return f"{number(low)} to {number(high)}"
        return f"{number(low)} or more" if low is not None else f"up to {number(high)}" if high is not None else shown(value)
    return str(value)


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def _calls(n: int) -> str:
    return _count(n, "call")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
