"""The source tree goes in; a failure comes out where a module imports upwards, grows too long or takes up a habit that was agreed against."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "memory_tools"

# In the order of the data's way through the house. A module imports only what stands before it (lazy imports count too);
# a package stands in its `__init__`'s place and is free inside.
ORDER = """
    records errors seam
    plain_yaml config_keys config
    slugs sections tokens dates
    durable files
    encoders
    history settings utility
    identity
    calibration search traits passages masking
    postings vectors index sync corpus
    scores_merge scores receipts credit archive
    judge_rules judge_openai judge tool_files tool_calls tool_memory
    memory
    __init__
    skill workspace watch bench
    render_text render_terminal render
    cli_progress cli
    mcp_server
    http_app
    __main__
""".split()
LIMIT = 300


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_skill" not in path.parts)


def name_of(path: Path) -> str:
    """The name in ORDER: `memory_tools/index.py` -> `index`, `memory_tools/encoders/usem.py` -> `encoders`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("memory_tools.")}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "memory_tools":
            parts = node.module.split(".")
            names |= {parts[1]} if len(parts) > 1 else {alias.name if (PACKAGE / f"{alias.name}.py").exists() or (PACKAGE / alias.name).is_dir() else "__init__" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}: a relative import hides where it leads"
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_from_earlier_layers(path: Path) -> None:
    name = name_of(path)
    assert name in ORDER, f"{name} has no place in the order yet: add it to ORDER where its data comes from"
    late = sorted(other for other in imported(path) - {name} if other not in ORDER or ORDER.index(other) > ORDER.index(name))
    assert not late, f"{name} imports {', '.join(late)}, which come later in the house"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_stays_under_three_hundred_lines(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").split("\n"))
    assert lines <= LIMIT, f"{path.name} has {lines} lines: two rooms in one?"


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_says_first_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path.name} opens without a docstring"


AGREED_AGAINST = {
    r"except( Exception)?:\s*(pass|\.\.\.)": "an error swallowed",
    r"suppress\((Exception|BaseException)\)": "an error swallowed",
    r"class \w*(Manager|Helper)\b|class Base\w*|\butils\b": "a name that says nothing",
    r"\bdict\[str, Any\]": "an untyped bag",
    r"\.splitlines\(": "str.splitlines also splits on form feed and U+2028",
    r"\b(TODO|FIXME|XXX)\b|NotImplementedError": "unfinished",
    r"# type: ignore(?!\[)": "a blanket ignore",
    r"\bprint\(": "printing belongs to the faces' one writer",
}
FACES = {"cli", "bench", "render_terminal"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_keeps_the_agreed_habits(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for pattern, why in AGREED_AGAINST.items():
        if "print" in pattern and (name_of(path) in FACES or name_of(path).startswith("cli_")):
            continue
        found = re.search(pattern, text)
        assert not found, f"{path.name}:{text[: found.start()].count(chr(10)) + 1}: {found.group()!r}: {why}"


def test_no_module_shadows_a_library_it_needs() -> None:
    assert not {"http", "mcp", "json", "logging", "types", "select"} & {path.stem for path in modules()}


def test_no_file_names_a_developers_machine() -> None:
    machine = re.compile(r"(?<![\w.~$}])/(?:root|work|mnt|Users/\w|home/(?!user\b|you\b)\w)[/\w]")
    for path in [*modules(), *ROOT.glob("*.md"), *ROOT.glob("docs/*"), *ROOT.glob("skill/*"), *ROOT.glob("scripts/*"), ROOT / ".ci" / "run"]:
        if path.is_file():
            found = machine.search(path.read_text(encoding="utf-8"))
            assert not found, f"{path.relative_to(ROOT)} holds {found.group()!r}"
