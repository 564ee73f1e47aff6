"""Records to what a face shows: a record goes in, its one JSON document or its text comes out, the same through every face."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import IO

from memory_tools.errors import Busy, Forbidden, InvalidInput, MemoryToolsError, NotFound
from memory_tools.records import Report, Result
from memory_tools.reports import CheckReport, Excerpt, FeedbackReport, Recorded, Remembered, SyncReport

Json = dict[str, object]

# Valid inside JSON and yet read as a line break, a terminal command or a change of reading direction by what shows it; \u keeps the value.
_UNSHOWN = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]")


def document(record: object) -> Json:
    """The JSON document of a record: camelCase keys, times in UTC. Equal for every face."""
    special = _DOCUMENTS.get(type(record))
    if special is not None:
        return special(record)
    own = getattr(record, "document", None)
    if callable(own):  # bodies whose names other programs gave (tool memory)
        made = own()
        assert isinstance(made, dict)
        return made
    if not is_dataclass(record) or isinstance(record, type):
        raise TypeError(f"{type(record).__name__} is not a record")
    return {_camel(f.name): _value(getattr(record, f.name)) for f in fields(record)}


def failure(error: BaseException) -> MemoryToolsError:
    """Any exception as the error that a face shows: ours as it is, the system's by its true cause, the rest as an internal one."""
    if isinstance(error, MemoryToolsError):
        return error
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput("half a surrogate pair is no character", "send text as UTF-8")
    if isinstance(error, OSError):
        kind = Forbidden if isinstance(error, PermissionError) else NotFound if isinstance(error, FileNotFoundError) else Busy
        place = f"{error.filename}: " if error.filename else ""
        return kind(f"{place}{error.strerror or error}")
    return MemoryToolsError(f"{type(error).__name__}: {error}", "a fault in memory-tools; --log-level debug shows where")


def error_document(error: MemoryToolsError) -> Json:
    """The one error document. `hint` is "" where there is nothing to suggest."""
    return {"error": {"type": error.kind, "message": error.message, "hint": error.hint}}


def dumps(json_document: Json, *, pretty: bool = False) -> str:
    """JSON text on one line (or indented for people), every script as itself, nothing that a terminal would act on."""
    text = json.dumps(json_document, ensure_ascii=False, allow_nan=False, indent=2 if pretty else None)
    return _UNSHOWN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = match.group().encode("utf-16-be", "surrogatepass")  # JSON writes what is beyond 16 bits as a pair
    return "".join(f"\\u{code[at : at + 2].hex()}" for at in range(0, len(code), 2))


def text(record: object) -> str:
    """The plain text of a record: what an agent or a pipe reads. Ends without a line break."""
    from memory_tools import render_text

    lines = render_text.plain(record)
    if lines is None:
        from memory_tools import render_upkeep

        lines = render_upkeep.plain(record)
    return "\n".join(render_text.fields_of(record) if lines is None else lines)


def show(record: object, stream: IO[str], *, colour: bool) -> None:
    """Write a record for people; `colour` only where the stream is a terminal."""
    if colour:
        from memory_tools import render_terminal

        render_terminal.show(record, stream, text)
    else:
        stream.write(text(record) + "\n")


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _value(value: object) -> object:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # Float noise (0.30000000000000004) costs an agent tokens; 7 places keep the utility equal to the formula of the numbers shown.
        return round(value, 7) if math.isfinite(value) else None
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_value(item) for item in value]
    if is_dataclass(value):
        return document(value)
    return str(value)


def _time(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _count(value: float) -> object:
    """Counts are whole unless a weight made them fractional: 5, not 5.0."""
    return int(value) if float(value).is_integer() else _value(float(value))


def _result(record: Result) -> Json:
    out: Json = {
        "address": record.address,
        "path": record.path,
        "startLine": record.start_line,
        "endLine": record.end_line,
        "score": _value(record.score),
        "snippet": record.snippet,
        "source": record.source,
        "citation": record.citation,
        "headings": list(record.headings),
        "relevance": _value(record.relevance),
        "recency": _value(record.recency),
        "successRate": _value(record.success_rate),
        "useCount": _count(record.use_count),
        "lastUsed": _value(record.last_used),
        "utility": _value(record.utility),
        "why": record.why,
    }
    if record.similar:
        out["similar"] = record.similar
    if record.differs:
        out["differs"] = list(record.differs)
    if record.explain is not None:
        out["explain"] = _value(record.explain)
    return out


def _report(record: Report) -> Json:
    out: Json = {
        "results": [_result(result) for result in record.results],
        "query": record.query,
        "policy": record.policy,
        "recall": record.recall,
        "broadened": record.broadened,
        "warnings": list(record.warnings),
        "degraded": list(record.degraded),
    }
    if record.dropped:
        out["dropped"] = _value(record.dropped)
    return out


def _excerpt(record: Excerpt) -> Json:
    out: Json = {
        "path": record.path,
        "text": record.text,
        "startLine": record.start_line,
        "endLine": record.end_line,
        "totalLines": record.total_lines,
        "next": record.next,
    }
    if record.notes:
        out["notes"] = list(record.notes)
    return out


def _feedback(record: FeedbackReport) -> Json:
    return {
        "recorded": [_recorded(one) for one in record.recorded],
        "recall": record.recall,
        "warnings": list(record.warnings),
    }


def _recorded(record: Recorded) -> Json:
    return {
        "address": record.address,
        "outcome": record.outcome,
        "useCount": _count(record.use_count),
        "successCount": _count(record.success_count),
        "failCount": _count(record.fail_count),
        "utility": _value(record.utility),
        "counted": record.counted,
    }


def _remembered(record: Remembered) -> Json:
    return {
        "path": record.path,
        "address": record.address,
        "startLine": record.start_line,
        "endLine": record.end_line,
        "citation": record.citation,
        "stored": record.stored,
    }


def _sync(record: SyncReport) -> Json:
    return {
        "files": record.files,
        "sections": record.sections,
        "blocks": record.blocks,
        "changed": list(record.changed),
        "removed": list(record.removed),
        "vectors": {"ready": record.vectors_ready, "pending": record.vectors_pending},
        "skipped": [{"path": skipped.path, "reason": skipped.reason} for skipped in record.skipped],
        "warnings": list(record.warnings),
        "degraded": list(record.degraded),
    }


def _check(record: CheckReport) -> Json:
    return {"ok": record.ok, "findings": _value(record.findings)}


_DOCUMENTS: dict[type, Callable[..., Json]] = {
    Report: _report,
    Result: _result,
    Excerpt: _excerpt,
    FeedbackReport: _feedback,
    Recorded: _recorded,
    Remembered: _remembered,
    SyncReport: _sync,
    CheckReport: _check,
}
