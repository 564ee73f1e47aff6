"""The source tree goes in; a failure comes out where a module imports upwards, grows too long or has a habit agreed against."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "memory_tools"
LIMIT = 300  # lines

# In the order of the data's way through the house: a module imports only what stands before it, lazily imported or not.
# A package stands in one place and is free inside.
ORDER = (
    ("records", "reports", "errors", "seam"),
    # pure, or plain reading and writing
    ("nearest", "durable", "plain_files", "watch_state", "globs", "walk", "files", "plain_yaml", "config_keys", "config"),
    ("slugs", "front_matter", "outline", "pieces", "sections", "searched"),
    ("stems", "tokens", "date_words", "day_ranges", "date_rules", "dates", "traits", "questions"),
    ("encoders", "settings", "history", "utility", "sketches", "whereabouts", "likely", "identity"),
    ("calibration", "blocks", "lexical", "ranker", "search", "likeness", "snippets", "passages"),
    ("masking_names", "masking_rules", "masking"),
    # stores
    ("score_values", "entries", "standing", "attach", "scores_merge", "scores", "recall_log", "receipts"),
    ("postings", "vectors", "generations", "index", "reading", "freshness", "rows", "sync", "embedding", "corpus", "engine", "exclusive"),
    ("credit", "naming", "archived", "archive", "upkeep", "checking"),
    ("tool_names", "tool_settings", "tool_records", "tool_input", "tool_files", "tool_store", "tool_usage", "tool_reports", "tool_stats"),
    ("judge_values", "judge_features", "judge_causes", "judge_errors", "judge_guideline", "judge_prompts", "judge_answers"),
    ("judge_rules", "judge_openai", "judge", "judge_sampling", "tool_entries", "tool_memory", "tool_answers", "tool_agent", "tool_check"),
    # the one module that knows all the stages
    ("ask", "recall", "note_entry", "workspace", "memory", "defaults", "__init__"),
    ("skill", "watch_folders", "watch_events", "watch", "bench"),
    # faces: one table of verbs, three ways to call it
    ("render_text", "render_upkeep", "render_terminal", "render", "verbs", "resident", "tool_text"),
    ("http_serving", "http_app", "mcp_tools", "mcp_server"),
    ("cli_session", "cli_recall", "cli_index", "cli_scores", "cli_tool", "cli_serve", "cli", "__main__"),
)
PLACE = {name: place for place, name in enumerate(name for layer in ORDER for name in layer)}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "_skill" not in path.parts)


each_module = pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())


def name_of(path: Path) -> str:
    """The name in ORDER: `memory_tools/index.py` -> `index`, `memory_tools/encoders/remote.py` -> `encoders`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Names, as in ORDER, of our own modules that this one imports anywhere."""
    dotted: set[str] = set()
    inside = ("memory_tools", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            dotted |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else ()
            module = ".".join((*base, *(node.module or "").split("."))).strip(".")
            dotted |= {f"{module}.{alias.name}" for alias in node.names}
    ours = [name.split(".")[1:] for name in dotted if name.startswith("memory_tools.")]
    return {parts[0] if (PACKAGE / f"{parts[0]}.py").exists() or (PACKAGE / parts[0]).is_dir() else "__init__" for parts in ours}


@each_module
def test_a_module_imports_only_from_earlier_layers(path: Path) -> None:
    name = name_of(path)
    assert name in PLACE, f"{name} has no place in ORDER yet: add it where its data comes from"
    late = sorted(other for other in imported(path) - {name} if PLACE.get(other, len(PLACE)) > PLACE[name])
    assert not late, f"{name} imports {', '.join(late)}, which come later in the house"


@each_module
def test_a_module_stays_under_three_hundred_lines(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= LIMIT, f"{path.name} has {lines} lines: two rooms in one?"


@each_module
def test_a_module_says_first_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{path.name} opens without a docstring"


AGREED_AGAINST = {
    r"except( Exception)?:\s*(pass|\.\.\.)": "an error swallowed",
    r"suppress\((Exception|BaseException)\)": "an error swallowed",
    r"class \w*(Manager|Helper)\b|class Base\w*|^(from|import) memory_tools\.\w*utils": "a name that says nothing",
    r"\bdict\[str, Any\]": "an untyped bag",
    r"\.splitlines\(": "str.splitlines also splits on form feed and U+2028",
    r"\b(TODO|FIXME|XXX)\b|NotImplementedError": "unfinished",
    r"# type: ignore(?!\[)": "a blanket ignore",
    r"(?<![.\w])print\(": "printing belongs to the faces' one writer",
}


@each_module
def test_a_module_keeps_the_agreed_habits(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    broken = [
        f"{path.name}:{text[: found.start()].count(chr(10)) + 1}: {found.group()!r}: {why}"
        for pattern, why in AGREED_AGAINST.items()
        for found in re.finditer(pattern, text)
    ]
    assert not broken


def test_no_module_shadows_a_library_it_needs() -> None:
    assert not {"http", "mcp", "json", "logging", "types", "select"} & {path.stem for path in modules()}


def test_no_file_names_a_developers_machine() -> None:
    machine = re.compile(r"(?<![\w.~$}/])/(?:root|work|mnt|Users/\w|home/(?!user\b|you\b)\w)[/\w]")
    pages = [path for pattern in ("*.md", "docs/*", "skill/*", "scripts/*", ".ci/run") for path in ROOT.glob(pattern) if path.is_file()]
    for path in [*modules(), *pages]:
        found = machine.search(path.read_text(encoding="utf-8"))
        assert not found, f"{path.relative_to(ROOT)} holds {found.group()!r}"
