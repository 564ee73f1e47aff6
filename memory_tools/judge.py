"""Tool calls in, their evaluation or a guideline out: the interface that all judges share, and the choice of one by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memory_tools.errors import InvalidInput, Unavailable
from memory_tools.tool_records import Advice, Statistics, ToolCall, ToolSettings

NAMES = ("rules", "openai", "agent")
MAX_GUIDELINE = 20_000  # characters; what an agent reads at one go
MIN_GUIDELINE = 20


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Of one call. `score` is 0.0 or 1.0."""

    summary: str
    evaluation: str
    score: float


@dataclass(frozen=True, slots=True)
class Guideline:
    """Markdown for one tool, and what of it a program can use."""

    text: str
    parameters: Mapping[str, Advice] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a judge has no answer. Nothing is lost by it: the call waits, the guideline stays."""

    reason: str


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a guideline is distilled from. `calls`: the newest ones, oldest first; `statistics` are theirs."""

    tool_name: str
    calls: tuple[ToolCall, ...]
    statistics: Statistics
    previous: str = ""


class Judge(Protocol):
    """`instant`: answers at once and without a network, so it may be asked while files are locked. `name` becomes the author."""

    @property
    def name(self) -> str: ...

    @property
    def instant(self) -> bool: ...

    def evaluate(self, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> list[Evaluation | Failure]:
        """One answer for each call. `earlier`: calls of the same tools that are known already. Does not raise."""
        ...

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[Guideline | Failure]:
        """One answer for each tool. Does not raise."""
        ...


class AgentJudge:
    """The calling agent is the judge: it hands in what it thinks, and until then calls wait."""

    name = "agent"
    instant = True

    def evaluate(self, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> list[Evaluation | Failure]:
        return [Failure("waits for the calling agent's summary, evaluation and score") for _ in calls]

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[Guideline | Failure]:
        return [Failure("the calling agent writes it: `tool summarize --prompt` says what to ask, `--apply` stores it") for _ in requests]


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


def checked_guideline(text: str) -> str:
    """A guideline as it may be stored. Raises InvalidInput for an empty or overlong one."""
    text = text.strip()
    if len(text) < MIN_GUIDELINE:
        raise InvalidInput(f"the guideline is empty or shorter than {MIN_GUIDELINE} characters")
    if len(text) > MAX_GUIDELINE:
        raise InvalidInput(f"the guideline has {len(text):,} characters, at most {MAX_GUIDELINE:,}")
    return text
