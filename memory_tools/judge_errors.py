"""A tool's output to the kind of error that it reports, or none. Pure; the patterns are few, and prose about errors is none."""

from __future__ import annotations

import json
import re

from memory_tools.tool_files import one_line
from memory_tools.tool_records import ToolCall

_LOOKED_AT = 4_000  # characters at the beginning and at the end of an output
# Said by many tools in many words; the first that fits names the kind.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.I))
    for kind, pattern in (
        ("rate limit", r"\brate[ -]?limit|\b429\b|too many requests|quota (?:exceeded|exhausted)|throttl"),
        ("timeout", r"\btime[ds]?[ -]?out\b|timeout|deadline exceeded|took too long|\b(?:408|504)\b"),
        ("permission denied", r"permission denied|access (?:is )?denied|forbidden|\b403\b|not permitted|eacces"),
        ("authentication failed", r"unauthori[sz]ed|authentication (?:failed|required)|invalid (?:api[ _-]?key|token|credentials)|\b401\b"),
        ("connection failed", r"connection (?:refused|reset|aborted|error|failed)|econn(?:refused|reset)|could not (?:connect|resolve)"
         r"|name or service not known|network (?:is )?unreachable|getaddrinfo"),
        ("not found", r"\bnot found\b|no such (?:file|directory|table|key|host|user|column)|does not exist|\b404\b|enoent"),
        ("out of memory", r"out of memory|memoryerror|\boom\b|cannot allocate"),
        ("disk full", r"no space left|disk (?:is )?full|enospc"),
        ("too large", r"too large|payload too|exceeds? (?:the )?(?:maximum|limit|max)|\b413\b|context length"),
        ("syntax error", r"syntax ?error|parse error|unexpected token|invalid syntax|malformed"),
        ("invalid argument", r"invalid (?:argument|parameter|value|input|request|option|type|format)|bad request|\b400\b|\b422\b"
         r"|validation (?:error|failed)|unsupported|not supported|unrecognized|unknown (?:option|parameter|argument)"
         r"|missing (?:required )?(?:argument|parameter|field)|must be"),
        ("server error", r"internal server error|\b50[0235]\b|service unavailable|bad gateway"),
        ("cancelled", r"\bcancell?ed\b|\baborted\b|interrupted|killed"),
    )
)  # fmt: skip
_NAMED = re.compile(r"\b([A-Z][A-Za-z0-9]{1,60}(?:Error|Exception|Timeout|Fault|Interrupt|Exit))\b")
_START = re.compile(
    r"\A\s*(?:[\[(<*#_>`-]{0,4}\s*)?(?:(?:fatal|critical|unexpected|runtime|internal|tool|command|request|api|http|server)[ _-]?){0,2}"
    r"(?:error|exception|failed|failure|errno|panic|err!)\b(?:[\])>*_`]{0,4})\s*(?:[:\-–(\[]|\d|\Z|to\b|while\b|in\b|executing\b|occurred\b)",
    re.I,
)
_NAMED_START = re.compile(r"\A\s*(?:[\w.]{1,80}\.)?[A-Z][A-Za-z0-9]{1,60}(?:Error|Exception|Timeout)\b\s*[:(]")
_TAG = re.compile(r"\A\s*[\[(<](?:error|fatal|err|exception|fail(?:ed|ure)?)[\])>]", re.I)
_TRACE = re.compile(
    r"^Traceback \(most recent call last\):|^\s+at [\w$.<>]+\([\w.]+\.java:\d+\)|^panic: |^thread '[^']{0,80}' panicked at", re.M
)
_COMMAND = re.compile(r"\b(?:exit(?:ed)?(?: with)?(?: code| status)?|exit_code|returncode)[ :=]+([1-9]\d{0,2})\b", re.I)
_SHELL = re.compile(r"\A[^\n]{0,200}(?:command not found|: No such file or directory|: Permission denied)\s*\Z")
_HTTP = re.compile(r"\A\s*(?:HTTP(?:/\d(?:\.\d)?)?\s+)?(?:status(?: code)?[ :=]+)?([45]\d\d)\b(?:\s*[:\-(]?\s*[A-Z]|\s*\Z)")
_ERROR_KEYS = ("error", "errors", "exception", "traceback", "error_message", "errorMessage")
_BAD_STATES = ("error", "failed", "failure", "fail", "exception", "timeout", "timed_out", "aborted")


def reported_error(output: str) -> str | None:
    """The line in which an output itself says that it is an error; None for any other output, whatever words it holds."""
    text = output.strip()
    if not text:
        return None
    if text[0] in "{[":
        found = _json_error(text)
        if found is not None:
            return found or None
    head, tail = text[:_LOOKED_AT], text[-_LOOKED_AT:]
    if _TRACE.search(head) or _TRACE.search(tail):
        return _line([line for line in tail.split("\n") if line.strip()][-1])
    return _line(head) if any(p.match(head) for p in (_START, _NAMED_START, _TAG, _SHELL, _HTTP)) else None


def _json_error(text: str) -> str | None:
    """What a JSON object says of itself: the error, "" for none, None where the text is no JSON object."""
    if len(text) > 1_000_000:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return ""
    for key in _ERROR_KEYS:
        value = found.get(key)
        if value and value not in (True, "none", "None", "null", "0") and not (isinstance(value, int | float) and value == 0):
            inner = value.get("message") or value.get("type") or value if isinstance(value, dict) else value
            return _line(inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False))
    bad = any(found.get(k) is False for k in ("success", "ok")) or any(
        found.get(k) is True for k in ("isError", "is_error", "error", "failed")
    )
    state = found.get("status", found.get("state"))
    # `failed` among many fields is the state of the thing that was asked for, not of the call.
    bad = bad or (isinstance(state, str) and (state.lower() == "error" or (state.lower() in _BAD_STATES and len(found) <= 4)))
    if bad or (isinstance(state, int) and 400 <= state < 600):
        said = next((found[k] for k in ("message", "detail", "reason", "stderr") if isinstance(found.get(k), str) and found[k]), "")
        return _line(said or (f"status {state}" if state is not None else "reports no success"))
    return ""


def error_kind(call: ToolCall) -> str:
    """A short name under which like failures of a tool are counted: an exception's name, a common kind, or the line without its details."""
    said = reported_error(call.output) or call.output.strip()[:_LOOKED_AT]
    named = _NAMED.search(said)
    common = next((kind for kind, pattern in _KINDS if pattern.search(said[:1_000])), "")
    if named and named[1] not in ("Error", "Exception", "RuntimeError", "ToolException"):
        return f"{named[1]} ({common})" if common and common.replace(" ", "") not in named[1].lower() else named[1]
    if common:
        return common
    code = _COMMAND.search(said[:1_000])
    if code:
        return f"exit code {code[1]}"
    text = _line(said)
    if not text:
        return "no output"
    text = re.sub(r"(?:/[\w.@%+-]+){2,}/?|[A-Za-z]:\\\S+", "PATH", text)
    text = re.sub(r"https?://\S+", "URL", text)
    text = re.sub(r"(['\"`]).{1,80}?\1", "…", text)
    text = re.sub(r"\b(?:0x)?[0-9a-fA-F]{8,}\b|\b\d+(?:[.,:]\d+)*\b", "N", text)
    return text[:80].rstrip()


def brief(text: str, limit: int = 160) -> str:
    """The first line that says something, on one line."""
    line = _line(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _line(text: str) -> str:
    for line in text[:_LOOKED_AT].split("\n"):
        shown = one_line(line)
        if shown:
            return shown
    return ""
