"""What every verb shares: the global options go in, a Session that opens the memory and writes one answer comes out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from memory_tools import render

if TYPE_CHECKING:
    from memory_tools.config import Config
    from memory_tools.memory import Memory

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Session:
    """One call of the command: where the memory is and how to answer."""

    workspace: str | None = None
    config_file: Path | None = None
    as_json: bool = False

    def config(self, **arguments: object) -> Config:
        """The configuration; `arguments` are given at the command line, None where not given. Raises InvalidInput."""
        from memory_tools import config

        return config.load(self.workspace, arguments, config_file=self.config_file)

    def memory(self) -> Memory:
        """The memory of the workspace; a context manager. Raises NotFound without a workspace."""
        from memory_tools.memory import Memory

        return Memory(config=self.config())

    def emit(self, record: object) -> None:
        """Write the one answer to stdout: its JSON document, its view in colour on a terminal, or its plain text."""
        if self.as_json:
            self.emit_document(render.document(record))
        else:
            render.show(record, sys.stdout, colour=on_terminal())

    def emit_document(self, document: render.Json) -> None:
        """Write a JSON document: one line for a program, indented for a person."""
        sys.stdout.write(render.dumps(document, pretty=sys.stdout.isatty()) + "\n")

    def say(self, line: str) -> None:
        """A line for people on stdout, after an answer; nothing when the answer is JSON."""
        if not self.as_json:
            sys.stdout.write(line + "\n")

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[int, int], None] | None]:
        """A (done, to do) to call while long work goes on, shown on a terminal's stderr alone: an agent's transcript stays quiet."""
        if self.as_json or not sys.stderr.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
            task = shown.add_task(what, total=None)
            yield lambda done, to_do: shown.update(task, completed=done, total=to_do)


def on_terminal() -> bool:
    return sys.stdout.isatty()


class Verb(click.Command):
    """A command with `--json` and the global options after it too: people and agents write them at the end."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.params += [
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document, also for errors."),
            click.Option(["--workspace", "own_workspace"], metavar="DIR", hidden=True),
            click.Option(["--config", "own_config"], metavar="FILE", hidden=True),
            click.Option(["--log-level", "own_log_level"], type=LOG_LEVELS, hidden=True),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as e:
            raise _nearest(e, self, ctx) from None

    def invoke(self, ctx: click.Context) -> object:
        session = ctx.ensure_object(Session)
        workspace, config = ctx.params.pop("own_workspace"), ctx.params.pop("own_config")
        set_log_level(ctx.params.pop("own_log_level"))
        ctx.obj = replace(
            session,
            workspace=workspace if workspace is not None else session.workspace,
            config_file=Path(config) if config is not None else session.config_file,
            as_json=bool(ctx.params.pop("as_json")) or session.as_json,
        )
        return super().invoke(ctx)


class VerbGroup(Verb, click.Group):
    """A verb that also has verbs below it (`scores`, `scores merge`)."""


LOG_LEVELS = click.Choice(["debug", "info", "warning", "error"])


def set_log_level(level: str | None) -> None:
    if level is not None:
        import logging

        logging.basicConfig(level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr, force=True)


def verb(name: str | None = None, **kwargs: object) -> Callable[[Callable[P, R]], Verb]:
    """`@verb()` makes a function with `@click.pass_obj` the command of its name."""
    return click.command(name, cls=Verb, **kwargs)


def _nearest(error: click.NoSuchOption, command: click.Command, ctx: click.Context) -> click.NoSuchOption:
    """The same error, naming the nearest option, or all there are where nothing is near."""
    from memory_tools.nearest import nearest

    known = [option for param in command.params if isinstance(param, click.Option) and not param.hidden for option in param.opts]
    near = nearest(error.option_name, known)
    advice = f"Did you mean {near!r}?" if near else f"There are: {', '.join(known)}"
    return click.NoSuchOption(error.option_name, f"No such option {error.option_name!r}. {advice}", ctx=ctx)
