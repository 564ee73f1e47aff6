"""Frozen values of tool memory, to and from the JSON that is stored and sent. Pure."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from memory_tools.errors import InvalidInput

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

TIME_FORMAT = "%Y-%m-%d %H:%M:%S"  # local time, as the clients of these routes know it
MAX_TEXT = 100_000  # characters of one stored input string or output; the middle of a longer one is left out
MAX_NUMBER = 1e12
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, masked. `score` None: it still waits for a judge, and `waiting` says why (\"\": a judge is at it)."""

    create_time: str
    tool_name: str
    input: Json
    output: str
    summary: str = ""
    evaluation: str = ""
    score: float | None = None
    success: bool = True
    time_cost: float = 0.0  # seconds, 0 where unknown
    token_cost: int = 0
    is_summarized: bool = False
    call_hash: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    waiting: str = ""
    since: float = 0.0  # seconds since the epoch at which it began to wait

    @property
    def key(self) -> tuple[str, str]:
        """Equal for what counts as the same call of one tool."""
        return self.call_hash, self.create_time

    @property
    def failed(self) -> bool:
        return not self.success or (self.score is not None and self.score < 0.5)


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that was not stored. `index` is its place in the request, from 0."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What the calls say about one parameter's values. Each part is a list of values, or {\"min\"} {\"max\"} for numbers; None: nothing."""

    recommended: Json = None
    avoid: Json = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Over evaluated calls. Averages of time (s) and tokens are None where no call has them."""

    calls: int = 0
    success_rate: float = 0.0
    average_score: float = 0.0
    average_time_s: float | None = None
    average_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class ToolMemory:
    """All that is known of one tool. `calls` are the evaluated ones, oldest first; `pending` wait for a judge."""

    workspace_id: str
    memory_id: str
    when_to_use: str  # the tool's exact name
    content: str
    score: float
    time_created: str
    time_modified: str
    author: str
    calls: tuple[ToolCall, ...]
    pending: tuple[ToolCall, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)
    parameters: Mapping[str, Advice] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, Json]:
        """As the HTTP routes send it."""
        metadata: dict[str, Json] = {
            "pending_calls": [call_document(c) | {"reason": c.waiting or "being judged"} for c in self.pending],
            "statistics": statistics_document(self.statistics),
        }
        if self.parameters:
            metadata["parameters"] = parameters_document(self.parameters)
        if self.warnings:
            metadata["warnings"] = list(self.warnings)
        return {
            "workspace_id": self.workspace_id,
            "memory_id": self.memory_id,
            "memory_type": "tool",
            "when_to_use": self.when_to_use,
            "content": self.content,
            "score": self.score,
            "time_created": self.time_created,
            "time_modified": self.time_modified,
            "author": self.author,
            "tool_call_results": [call_document(c) for c in self.calls],
            "metadata": metadata,
        }


def call_document(call: ToolCall) -> dict[str, Json]:
    return {
        "create_time": call.create_time,
        "tool_name": call.tool_name,
        "input": call.input,
        "output": call.output,
        "summary": call.summary,
        "evaluation": call.evaluation,
        "score": call.score,
        "success": call.success,
        "time_cost": call.time_cost,
        "token_cost": call.token_cost,
        "is_summarized": call.is_summarized,
        "call_hash": call.call_hash,
        "metadata": dict(call.metadata),
    }


def statistics_document(s: Statistics) -> dict[str, Json]:
    return {
        "total_calls": s.calls,
        "success_rate": round(s.success_rate, 4),
        "average_score": round(s.average_score, 4),
        "average_time_cost": None if s.average_time_s is None else round(s.average_time_s, 3),
        "average_token_cost": None if s.average_tokens is None else round(s.average_tokens, 1),
    }


def figures_text(s: Statistics) -> str:
    """The Statistics part of a guideline."""
    lines = [f"- Success rate: {s.success_rate:.1%} of {s.calls} calls", f"- Average score: {s.average_score:.2f}"]
    if s.average_time_s is not None:
        lines.append(f"- Average time: {s.average_time_s:.2f} s")
    if s.average_tokens is not None:
        lines.append(f"- Average tokens: {s.average_tokens:.0f}")
    return "\n".join(lines)


def parameters_document(parameters: Mapping[str, Advice]) -> dict[str, Json]:
    return {name: {"recommended": a.recommended, "avoid": a.avoid} for name, a in sorted(parameters.items())}


def statistics_of(calls: tuple[ToolCall, ...]) -> Statistics:
    """Of evaluated calls; others are left out."""
    judged = [c for c in calls if c.score is not None]
    if not judged:
        return Statistics()
    times = [c.time_cost for c in judged if c.time_cost > 0]
    tokens = [c.token_cost for c in judged if c.token_cost > 0]
    return Statistics(
        calls=len(judged),
        success_rate=sum(c.success for c in judged) / len(judged),
        average_score=sum(c.score or 0.0 for c in judged) / len(judged),
        average_time_s=sum(times) / len(times) if times else None,
        average_tokens=sum(tokens) / len(tokens) if tokens else None,
    )


def read_score(value: object, where: str) -> float:
    """0.0 or 1.0: the nearer one of a number in [0, 1]. Raises InvalidInput for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{where}: expected 0.0 or 1.0, not {value!r}"[:200])
    return 1.0 if value >= 0.5 else 0.0


