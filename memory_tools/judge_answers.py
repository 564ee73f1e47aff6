"""A model's or an agent's answer in, its evaluation or guideline out; what is not one of these is refused. Pure.

JSON may be bare, fenced or amid prose, and is repaired where the slip is usual (trailing commas, Python's words, single quotes,
comments, raw line breaks). An answer that was cut off is never completed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from memory_tools.errors import InvalidInput
from memory_tools.judge_values import Evaluation, Guideline, checked_guideline
from memory_tools.tool_records import Advice, Json, clean, clean_value, read_score

MAX_ANSWER = 400_000  # characters
_MAX_STARTS = 20  # braces in prose that are tried as the object's beginning
_THOUGHT = re.compile(r"</think(?:ing)?>", re.I)
_FENCE = re.compile(r"```[ \t]*(?:json5?|jsonc)?[ \t]*\r?\n(.*?)(?:\r?\n)?[ \t]*```", re.S | re.I)
_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<single>\'(?:[^\'\\]|\\.)*\')|(?P<comment>//[^\n]*|/\*.{0,2000}?\*/|#[^\n]*)'
    r"|(?P<trailing>,(?=\s{0,200}[}\]]))|(?P<word>\b(?:True|False|None|NaN)\b)|.",
    re.S,
)
_WORDS = {"True": "true", "False": "false", "None": "null", "NaN": "null"}
_GUIDELINE_KEYS = ("guideline", "guidelines", "usage_guidelines", "content")


def read_evaluation(answer: str) -> Evaluation:
    """Raises InvalidInput where summary, evaluation or a score of 0.0 or 1.0 is missing."""
    for found in objects(answer):
        if "score" in found:
            return evaluation_of(found)
    raise InvalidInput(f"no JSON object with a score in the answer: {_shown(answer)}")


def evaluation_of(found: Mapping[str, object]) -> Evaluation:
    texts = [found.get(k) for k in ("summary", "evaluation")]
    summary, evaluation = (clean(t).strip() if isinstance(t, str) else "" for t in texts)
    if not summary or not evaluation:
        raise InvalidInput("the answer has no summary or no evaluation")
    score = found.get("score")
    if isinstance(score, str):  # a number in quotes
        try:
            score = float(score)
        except ValueError:
            raise InvalidInput(f"score: expected 0.0 or 1.0, not {_shown(str(score))}") from None
    return Evaluation(summary[:2_000], evaluation[:4_000], read_score(score, "score"))


def read_guideline(answer: str) -> Guideline:
    """Raises InvalidInput where there is no guideline, or an empty one."""
    for found in objects(answer):
        if any(k in found for k in _GUIDELINE_KEYS):
            return guideline_of(found)
    raise InvalidInput(f"no JSON object with a guideline in the answer: {_shown(answer)}")


def guideline_of(found: Mapping[str, object]) -> Guideline:
    text = next((found[k] for k in _GUIDELINE_KEYS if k in found), "")
    if not isinstance(text, str):
        raise InvalidInput("guideline: expected Markdown text")
    return Guideline(checked_guideline(clean(text)), advice_of(found.get("parameters")))


def advice_of(raw: object) -> dict[str, Advice]:
    """`{name: {recommended, avoid}}` of an answer; what is of another form is left out: it only repeats the prose."""
    out: dict[str, Advice] = {}
    for name, value in raw.items() if isinstance(raw, Mapping) else ():
        if isinstance(value, Mapping) and (value.get("recommended") is not None or value.get("avoid") is not None):
            out[clean(str(name))[:200]] = Advice(clean_value(_json(value.get("recommended"))), clean_value(_json(value.get("avoid"))))
    return dict(list(out.items())[:100])


def _json(value: object) -> Json:
    """A parsed value as it is; the parser makes nothing else."""
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def objects(answer: str) -> Iterator[dict[str, object]]:
    """The JSON objects of an answer: its fences first, then whatever begins with a brace."""
    if len(answer) > MAX_ANSWER:
        raise InvalidInput(f"the answer has {len(answer):,} characters, at most {MAX_ANSWER:,}")
    text = _THOUGHT.split(answer)[-1]
    for block in [m[1] for m in _FENCE.finditer(text)][:_MAX_STARTS]:
        found = parse(block)
        if isinstance(found, dict):
            yield found
    at = text.find("{")
    for _ in range(_MAX_STARTS):
        if at < 0:
            return
        end = _object_end(text, at)
        if end is None:
            return  # cut off
        found = parse(text[at:end])
        if isinstance(found, dict):
            yield found
        at = text.find("{", end if isinstance(found, dict) else at + 1)


def parse(text: str) -> object:
    """The JSON value of a text, repaired where needed; None where there is none."""
    for _ in range(3):  # twice repaired: a comma before a comment shows itself when that is gone
        try:
            return json.loads(text, strict=False)  # raw line breaks in strings are a usual slip
        except (ValueError, RecursionError):
            text = _repaired(text)
    return None


def _repaired(text: str) -> str:
    out: list[str] = []
    for m in _TOKEN.finditer(text.replace("\u201c", '"').replace("\u201d", '"')):
        kind, token = m.lastgroup, m[0]
        if kind == "single":
            out.append('"' + token[1:-1].replace("\\'", "'").replace('"', '\\"') + '"')
        elif kind == "word":
            out.append(_WORDS[token])
        elif kind not in ("comment", "trailing"):
            out.append(token)
    return "".join(out)


def _object_end(text: str, start: int) -> int | None:
    """Behind the brace that closes the one at `start`, None where it is never closed."""
    depth, quote, n = 0, "", start
    while n < len(text):
        c = text[n]
        if quote:
            if c == "\\":
                n += 1
            elif c == quote:
                quote = ""
        elif c == '"':
            quote = c
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if depth == 0:
                return n + 1
        n += 1
    return None


def _shown(answer: str) -> str:
    text = " ".join(answer.split())
    return repr(text[:120] + ("…" if len(text) > 120 else "")) if text else "it is empty"
