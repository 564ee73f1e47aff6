"""The code's own tables and help texts go in; the generated parts of README.md and docs/ come out, in place.

    python scripts/generate_docs.py            write them
    python scripts/generate_docs.py --check    say which are out of date; exit 1 if any

A generated part stands between `<!-- generated: NAME -->` and `<!-- /generated -->`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from memory_tools.cli import cli
from memory_tools.config_keys import ALIASES, KEYS

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/configuration.md", "docs/commands.md")
WIDTH = 100


def shown(value: object) -> str:
    """A default as a person would write it in YAML."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return "`{" + ", ".join(f"{key}: {entry}" for key, entry in value.items()) + "}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(map(str, value)) + "]`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def configuration() -> str:
    rows = [
        f"| `{name}`{' *w*' if key['workspace'] else ''} | {shown(key['default'])} | {key['doc']} |".replace("|  |", "| |")
        for name, key in KEYS.items()
    ]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows])


def aliases() -> str:
    return "\n".join(["| there | here |", "|---|---|", *(f"| `{old}` | `{new}` |" for old, new in ALIASES.items())])


def commands() -> str:
    """The help text of the command and of every verb, as the terminal shows it."""
    return "\n\n".join(f"## {path}\n\n```text\n{text}\n```" for path, text in help_texts("memory-tools", cli, None))


def help_texts(path: str, command: click.Command, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    with click.Context(command, info_name=path.split(" ")[-1], parent=parent, terminal_width=WIDTH, max_content_width=WIDTH) as context:
        yield path, command.get_help(context).rstrip()
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                assert child is not None
                yield from help_texts(f"{path} {name}", child, context)


PARTS: dict[str, Callable[[], str]] = {"configuration": configuration, "aliases": aliases, "commands": commands}


def generated(page: str) -> str:
    """The page's text with its generated parts made anew."""

    def part(found: re.Match[str]) -> str:
        return f"<!-- generated: {found[1]} -->\n{PARTS[found[1]]()}\n<!-- /generated -->"

    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"<!-- generated: (\w+) -->\n.*?<!-- /generated -->", part, text, flags=re.S)


def main() -> int:
    stale = [page for page in PAGES if generated(page) != (ROOT / page).read_text(encoding="utf-8")]
    if "--check" in sys.argv[1:]:
        for page in stale:
            sys.stdout.write(f"{page} is out of date: run python scripts/generate_docs.py\n")
        return 1 if stale else 0
    for page in stale:
        (ROOT / page).write_text(generated(page), encoding="utf-8")
        sys.stdout.write(f"{page} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
