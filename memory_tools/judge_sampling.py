"""Tool calls in, guidelines out, by the model of whoever is connected: `ask` takes an instruction and a question and gives its answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from memory_tools.errors import InvalidInput
from memory_tools.judge import AgentJudge
from memory_tools.judge_answers import read_guideline
from memory_tools.judge_prompts import SYSTEM, summary_prompt
from memory_tools.judge_values import Evaluation, Failure, Guideline, SummaryRequest
from memory_tools.tool_records import ToolCall

log = logging.getLogger("memory_tools.judge")

Ask = Callable[[str, str], str]  # (instruction, question) -> answer; may raise anything that the connection raises


class SamplingJudge:
    """Asked once for each tool, one after the other: the model behind it is the user's own. Single calls wait for the agent."""

    name = "client"
    instant = False

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def evaluate(self, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> list[Evaluation | Failure]:
        return AgentJudge().evaluate(calls, earlier)

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[Guideline | Failure]:
        return [self._one(request) for request in requests]

    def _one(self, request: SummaryRequest) -> Guideline | Failure:
        try:
            return read_guideline(self._ask(SYSTEM, summary_prompt(request)))
        except InvalidInput as e:
            return Failure(f"the client's model: {e.message}")
        except Exception as e:  # refused by the user, no way back to the client, or not an answer: the guideline stays as it is
            log.warning("the client's model was not asked: %s", e)
            return Failure(f"the client's model was not asked: {e}")
