"""A batch of calls, and those stored, to what has to be appended, filled in and judged. Pure but for asking an instant judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_tools.errors import InvalidInput, TooLarge
from memory_tools.judge_rules import completed, evaluate
from memory_tools.judge_values import Evaluation, Failure, Judge
from memory_tools.tool_files import Calls, Entry, entry
from memory_tools.tool_input import read_call
from memory_tools.tool_records import Advice, Refused, ToolCall, call_hash, clean_value, shortened

STUCK_S = 900.0  # a call that "a judge is at" for so long was left behind by a process that ended
MAX_CALLS = 10_000  # in one request

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Batch:
    """A request, checked and masked: the calls of each tool in the order sent."""

    total: int
    by_tool: Mapping[str, list[ToolCall]]
    refused: tuple[Refused, ...] = ()
    masked: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """`entries`: the stored lines, some of them filled in; `appended` come behind them; `to_judge` are stored and wait."""

    entries: tuple[Entry, ...]
    appended: tuple[ToolCall, ...] = ()
    duplicates: int = 0
    to_judge: tuple[ToolCall, ...] = ()
    changed: bool = field(default=False)


def ready(calls: Sequence[Mapping[str, object]], now: datetime) -> Batch:
    """Check, mask and name each call. Raises InvalidInput for a request of the wrong form; refuses what cannot be kept under its name."""
    if isinstance(calls, str | bytes | Mapping) or not isinstance(calls, Sequence):
        raise InvalidInput("tool_call_results: expected a list of calls")
    if len(calls) > MAX_CALLS:
        raise TooLarge(f"tool_call_results: {len(calls):,} calls, at most {MAX_CALLS:,} in one request")
    by_tool: dict[str, list[ToolCall]] = {}
    refused: list[Refused] = []
    masked = 0
    for index, raw in enumerate(calls):
        read = read_call(raw, f"tool_call_results[{index}]", now)
        if isinstance(read, str):
            refused.append(Refused(index, read))
            continue
        call, secrets = _masked(read)
        masked += secrets
        by_tool.setdefault(call.tool_name, []).append(call)
    return Batch(len(calls), by_tool, tuple(refused), masked)


def _masked(call: ToolCall) -> tuple[ToolCall, int]:
    """The call without its secrets. The hash is taken of what is stored: of the original it would help to guess a short password."""
    from memory_tools.masking import mask, mask_value

    given, output, metadata = mask_value(call.input), mask(call.output), mask_value(dict(call.metadata))
    summary, evaluation = mask(call.summary), mask(call.evaluation)
    assert isinstance(metadata.value, dict)
    kept = clean_value(given.value)
    return replace(
        call,
        input=kept,
        output=shortened(output.text),
        summary=shortened(summary.text, 2_000),
        evaluation=shortened(evaluation.text, 4_000),
        metadata={str(k): clean_value(v) for k, v in metadata.value.items()},
        call_hash=call_hash(kept if len(str(kept)) < len(str(given.value)) else given.value, output.text),
    ), sum(m.count for m in (given, output, metadata, summary, evaluation))


def added(stored: Calls, sent: Sequence[ToolCall], judge: Judge, clock: float) -> Change:
    """What a batch for one tool changes. Duplicates are found before anything is judged; one that brings a score for a call that waits
    fills it in. An instant judge is asked here, and about calls that waited for another one too."""
    known = {c.key: c for c in stored.calls}
    new: dict[Key, ToolCall] = {}
    scored: dict[Key, Evaluation | Failure] = {}
    duplicates = 0
    for call in sent:
        old = new.get(call.key) or known.get(call.key)
        if old is None:
            new[call.key] = call
            continue
        duplicates += 1
        if old.score is None and call.score is not None:
            given = completed(call, evaluate(call, ()))
            if call.key in new:
                new[call.key] = replace(old, summary=given.summary, evaluation=given.evaluation, score=given.score)
            else:
                scored[call.key] = given
    done = {c.key: completed(c, evaluate(c, ())) for c in new.values() if c.score is not None}
    open_calls = [c for c in new.values() if c.score is None]
    old_open = [c for c in stored.calls if c.score is None and c.key not in scored and stale(c, clock)]
    if judge.instant:
        asked = [*old_open, *open_calls] if judge.name != "agent" else open_calls
        said = judge.evaluate(asked, [c for c in stored.calls if c.score is not None])
        answers: dict[Key, Evaluation | Failure] = dict(zip((c.key for c in asked), said, strict=True))
        scored |= {k: v for k, v in answers.items() if k not in new}
        appended = [_with(c, done.get(c.key) or answers[c.key], clock) for c in new.values()]
        to_judge: list[ToolCall] = []
    else:
        appended = [_with(c, found, clock) if (found := done.get(c.key)) else replace(c, since=clock) for c in new.values()]
        to_judge = [*(old_open[-20:] if open_calls else ()), *(c for c in appended if c.score is None)]
    entries = filled(stored.entries, scored)
    return Change(entries, tuple(appended), duplicates, tuple(to_judge), bool(appended) or entries != stored.entries)


def filled(entries: Sequence[Entry], said: Mapping[Key, Evaluation | Failure]) -> tuple[Entry, ...]:
    """The stored lines with what a judge said of those that still wait."""
    out: list[Entry] = []
    for one in entries:
        found = said.get(one.call.key) if one.call is not None and one.call.score is None else None
        out.append(entry(_with(one.call, found, one.call.since)) if one.call is not None and found is not None else one)
    return tuple(out)


def stale(call: ToolCall, clock: float) -> bool:
    """Whether a call waits without a judge being at it."""
    return bool(call.waiting) or clock - call.since > STUCK_S or call.since > clock + STUCK_S


def _with(call: ToolCall, said: Evaluation | Failure, since: float) -> ToolCall:
    from memory_tools.masking import mask

    if isinstance(said, Failure):
        return replace(call, waiting=mask(said.reason).text[:500] or "the judge failed", since=since)
    found = completed(call, said)
    return replace(call, summary=mask(found.summary).text, evaluation=mask(found.evaluation).text, score=found.score, waiting="", since=0.0)


def masked_advice(parameters: Mapping[str, Advice]) -> dict[str, Advice]:
    """A judge's advice without secrets: a model may repeat what it was shown."""
    from memory_tools.masking import mask_value

    return {n: Advice(mask_value(a.recommended).value, mask_value(a.avoid).value) for n, a in parameters.items()}
