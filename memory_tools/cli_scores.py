"""The verbs of memory/utility-scores.json: scores, recalculate, archive. One call of Memory each, its answer comes out."""

from __future__ import annotations

from pathlib import Path

import click

from memory_tools.cli_session import Session, Verb, VerbGroup, verb


@click.group(cls=VerbGroup, invoke_without_command=True)
@click.option("--tune", is_flag=True, help="Suggest a threshold from the outcomes so far; nothing is written.")
@click.pass_context
def scores(ctx: click.Context, tune: bool) -> None:
    """List what each memory has been worth, most useful first.

    \b
    memory-tools scores
    memory-tools scores merge BASE OURS THEIRS
    """
    if ctx.invoked_subcommand is not None:
        return
    session = ctx.ensure_object(Session)
    with session.memory() as memory:
        session.emit(memory.tune() if tune else memory.scores())


@scores.command(cls=Verb)
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("ours", type=click.Path(path_type=Path))
@click.argument("theirs", type=click.Path(path_type=Path))
@click.pass_obj
def merge(session: Session, base: Path, ours: Path, theirs: Path) -> None:
    """Merge two branches' utility-scores.json into OURS, adding what each counted since BASE. A git merge driver.

    \b
    git config merge.memory-scores.driver "memory-tools scores merge %O %A %B"
    """
    from memory_tools.scores_merge import merge_files  # git runs it anywhere: no workspace is needed

    session.emit(merge_files(base, ours, theirs))


@verb()
@click.pass_obj
def recalculate(session: Session) -> None:
    """Bring the stored utilities, addresses and traces up to date.

    \b
    memory-tools recalculate
    """
    with session.memory() as memory, session.working("Recalculating"):
        report = memory.recalculate()
    session.emit(report)


@verb()
@click.option("--yes", is_flag=True, help="Move them. Without it they are only listed.")
@click.option("--restore", metavar="ADDRESS", help="Bring one archived memory back to where it was.")
@click.pass_obj
def archive(session: Session, yes: bool, restore: str | None) -> None:
    """Move memories that no longer help to memory/archive/: long not edited, not used, of low utility.

    \b
    memory-tools archive
    memory-tools archive --yes
    memory-tools archive --restore "memory/archive/2025-11.md#old-proxy"
    """
    if yes and restore is not None:
        raise click.UsageError("--yes and --restore exclude each other.")
    with session.memory() as memory:
        session.emit(memory.archive(yes=yes) if restore is None else memory.restore(restore))
