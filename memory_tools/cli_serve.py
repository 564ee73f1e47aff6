"""The verbs that run on or install something: watch, serve, mcp, skill, bench. Options go in, the long-running face is started."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import click

from memory_tools import render, render_text
from memory_tools.cli_session import Session, Verb, verb
from memory_tools.errors import MemoryToolsError, NotFound, Unavailable


@verb()
@click.pass_obj
def watch(session: Session) -> None:
    """Keep the index fresh while notes change. One line a change on a terminal; stops with Ctrl-C.

    \b
    memory-tools watch
    """
    from memory_tools.resident import Resident
    from memory_tools.watch import Change

    def tell(change: Change) -> None:
        if session.as_json:
            session.emit_document(render.document(change.report))
        else:
            session.say(f"{change.time.astimezone():%H:%M:%S}  {render_text.one_line(change.line)}")
        sys.stdout.flush()

    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with Resident(session.config(), tell) as resident:
        if sys.stderr.isatty():
            sys.stderr.write(f"watching {resident.config.workspace}, Ctrl-C ends it\n")
        try:
            resident.memory()
        except NotFound as e:
            session.say(f"{render_text.one_line(e.message)}; waiting for it")
        while not stopped.wait(0.5):
            if resident.watcher is not None and resident.watcher.died:
                raise MemoryToolsError(resident.watcher.problem)


@verb()
@click.option("--host", metavar="ADDRESS", help="Address to listen on (127.0.0.1). Any other than loopback needs a token.")
@click.option("--port", type=int, metavar="N", help="Port (8002).")
@click.pass_obj
def serve(session: Session, host: str | None, port: int | None) -> None:
    """Answer over HTTP, and keep the index fresh.

    \b
    memory-tools serve --port 8002
    """
    from memory_tools.http_app import serve

    _end_in_order()
    serve(session.config(host=host, port=port))


def _end_in_order() -> None:
    """SIGTERM, as of a service that is stopped, ends like Ctrl-C, through every `with`: a watcher that is cut off is told as dead."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)


@verb()
@click.option("--http", "as_http", is_flag=True, help="Streamable HTTP at /mcp instead of stdin and stdout.")
@click.option("--host", metavar="ADDRESS", help="With --http: address to listen on (127.0.0.1).")
@click.option("--port", type=int, metavar="N", help="With --http: port (8002).")
@click.pass_obj
def mcp(session: Session, as_http: bool, host: str | None, port: int | None) -> None:
    """Answer as an MCP server on stdin and stdout, and keep the index fresh.

    \b
    claude mcp add memory -- memory-tools --workspace ~/notes mcp
    """
    if not as_http and (host is not None or port is not None):
        raise click.UsageError("--host and --port go with --http.")
    config = session.config(host=host, port=port)
    try:
        from memory_tools import mcp_server
    except ModuleNotFoundError as e:
        if (e.name or "").startswith("memory_tools"):
            raise
        raise Unavailable(f"the MCP server needs the mcp SDK ({e})", "pip install 'markdown-memory-tools[mcp]'") from e
    if as_http:
        _end_in_order()
        mcp_server.serve_http(config)
    else:
        mcp_server.serve_stdio(config)


@click.group()
def skill() -> None:
    """The skill that teaches an agent to use this memory.

    \b
    memory-tools skill install
    """


@skill.command(cls=Verb)
@click.option("--target", metavar="DIR", type=click.Path(path_type=Path), help="Folder that holds skills (the workspace's skills/).")
@click.pass_obj
def install(session: Session, target: Path | None) -> None:
    """Write or upgrade the skill memory-retrieval; pages edited by hand stay.

    \b
    memory-tools skill install --target ~/.claude/skills
    """
    from memory_tools import plain_files
    from memory_tools import skill as pages

    if target is None:  # a target that is named may lie anywhere
        workspace = session.config().workspace
        if not workspace.is_dir():  # a name with a typing error must not become a workspace
            hint = f"make one: memory-tools --workspace {workspace} init, or name the folder that holds skills with --target"
            raise NotFound(f"{workspace}: no such workspace folder", hint)
        target = workspace / "skills"
        plain_files.check_inside(workspace, target / pages.NAME / "skill")
    session.emit(pages.install(target))


@verb()
@click.option("--copies", type=int, default=1, show_default=True, metavar="N", help="Measure on N copies of the workspace's notes.")
@click.pass_obj
def bench(session: Session, copies: int) -> None:
    """Measure on a copy of the workspace: size, index, warm query, cold command, one changed file; and does each section find itself.

    \b
    memory-tools bench --copies 10 --json
    """
    from memory_tools import bench as figures

    with session.working("Measuring") as progress:
        report = figures.run(session.config(), copies, progress)
    session.emit(report)
