"""Tool memory over MCP: the arguments of a tool call go in, the document that the HTTP route of its name gives comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory_tools import render
from memory_tools.errors import InvalidInput
from memory_tools.http_app import TOOL_ROUTES, Tools
from memory_tools.judge_sampling import Ask, SamplingJudge
from memory_tools.nearest import nearest


@dataclass(frozen=True, slots=True)
class ToolVerb:
    """How one of the routes is shown to an agent."""

    name: str
    title: str
    description: str
    read_only: bool = False
    idempotent: bool = True

    @property
    def route(self) -> str:
        return f"/{self.name}"

    def schema(self) -> dict[str, object]:
        """The schema of the route; here nothing beside its properties is accepted."""
        return {**TOOL_ROUTES[self.route][2], "additionalProperties": False}


ANSWER = ("answer", "success", "metadata")  # what every document of these holds

TOOL_VERBS: Mapping[str, ToolVerb] = {
    verb.name: verb
    for verb in (
        ToolVerb(
            "retrieve_tool_memory",
            "What is known of tools",
            "Read what earlier calls of these tools taught: parameters that work, pitfalls, recommendations, success and cost. Ask before "
            "using a tool that has failed or is new to you.",
            read_only=True,
        ),
        ToolVerb(
            "add_tool_call_result",
            "Record tool calls",
            "Record calls that you made of your tools, with their outputs and whether they worked, so that later calls go better. Secrets "
            "are masked. The same call is stored once.",
        ),
        ToolVerb(
            "summary_tool_memory",
            "Distil tool calls into guidelines",
            "Distil the newest recorded calls of these tools into a guideline each. Skips tools without new calls.",
        ),
    )
}


def call(tools: Tools, name: str, arguments: Mapping[str, object], ask: Ask | None) -> render.Json:
    """The document of one call. `ask`: the client's model writes guidelines; None: the configured judge does. Raises MemoryToolsError."""
    verb = TOOL_VERBS[name]
    route, _, schema = TOOL_ROUTES[verb.route]
    known = schema["properties"]
    assert isinstance(known, Mapping)
    for given in arguments:
        if given not in known:
            near = nearest(given, known)
            meant = f"did you mean {near!r}? " if near else ""
            raise InvalidInput(f"unknown argument {given!r}", f"{meant}there are {', '.join(known)}")
    if name == "summary_tool_memory" and ask is not None:
        workspace_id, names = arguments.get("workspace_id"), arguments.get("tool_names")
        if isinstance(workspace_id, str | None) and isinstance(names, str | None):
            return dict(tools(workspace_id).summarize(names, SamplingJudge(ask)).document())
    document, _ = route(tools, arguments)
    return document
