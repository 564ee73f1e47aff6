"""README.md and the pages in docs/ go in; their code is run, output compared, links followed, generated parts made again."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([ROOT / "README.md", ROOT / "SKILL.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "skill").glob("*.md")])


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A copy of the example workspace, so that feedback does not change the checkout."""
    copy = tmp_path / "examples" / "workspace"
    shutil.copytree(ROOT / "examples" / "workspace", copy, ignore=shutil.ignore_patterns(".memory-tools"))
    return copy


@pytest.fixture
def environment(tmp_path: Path, workspace: Path) -> dict[str, str]:
    """What a stranger's shell has: the command on the PATH, no configuration of ours."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_TOOLS_", "OPENCLAW_"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), plain["PATH"]])
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "none")}
    return {**plain, **home, "PATH": path, "MEMORY_TOOLS_WORKSPACE": str(workspace)}


def test_the_readme_sets_up_with_two_commands_that_need_python_alone() -> None:
    run, test = blocks("bash")
    for command in (run, test):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert command.count("\n") == 1
    assert "examples/workspace" in run
    assert "memory-tools search" in run
    assert ".venv/bin/pytest" in test


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    assert blocks("bash")[1].strip() in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def masked(text: str) -> str:
    """Output without what the day of the run decides: utilities, recencies, ids."""
    text = re.sub(r"recall r[0-9a-z]+", "recall ID", text)
    return re.sub(r"(?<![\w.-])[01]\.\d+", "X", text).rstrip()


def test_the_readmes_output_is_what_the_commands_print(environment: dict[str, str]) -> None:
    subprocess.run(["memory-tools", "sync"], check=True, capture_output=True, env=environment)
    for block in blocks("console"):
        for shown in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = shown.partition("\n")
            done = subprocess.run(shlex.split(command), capture_output=True, text=True, env=environment, encoding="utf-8")
            assert done.returncode == 0, done.stderr
            assert masked(done.stdout) == masked(output), command


def test_the_readmes_python_runs(environment: dict[str, str], workspace: Path) -> None:
    for block in blocks("python"):
        where = workspace.parent.parent
        command = [sys.executable, "-c", block]
        done = subprocess.run(command, capture_output=True, text=True, cwd=where, env=environment, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        assert "MEMORY.md#people" in done.stdout


def test_the_example_of_a_scores_file_is_read(workspace: Path, environment: dict[str, str]) -> None:
    [example] = blocks("json")
    (workspace / "memory" / "utility-scores.json").write_text(example, encoding="utf-8")
    done = subprocess.run(["memory-tools", "scores"], capture_output=True, text=True, env=environment, encoding="utf-8")
    assert "MEMORY.md#主动汇报约定" in done.stdout, done.stderr
    assert (workspace / "memory" / "utility-scores.json").read_text(encoding="utf-8") == example


def test_every_field_that_may_stand_in_a_scores_file_is_explained() -> None:
    from memory_tools.score_values import KNOWN

    table = README.partition("| field | meaning |")[2].partition("\n\n")[0]
    assert {field for field in KNOWN if f"`{field}`" not in table} == set()


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")], ids=lambda page: page.name)
def test_the_examples_of_a_page_hold(page: Path) -> None:
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried
    assert not failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    from memory_tools import sections

    for target, fragment in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name}: {target}"
        if fragment:
            parsed = sections.parse(file.name, file.read_text(encoding="utf-8"))
            assert f"{file.name}#{fragment}" in {section.address for section in parsed.sections}, f"{page.name}: {target}#{fragment}"


def test_the_generated_parts_are_those_of_this_code() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "generate_docs.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def commands_in(page: Path) -> list[str]:
    """Each `memory-tools …` line of a page's shell examples."""
    lines = [line.split("  #")[0].strip() for block in blocks("bash", page.read_text(encoding="utf-8")) for line in block.split("\n")]
    return [line for line in lines if line.startswith("memory-tools ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_option_that_a_page_shows_exists(page: Path) -> None:
    import click

    from memory_tools.cli import cli

    for line in commands_in(page):
        words = shlex.split(line.split(" <<")[0])[1:]
        command: click.Command = cli
        known: set[str] = set()
        with click.Context(cli) as context:
            known |= {option for parameter in cli.params for option in parameter.opts}
            for word in words:
                found = command.get_command(context, word) if isinstance(command, click.Group) else None
                if found is not None:
                    command = found
                    known |= {option for parameter in command.params for option in parameter.opts}
        complete = not isinstance(command, click.Group) or command.invoke_without_command
        assert complete, f"{page.name}: {line}"
        unknown = [word for word in words if word.startswith("--") and word not in known | {"--help"}]
        assert not unknown, f"{page.name}: {line}"


@pytest.mark.parametrize("page", [ROOT / "SKILL.md", *sorted((ROOT / "skill").glob("*.md"))], ids=lambda page: page.name)
def test_every_command_that_the_skill_teaches_runs(page: Path, workspace: Path, environment: dict[str, str]) -> None:
    (workspace / "guideline.md").write_text("Ask for ten results; more time out.\n", encoding="utf-8")
    for block in blocks("bash", page.read_text(encoding="utf-8")):
        done = subprocess.run(["bash", "-ec", block], capture_output=True, text=True, cwd=workspace, env=environment, encoding="utf-8")
        assert done.returncode == 0, block + done.stderr


@pytest.mark.slow
def test_the_readmes_first_command_works_in_a_fresh_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    # HOME stays, since pip's own settings may lie there; ours must not be what makes it work.
    ours = ("MEMORY_TOOLS_", "OPENCLAW_", "VIRTUAL_ENV", "PYTHON")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(["bash", "-c", blocks("bash")[0]], capture_output=True, text=True, cwd=clone, env=plain, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "timeout-handling.md" in done.stdout
