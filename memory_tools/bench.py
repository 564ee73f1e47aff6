"""A workspace in, figures of this machine out: measured on copies of its notes in a temporary folder; the workspace itself is only read."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memory_tools import files
from memory_tools.errors import InvalidInput
from memory_tools.memory import Memory

if TYPE_CHECKING:
    from memory_tools.config import Config
    from memory_tools.freshness import Progress

QUERIES = 50
COLD_RUNS = 5
SECTIONS = 1_000  # that are asked for themselves
SHOWN = 10  # results among which a section must be, and sections that are named where they are not
MARKER = "quuxinator"  # a word that no note holds


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds unless named otherwise. Cold is a process of its own; bare is one that imports numpy and ends, measured in turn with it.

    Of `sections_asked`, each asked for with the beginning of its longest line, `sections_found` were among the first ten results, or one
    that says the same was; `not_found` names some of the others.
    """

    copies: int
    files: int
    megabytes: float
    blocks: int
    index_s: float
    warm_median_ms: float
    warm_p95_ms: float
    cold_s: float
    bare_numpy_s: float
    cold_over_bare: float
    one_file_changed_s: float
    change_seen: bool
    sections_asked: int
    sections_found: int
    not_found: tuple[str, ...]


def run(config: Config, copies: int = 1, progress: Progress | None = None) -> Figures:
    """Measure. Raises InvalidInput for copies below 1 or a workspace without notes."""
    if copies < 1:
        raise InvalidInput("copies: expected a whole number from 1")
    notes = [one for one in files.scan(config.workspace, config.include, config.exclude, {}).found if one.source != "extra"]
    if not notes:
        raise InvalidInput(f"{config.workspace}: no notes to measure with", "name a workspace with --workspace")
    with tempfile.TemporaryDirectory(prefix="memory-tools-bench-") as scratch:
        root = Path(scratch) / "workspace"
        texts = [(one.path, files.read(one).text) for one in notes]
        for n in range(copies):
            for path, text in texts:
                target = root / path if n == 0 else root / "memory" / f"copy{n}" / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text if n == 0 else f"{text}\n- copy {n} of {path}\n", encoding="utf-8", newline="")
        with Memory(config=replace(config, workspace=root, extra_roots={}, index_dir=None)) as memory:
            return _measured(memory, root, _questions([text for _, text in texts]), copies, progress)


def _measured(memory: Memory, root: Path, questions: Sequence[str], copies: int, progress: Progress | None) -> Figures:
    index_s = _timed(lambda: memory.sync(progress=progress))
    memory.search(questions[0])
    warm = sorted(_timed(lambda q=question: memory.search(q)) for question in questions)  # type: ignore[misc]
    asked, lost = _lost(memory)
    # In turn, and the least of each: a busy machine cancels out of the ratio.
    pairs = [(_timed(_command(memory, root, q)), _timed(_bare)) for q in itertools.islice(itertools.cycle(questions), COLD_RUNS)]
    cold_s, bare_s = min(cold for cold, _ in pairs), min(bare for _, bare in pairs)
    changed = sorted(root.rglob("*.md"))[0]
    with changed.open("a", encoding="utf-8") as stream:
        stream.write(f"\n- the marker is {MARKER}\n")
    changed_s = _timed(lambda: memory.search(MARKER))
    seen = any(MARKER in result.snippet for result in memory.search(MARKER))
    status = memory.status()
    return Figures(
        copies=copies,
        files=status.files,
        megabytes=sum(path.stat().st_size for path in root.rglob("*.md")) / 1e6,
        blocks=status.blocks,
        index_s=index_s,
        warm_median_ms=warm[len(warm) // 2] * 1e3,
        warm_p95_ms=warm[min(len(warm) - 1, int(len(warm) * 0.95))] * 1e3,
        cold_s=cold_s,
        bare_numpy_s=bare_s,
        cold_over_bare=cold_s / bare_s,
        one_file_changed_s=changed_s,
        change_seen=seen,
        sections_asked=asked,
        sections_found=asked - len(lost),
        not_found=tuple(lost[:SHOWN]),
    )


def _lost(memory: Memory) -> tuple[int, list[str]]:
    """How many sections were asked for, and the addresses of those that did not find themselves. One copy, spread over all sections."""
    rows = memory._engine.index.connection.execute(
        "SELECT s.address, s.text FROM sections s JOIN files f ON f.id = s.file"
        " WHERE f.path NOT GLOB 'memory/copy[0-9]*/*' AND f.source != 'archive' ORDER BY f.path, s.ord"
    ).fetchall()
    longest = ((address, max((_bare_line(line) for line in text.split("\n")), key=len)) for address, text in rows)
    asking = [(address, line) for address, line in longest if any(map(str.isalnum, line))]
    asking = asking[:: max(1, -(-len(asking) // SECTIONS))]
    lost = []
    for address, line in asking:
        found = memory.search(line[:200], max_results=SHOWN, min_score=0.0, policy="relevance").results
        if not any(r.address == address or line in r.snippet or (r.similar and _says_the_same(line, r.snippet)) for r in found):
            lost.append(address)
    return len(asking), lost


def _bare_line(line: str) -> str:
    return "" if line.startswith(("#", "<!--")) else line.strip("-*+> \t\r")  # a page's own marks are not searched


def _says_the_same(line: str, snippet: str) -> bool:
    from memory_tools.likeness import Likeness

    return Likeness((line, snippet).__getitem__).same(0, 1)


def _questions(texts: Sequence[str]) -> list[str]:
    """The longest lines' beginnings, spread over the notes: what a note says is a fair question to it."""
    lines = [line.strip("#-*> \t") for text in texts for line in text.split("\n")]
    usable = [line[:60] for line in lines if len(line) >= 8] or [line for line in lines if line] or ["memory"]
    step = max(1, len(usable) // QUERIES)
    return usable[::step][:QUERIES]


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _command(memory: Memory, root: Path, question: str) -> Callable[[], object]:
    words = [sys.executable, "-P", "-m", "memory_tools", "--workspace", str(root), "search", "--json", "--", question]
    environ = {**os.environ, "MEMORY_TOOLS_ENCODER": memory.config.encoder}
    return lambda: subprocess.run(words, check=True, capture_output=True, env=environ)


def _bare() -> object:
    return subprocess.run([sys.executable, "-c", "import numpy"], check=True, capture_output=True)
