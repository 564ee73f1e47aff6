"""The symptoms that users of file-based memory ran into, and the tests that hold each: tests/CASES.md is made from the docstrings."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE / "CASES.md"

SYMPTOMS = {
    1: "Chinese, mixed and one-character queries find nothing",
    2: "a question in plain sentences finds nothing because every word is required",
    3: "versions, error codes, hashes and names of code never match",
    4: "plurals, accents and ß do not meet their other forms",
    5: "nonsense scores half, an empty query is answered, every score is 0 or 100 %",
    6: "without an encoder nothing is indexed although the status says ready",
    7: "another encoder's vectors are mixed in",
    8: "a slow or missing encoder silently becomes keyword search",
    9: "a filter after the top results leaves none",
    10: "text beyond some length is not searchable, long paragraphs are not split",
    11: "the snippet is not the match, or its lines are wrong",
    12: "near-duplicates fill the list",
    13: "the first search after an edit is stale",
    14: "deleted, renamed and atomically saved files are missed",
    15: "a miss triggers a full sync and times out",
    16: "the watcher dies silently, runs out of inotify, or walks node_modules",
    17: "one added paragraph re-embeds the whole file",
    18: "one odd file aborts the sync or vanishes silently",
    19: "a permission error makes the index forget everything",
    20: "the tool writes into the user's notes",
    21: "the database breaks after a kill, a race or a rebuild that dies",
    22: "a writer's lock kills every search",
    23: "a write says yes and stores nothing",
    24: "a daily note is overwritten, doubled on retry, or dated in UTC",
    25: "counts are written into MEMORY.md",
    26: "what is shown often is taken for useful",
    27: "MEMORY.md outgrows what an agent loads, silently",
    28: "reading follows a symlink out of the workspace",
    29: "its own citation is refused, the end of file is silent, a long line has no way on",
    30: "a permission error is reported as something else",
    31: "unknown parameters are ignored",
    32: "progress bars flood an agent's transcript",
    33: "the MCP server outlives its client, or makes it wait",
    34: "a console that is not UTF-8 crashes",
    35: "a cloned workspace's configuration runs code or reaches outside",
    36: "DNS rebinding reaches the HTTP server",
    37: "a reply is not bounded, or the best long record is dropped",
}


def covering() -> dict[int, list[str]]:
    """Case number -> tests that name it in their docstring."""
    found: dict[int, list[str]] = {number: [] for number in SYMPTOMS}
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
                continue
            for listed in re.findall(r"\bcases? (\d+(?:(?:, | and |, and )\d+)*)", ast.get_docstring(node) or ""):
                for number in re.findall(r"\d+", listed):
                    found[int(number)].append(f"{path.stem}::{node.name}")
    return found


def table() -> str:
    lines = ["# Cases", "", "What users of file-based memory ran into, and which tests hold it. Made by `tests/test_cases.py`.", ""]
    lines += ["| | symptom | held by |", "|---|---|---|"]
    for number, tests in covering().items():
        lines.append(f"| {number} | {SYMPTOMS[number]} | {'<br>'.join(f'`{t}`' for t in sorted(set(tests)))} |")
    return "\n".join(lines) + "\n"


def test_every_case_is_held_by_a_test() -> None:
    assert [number for number, tests in covering().items() if not tests] == []


def test_the_table_of_cases_is_up_to_date() -> None:
    """`WRITE_CASES=1 pytest tests/test_cases.py` to write it anew."""
    if os.environ.get("WRITE_CASES"):
        TABLE.write_text(table(), encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8") == table()
