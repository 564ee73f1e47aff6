"""The verbs of tool memory: record, retrieve, summarize, stats. Arguments and files go in, the same documents as over HTTP come out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_tools.cli_session import Session, Verb, VerbGroup
from memory_tools.config_keys import JUDGES
from memory_tools.errors import InvalidInput

if TYPE_CHECKING:
    from memory_tools.tool_memory import ToolMemoryStore
    from memory_tools.tool_reports import RecordReport, RetrieveReport, StatsReport, SummaryReport

_JUDGES = click.Choice(JUDGES)
_FORMS = "send a list of calls, one call, or one on each line"
_MAX_BYTES = 64 * 1024 * 1024

in_workspace = click.option("--workspace-id", metavar="ID", help="Tools of another workspace of this one: workspaces/ID.")
with_judge = click.option("--judge", type=_JUDGES, help="Who evaluates and summarises (as configured; rules).")


@click.group(cls=VerbGroup)
def tool() -> None:
    """What each tool is good for, learned from its calls.

    \b
    memory-tools tool retrieve web_search,file_reader
    """


@tool.command(cls=Verb)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@with_judge
@in_workspace
@click.pass_obj
def record(session: Session, file: Path | None, judge: str | None, workspace_id: str | None) -> None:
    """Store calls of tools, each once and evaluated.

    They come from FILE or stdin: a JSON list of calls, one call, or one on each line.

    \b
    echo '{"tool_name": "web_search", "input": {"query": "x"}, "output": "Found 3", "time_cost": 1.2}' | memory-tools tool record
    """
    _emit(session, _store(session, workspace_id).record(_calls(_read(file)), judge))


@tool.command(cls=Verb)
@click.argument("names", nargs=-1, required=True)
@in_workspace
@click.pass_obj
def retrieve(session: Session, names: Sequence[str], workspace_id: str | None) -> None:
    """Show the guidelines of tools.

    Names are exact and comma-separated; the order is kept.

    \b
    memory-tools tool retrieve web_search,file_reader
    """
    _emit(session, _store(session, workspace_id).retrieve(",".join(names)))


@tool.command(cls=Verb)
@click.argument("names", nargs=-1)
@with_judge
@click.option("--prompt", is_flag=True, help="Print what to ask, for an agent that judges and summarises itself.")
@click.option("--apply", "answer", metavar="FILE", help="Store what was answered to --prompt (- for stdin).")
@in_workspace
@click.pass_obj
def summarize(
    session: Session, names: Sequence[str], judge: str | None, prompt: bool, answer: str | None, workspace_id: str | None
) -> int | None:
    """Distil the newest calls into guidelines.

    Tools without a new call are skipped. Without NAMES: all tools.

    \b
    memory-tools tool summarize web_search
    memory-tools tool summarize web_search --prompt
    memory-tools tool summarize web_search --apply guideline.md
    """
    from memory_tools.tool_names import split_names

    if prompt and answer is not None:
        raise click.UsageError("--prompt and --apply exclude each other.")
    store = _store(session, workspace_id)
    asked = ",".join(names) if names else ",".join(store.folder.names()[0])
    if not asked and not session.as_json:
        session.say("No tool has a memory yet.")
        return None
    if prompt:
        from memory_tools import tool_agent
        from memory_tools.judge_prompts import agent_prompt

        requests, pending = tool_agent.due(store, asked)
        text = agent_prompt(requests, pending)
        if session.as_json:
            session.emit_document({"prompt": text, "guidelines": len(requests), "evaluations": len(pending)})
        else:
            session.say(text)
        return None
    if answer is not None:
        from memory_tools import tool_agent
        from memory_tools.tool_answers import read_answers

        report = tool_agent.apply(store, read_answers(_read(None if answer == "-" else Path(answer)), split_names(",".join(names))))
    else:
        with session.working("Summarising"):
            report = store.summarize(asked, judge)
    _emit(session, report)
    return 1 if report.failed and not report.success else None


@tool.command(cls=Verb)
@click.argument("names", nargs=-1)
@in_workspace
@click.pass_obj
def stats(session: Session, names: Sequence[str], workspace_id: str | None) -> None:
    """Compare tools, the best first.

    By 0.4 success + 0.4 score + 0.2 / (1 + seconds). Also trend, retrievals, and names asked for without a memory.

    \b
    memory-tools tool stats
    memory-tools tool stats web_search,doc_search
    """
    _emit(session, _store(session, workspace_id).stats(",".join(names)))


def _store(session: Session, workspace_id: str | None) -> ToolMemoryStore:
    import logging

    from memory_tools.tool_memory import open_tools

    logging.getLogger("memory_tools.tools").addHandler(logging.NullHandler())  # without --log-level the answer says it all
    return open_tools(session.config()).of_workspace(workspace_id)


def _emit(session: Session, report: RecordReport | RetrieveReport | SummaryReport | StatsReport) -> None:
    if session.as_json:
        session.emit_document(dict(report.document()))
    else:
        from memory_tools import tool_text

        session.say(tool_text.plain(report))


def _read(file: Path | None) -> str:
    """The text of a file, or of stdin. Raises InvalidInput."""
    if file is None or str(file) == "-":
        if sys.stdin.isatty():
            raise click.UsageError("FILE, or input on stdin, is needed.")
        content, place = sys.stdin.buffer.read(_MAX_BYTES + 1), "stdin"
    else:
        place = str(file)
        try:
            with file.open("rb") as stream:
                content = stream.read(_MAX_BYTES + 1)
        except OSError as e:
            raise InvalidInput(f"{place}: cannot be read ({e.strerror or e})") from e
    if len(content) > _MAX_BYTES:
        raise InvalidInput(f"{place}: larger than {_MAX_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InvalidInput(f"{place}: not UTF-8 text at byte {e.start + 1}") from None


def _calls(text: str) -> list[dict[str, object]]:
    """A list of calls, one call, a request's body, or JSON lines. Raises InvalidInput."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as e:
        lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
        if not lines:
            raise InvalidInput("there are no calls to record", _FORMS) from e
        try:
            found = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            raise InvalidInput(f"the calls are not JSON ({str(e)[:200]})", _FORMS) from e
    if isinstance(found, dict):
        found = found.get("tool_call_results", [found])
    if not isinstance(found, list):
        raise InvalidInput("the calls are not a JSON list", _FORMS)
    return found
