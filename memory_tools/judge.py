"""A judge's name and the settings in, the judge out; and the judge that is the calling agent itself."""

from __future__ import annotations

from collections.abc import Sequence

from memory_tools.errors import InvalidInput, Unavailable
from memory_tools.judge_values import Evaluation, Failure, Guideline, Judge, SummaryRequest, checked_guideline
from memory_tools.tool_records import ToolCall
from memory_tools.tool_settings import ToolSettings

__all__ = ["AbsentJudge", "AgentJudge", "Evaluation", "Failure", "Guideline", "Judge", "SummaryRequest", "checked_guideline", "open_judge"]

NAMES = ("rules", "openai", "agent")


class AgentJudge:
    """The calling agent is the judge: it hands in what it thinks, and until then calls wait."""

    name = "agent"
    instant = True

    def evaluate(self, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> list[Evaluation | Failure]:
        return [Failure("waits for the calling agent's summary, evaluation and score") for _ in calls]

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[Guideline | Failure]:
        return [Failure("the calling agent writes it: `tool summarize --prompt` says what to ask, `--apply` stores it") for _ in requests]


class AbsentJudge:
    """Stands in for one that cannot be used (no client, no model, no key): nothing is lost, and the reason is told with each call."""

    instant = True

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self._failure = Failure(reason)

    def evaluate(self, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> list[Evaluation | Failure]:
        return [self._failure for _ in calls]

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[Guideline | Failure]:
        return [self._failure for _ in requests]


def open_judge(judge: str | Judge | None, settings: ToolSettings) -> Judge:
    """The judge of that name, None: the configured one; a judge as it is. Raises InvalidInput or Unavailable."""
    if judge is not None and not isinstance(judge, str):
        return judge
    name = judge or settings.judge
    if name == "rules":
        from memory_tools.judge_rules import RulesJudge

        return RulesJudge()
    if name == "agent":
        return AgentJudge()
    if name == "openai":
        if not settings.llm_model:
            raise Unavailable(
                "judge openai: no model is configured", "set MEMORY_TOOLS_LLM_MODEL, and MEMORY_TOOLS_LLM_BASE_URL for a local one"
            )
        from memory_tools.judge_openai import OpenAIJudge

        return OpenAIJudge(settings)
    raise InvalidInput(f"no judge {name!r}", f"one of {', '.join(NAMES)}")
