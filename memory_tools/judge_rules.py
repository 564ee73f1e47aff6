"""Tool calls to evaluations and guidelines by fixed rules: no network, no model, the same answer for the same calls."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from memory_tools.judge_errors import brief, error_kind, reported_error
from memory_tools.judge_values import Evaluation, Failure, Guideline, SummaryRequest
from memory_tools.tool_records import ToolCall

_SHORT = 0.1  # of the tool's own median length
_ENOUGH = 5  # earlier outputs before their median means anything


class RulesJudge:
    name = "rules"
    instant = True

    def evaluate(self, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> list[Evaluation | Failure]:
        lengths: dict[str, list[int]] = {}
        for call in (*earlier, *calls):
            if call.success:
                lengths.setdefault(call.tool_name, []).append(len(call.output))
        return [evaluate(call, lengths.get(call.tool_name, [])) for call in calls]

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[Guideline | Failure]:
        from memory_tools.judge_guideline import guideline

        return [guideline(r) for r in requests]


def evaluate(call: ToolCall, lengths: Sequence[int]) -> Evaluation:
    """One call. `lengths`: of the tool's successful outputs."""
    said = reported_error(call.output)
    cost = f" after {call.time_cost:g} s" if call.time_cost else ""
    if not call.success:
        told = f": {brief(said or call.output)}" if call.output.strip() else " without output"
        return Evaluation(f"Failed{told}", f"The call failed{cost} ({error_kind(call)}).", 0.0)
    if said:
        return Evaluation(
            f"Reported success, but the output is an error: {brief(said)}",
            f"The success flag is set, yet the output reports an error{cost} ({error_kind(call)}).",
            0.0,
        )
    summary = brief(call.output) or "No output"
    evaluation = f"Succeeded{cost}."
    if len(lengths) >= _ENOUGH:
        median = statistics.median(lengths)
        if len(call.output) < _SHORT * median:
            # A remark and no more: a short answer may be the right one.
            evaluation += f" The output is short for this tool ({len(call.output)} characters, median {median:.0f})."
    return Evaluation(summary, evaluation, 1.0)


def completed(call: ToolCall, found: Evaluation) -> Evaluation:
    """The caller's own words where it sent any, the judge's for the rest."""
    score = found.score if call.score is None else call.score
    return Evaluation(call.summary or found.summary, call.evaluation or found.evaluation, score)
