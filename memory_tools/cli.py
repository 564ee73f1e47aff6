"""The command `memory-tools`: arguments go in, one answer goes to stdout and an exit code comes out (0, ours 1, usage 2, Ctrl-C 130).

Verbs are imported when they are called: `--help` and `status` must load neither numpy nor an encoder nor a Markdown parser.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from memory_tools import render
from memory_tools.cli_session import LOG_LEVELS, Session, set_log_level
from memory_tools.errors import InvalidInput, MemoryToolsError

# verb -> module, in the order in which `--help` lists them
VERBS = {
    "init": "cli_index",
    "search": "cli_recall",
    "get": "cli_recall",
    "feedback": "cli_recall",
    "remember": "cli_recall",
    "sync": "cli_index",
    "rebuild": "cli_index",
    "check": "cli_index",
    "status": "cli_index",
    "watch": "cli_serve",
    "scores": "cli_scores",
    "recalculate": "cli_scores",
    "archive": "cli_scores",
    "tool": "cli_tool",
    "serve": "cli_serve",
    "mcp": "cli_serve",
    "skill": "cli_serve",
    "bench": "cli_serve",
}
BROKEN_PIPE = 141  # as a program that SIGPIPE ended


class LazyGroup(click.Group):
    """The verbs of VERBS, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = getattr(importlib.import_module(f"memory_tools.{VERBS[cmd_name]}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise click.NoSuchCommand(args[0], possibilities=VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"memory-tools {version('markdown-memory-tools')}")
        except PackageNotFoundError:
            click.echo("memory-tools (not installed)")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--workspace", metavar="DIR", help="Folder with MEMORY.md and memory/. Default: MEMORY_TOOLS_WORKSPACE, else OpenClaw's.")
@click.option("--config", metavar="FILE", help="Configuration file. Default: ~/.config/memory-tools/config.yaml.")
@click.option("--log-level", type=LOG_LEVELS, help="Log to stderr from this level on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, also for errors.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.pass_context
def cli(ctx: click.Context, workspace: str | None, config: str | None, log_level: str | None, as_json: bool) -> None:
    """Recall over plain Markdown memory that learns which memories help.

    \b
    memory-tools search "how do we deal with API timeouts"
    memory-tools feedback last 1 --outcome success
    """
    set_log_level(log_level)
    ctx.obj = Session(workspace, Path(config) if config is not None else None, as_json)


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point of the command: runs and ends the process."""
    _prefer_utf8()
    # Before numpy loads: starting a thread pool costs more than one query's arithmetic.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    # Imports make many objects and hardly any garbage: fewer looks for it save a twentieth of a short search.
    gc.set_threshold(50_000, 20, 100)
    code = run(sys.argv[1:] if argv is None else argv)
    sys.stderr.flush()
    # Everything is closed and written by now; taking numpy and the rest apart would cost a tenth of a short search.
    os._exit(code)


def run(argv: Sequence[str]) -> int:
    """Run one command line; the exit code. Never raises but for SystemExit from the interpreter's own end."""
    arguments = list(argv)
    as_json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    stdout = sys.stdout
    try:
        code = cli.main(arguments, prog_name="memory-tools", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.UsageError as e:
        if as_json and not isinstance(e, click.exceptions.NoArgsIsHelpError):
            hint = f"{e.ctx.command_path} --help" if e.ctx is not None else ""
            return _fail(InvalidInput(e.format_message(), hint), as_json, e.exit_code)
        e.show()
        return e.exit_code
    except BrokenPipeError:
        return _reader_gone(stdout)
    except SystemExit as e:
        if sys.stdout is not stdout:  # click's way to end when it meets a broken pipe first
            return _reader_gone(stdout)
        return e.code if isinstance(e.code, int) else 1
    except (KeyboardInterrupt, click.Abort):
        return 130
    except Exception as e:  # the one place where every failure becomes the error document
        if not isinstance(e, MemoryToolsError):
            _log_debug(e)
        return _fail(render.failure(e), as_json, 1)


def _fail(error: MemoryToolsError, as_json: bool, code: int) -> int:
    try:
        if as_json:
            sys.stdout.write(render.dumps(render.error_document(error)) + "\n")
            sys.stdout.flush()
        else:
            from memory_tools import render_text

            sys.stderr.write(render_text.error(error) + "\n")
    except BrokenPipeError:
        return _reader_gone(sys.stdout)
    except OSError as e:  # the answer's own disk is full: the document cannot be written there either
        with suppress(OSError):
            sys.stderr.write(f"error: the answer cannot be written ({e.strerror or e})\n")
        return 1
    return code


def _reader_gone(stdout: TextIO) -> int:
    """What is still buffered must not raise again when the interpreter ends."""
    sys.stdout = stdout
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
    return BROKEN_PIPE


def _log_debug(error: Exception) -> None:
    if "logging" in sys.modules:
        import logging

        logging.getLogger("memory_tools").debug("failed", exc_info=error)


def _prefer_utf8() -> None:
    """Streams in UTF-8 whatever the console says, and file names and arguments too: notes are written in every script."""
    utf8 = sys.getfilesystemencoding().lower().replace("-", "") == "utf8"
    if not utf8 and os.name == "posix" and os.environ.get("PYTHONUTF8") != "1":
        # Under a Latin-1 locale a Chinese file name decodes to something else. Only a new interpreter can change that. With -P it
        # imports nothing from the folder it is called in, which may be a stranger's.
        package = str(Path(__file__).resolve().parent.parent)
        environ = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
        os.execve(sys.executable, [sys.executable, "-P", "-m", "memory_tools", *sys.argv[1:]], environ)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    main()
