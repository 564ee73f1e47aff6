"""A tool call as a caller sends it to a ToolCall, or to why it is refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from memory_tools.errors import InvalidInput
from memory_tools.tool_records import TIME_FORMAT, ToolCall, clean, kind_of, number_at, read_score, text_at

MAX_NAME = 2_000
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_OPTIONAL = ("create_time", "success", "time_cost", "token_cost", "summary", "evaluation", "score", "metadata")


def read_call(raw: object, where: str, now: datetime) -> ToolCall | str:
    """One call as sent, not yet masked; or the reason why it is refused. Raises InvalidInput for what is missing or of a wrong type."""
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"{where}: expected an object, not {kind_of(raw)}")
    for name in ("tool_name", "input", "output"):
        if name not in raw:
            raise InvalidInput(f"{where}.{name}: is required")
    name = clean(text_at(raw["tool_name"], f"{where}.tool_name")).strip()
    given, output = raw["input"], clean(text_at(raw["output"], f"{where}.output"))
    if not isinstance(given, Mapping | str):
        raise InvalidInput(f"{where}.input: expected an object or text, not {kind_of(given)}")
    if len(name) > MAX_NAME:
        raise InvalidInput(f"{where}.tool_name: longer than {MAX_NAME} characters")
    optional = {k: raw[k] for k in _OPTIONAL if raw.get(k) is not None}
    success = optional.get("success", True)
    if not isinstance(success, bool):
        raise InvalidInput(f"{where}.success: expected true or false, not {kind_of(success)}")
    metadata = optional.get("metadata", {})
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"{where}.metadata: expected an object, not {kind_of(metadata)}")
    summary = clean(text_at(optional.get("summary", ""), f"{where}.summary")).strip()
    evaluation = clean(text_at(optional.get("evaluation", ""), f"{where}.evaluation")).strip()
    score = read_score(optional["score"], f"{where}.score") if "score" in optional else None
    if score == 0.0 and not (summary or evaluation) and "summary" in raw and "evaluation" in raw:
        score = None  # a client that sends every field of an empty record has not judged anything
    tokens = number_at(optional.get("token_cost", -1), f"{where}.token_cost", low=-1)
    if tokens != int(tokens):
        raise InvalidInput(f"{where}.token_cost: expected a whole number, not {tokens}")
    call = ToolCall(
        create_time=read_time(text_at(optional.get("create_time", ""), f"{where}.create_time"), now),
        tool_name=name,
        input=given if isinstance(given, str) else dict(given),
        output=output,
        summary=summary,
        evaluation=evaluation,
        score=score,
        success=success,
        time_cost=number_at(optional.get("time_cost", 0.0), f"{where}.time_cost", low=0),
        token_cost=int(tokens) if tokens >= 0 else (_length(given, where) + len(output)) // 4,
        metadata=dict(metadata),
    )
    if not name:
        return "tool_name is blank"
    if "," in name:
        return "tool_name holds a comma, which separates names"
    return call


def _length(given: object, where: str) -> int:
    try:
        return len(str(given))
    except RecursionError:
        raise InvalidInput(f"{where}.input: nested too deep") from None
    except ValueError as e:  # a number of more digits than Python writes
        raise InvalidInput(f"{where}.input: {e}") from e


def read_time(text: str, now: datetime) -> str:
    """A time as stored: the local form as it is, ISO 8601 turned into it, none as now. Other text is kept: no one computes with it."""
    text = clean(text).strip()
    if not text:
        return now.strftime(TIME_FORMAT)
    if _TIME.fullmatch(text):
        return text
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return " ".join(text.split())[:64]
    return (parsed.astimezone(now.tzinfo) if parsed.tzinfo else parsed).strftime(TIME_FORMAT)
