"""The verbs of the workspace and its index: init, sync, rebuild, check, status. One call each, its answer comes out."""

from __future__ import annotations

import click

from memory_tools.cli_session import Session, verb


@verb()
@click.argument("folder", required=False)
@click.pass_obj
def init(session: Session, folder: str | None) -> None:
    """Make a workspace: MEMORY.md, memory/ and a .gitignore, where they are missing.

    \b
    memory-tools init ~/notes
    """
    from dataclasses import replace

    from memory_tools import workspace

    place = replace(session, workspace=folder) if folder is not None else session
    done = workspace.init(place.config().workspace)
    session.emit(done)
    session.say(f'Next: memory-tools --workspace {done.workspace} remember "what should not be forgotten"')


@verb()
@click.option("--no-vectors", is_flag=True, help="Leave the vectors for later; search by words is complete at once.")
@click.pass_obj
def sync(session: Session, no_vectors: bool) -> None:
    """Take in what changed on disk, vectors too. A search does this by itself, within limits.

    \b
    memory-tools sync
    """
    with session.memory() as memory, session.working("Reading notes") as progress:
        report = memory.sync(vectors=not no_vectors, progress=progress)
    session.emit(report)


@verb()
@click.pass_obj
def rebuild(session: Session) -> None:
    """Make the index anew from the files. Nothing of record is touched.

    \b
    memory-tools rebuild
    """
    with session.memory() as memory, session.working("Rebuilding the index") as progress:
        report = memory.rebuild(progress=progress)
    session.emit(report)


@verb()
@click.option("--fix", is_flag=True, help="Repair what is derived. Notes are never changed.")
@click.option("--strict", is_flag=True, help="Exit 1 on warnings and notes too.")
@click.pass_context
def check(ctx: click.Context, fix: bool, strict: bool) -> None:
    """Name what is wrong with the notes, the scores and the index. Exit 1 on errors.

    \b
    memory-tools check --fix
    """
    session = ctx.ensure_object(Session)
    with session.memory() as memory, session.working("Checking"):
        report = memory.check(fix=fix)
    session.emit(report)
    if not report.ok or (strict and any(not finding.fixed for finding in report.findings)):
        ctx.exit(1)


@verb()
@click.pass_obj
def status(session: Session) -> None:
    """Show what is indexed, what is pending, and what needs attention.

    \b
    memory-tools status --json
    """
    with session.memory() as memory:
        session.emit(memory.status())