def call_hash(given: Json, output: str) -> str:
    """md5 of the input, `|` and the output; an object with its keys sorted, as clients compute it."""
    text = given if isinstance(given, str) else json.dumps(given, sort_keys=True)
    return hashlib.md5(f"{text}|{output}".encode(), usedforsecurity=False).hexdigest()


def clean(text: str) -> str:
    """Without lone surrogates, which no file can hold."""
    return _SURROGATES.sub("\ufffd", text)


def shortened(text: str, limit: int = MAX_TEXT) -> str:
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 4
    return f"{text[:head]}\n… {len(text) - head - tail:,} characters left out …\n{text[-tail:]}"


def text_at(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: expected text, not {kind_of(value)}")
    return value


def number_at(value: object, where: str, low: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(f"{where}: expected a number, not {kind_of(value)}")
    if not low <= value <= MAX_NUMBER:
        raise InvalidInput(f"{where}: {value} is not from {low} to {MAX_NUMBER:g}"[:200])
    return float(value)


def kind_of(value: object) -> str:
    names = {type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


# --- what is stored --------------------------------------------------------------------------------


def to_line(call: ToolCall) -> str:
    """One line of a `.calls.jsonl` file, without its break."""
    stored = call_document(call)
    if call.score is None:
        stored["waiting"] = call.waiting
        stored["since"] = call.since
    return json.dumps(stored, ensure_ascii=False)


def from_line(line: str) -> ToolCall | None:
    """The call of one line, or None where it holds none."""
    try:
        raw = json.loads(line)
        if not isinstance(raw, dict) or not isinstance(raw["input"], str | dict):
            return None
        score = raw.get("score")
        return ToolCall(
            create_time=str(raw["create_time"]),
            tool_name=str(raw["tool_name"]),
            input=raw["input"],
            output=str(raw["output"]),
            summary=str(raw.get("summary") or ""),
            evaluation=str(raw.get("evaluation") or ""),
            score=None if score is None else read_score(score, "score"),
            success=raw.get("success") is not False,
            time_cost=number_at(raw.get("time_cost") or 0.0, "time_cost", low=0),
            token_cost=int(number_at(raw.get("token_cost") or 0, "token_cost", low=0)),
            is_summarized=raw.get("is_summarized") is True,
            call_hash=str(raw.get("call_hash") or call_hash(raw["input"], str(raw["output"]))),
            metadata=raw["metadata"] if isinstance(raw.get("metadata"), dict) else {},
            waiting=str(raw.get("waiting") or ""),
            since=number_at(raw.get("since") or 0.0, "since", low=0),
        )
    except (ValueError, KeyError, TypeError, RecursionError, InvalidInput):
        return None


def clean_value(value: Json) -> Json:
    """A JSON value without lone surrogates, with its long texts shortened and what JSON has no number for as text."""
    if isinstance(value, str):
        return shortened(clean(value))
    if isinstance(value, list):
        return [clean_value(v) for v in value]
    if isinstance(value, dict):
        return {clean(k): clean_value(v) for k, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def marked(call: ToolCall) -> ToolCall:
    return replace(call, is_summarized=True)
