"""What a calling agent answered (`tool summarize --apply`) to evaluations and guidelines, by the checks of every judge. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory_tools.errors import InvalidInput
from memory_tools.judge_answers import evaluation_of, guideline_of, objects
from memory_tools.judge_values import Evaluation, Failure, Guideline, checked_guideline
from memory_tools.tool_records import clean

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Answers:
    """By tool: what is said of calls that wait, and (guideline, the newest call that it covers, "" for the newest there is)."""

    evaluations: Mapping[str, Mapping[Key, Evaluation | Failure]] = field(default_factory=dict)
    guidelines: Mapping[str, tuple[Guideline, str]] = field(default_factory=dict)


def read_answers(text: str, names: Sequence[str]) -> Answers:
    """JSON of the form that `--prompt` shows; or, for one named tool, a guideline as plain Markdown. Raises InvalidInput."""
    found = next((o for o in objects(text) if o.keys() & {"evaluations", "guidelines", "guideline", "usage_guidelines"}), None)
    if found is None:
        if text.lstrip().startswith(("{", "[")):
            raise InvalidInput("the answer is not JSON of the form that --prompt shows", "evaluations and guidelines, both lists")
        if len(names) != 1:
            raise InvalidInput(
                "a guideline in plain Markdown belongs to one tool", "name that one tool, or answer in the form that --prompt shows"
            )
        return Answers(guidelines={names[0]: (Guideline(checked_guideline(clean(text))), "")})
    items = found.get("guidelines")
    if not isinstance(items, list):
        items = [found] if found.keys() & {"guideline", "guidelines", "usage_guidelines"} else []
    guidelines: dict[str, tuple[Guideline, str]] = {}
    for item in items:
        name = _name(item, names)
        guidelines[name] = (guideline_of(item), str(item.get("through") or ""))
    evaluations: dict[str, dict[Key, Evaluation | Failure]] = {}
    raw = found.get("evaluations") or []
    if not isinstance(raw, list):
        raise InvalidInput("evaluations: expected a list")
    for item in raw:
        name = _name(item, names)
        key = (str(item.get("call_hash", "")), str(item.get("create_time", "")))
        evaluations.setdefault(name, {})[key] = evaluation_of(item)
    if not guidelines and not evaluations:
        raise InvalidInput("the answer holds neither an evaluation nor a guideline")
    return Answers(evaluations, guidelines)


def _name(item: object, names: Sequence[str]) -> str:
    if not isinstance(item, dict):
        raise InvalidInput("expected an object for each evaluation and guideline")
    name = item.get("tool_name")
    if isinstance(name, str) and name.strip():
        return clean(name).strip()
    if len(names) == 1:
        return names[0]
    raise InvalidInput("tool_name: is required for each evaluation and guideline")
