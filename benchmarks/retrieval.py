"""Notes with questions in, how much of the evidence a search returns within a number of characters out: one line a set.

The notes in benchmarks/notes are written by hand for this: an engineer's (English), a team's (Chinese, also asked in English),
conversations, and six other languages. Those in benchmarks/check were written later, and nothing was fitted to them. LoCoMo may not be
shipped; with `--locomo` its file locomo10.json is read, or a folder of notes with a qa.jsonl.

    python benchmarks/retrieval.py                       quality of the default encoder
    python benchmarks/retrieval.py --encoder none        of the words alone
    python benchmarks/retrieval.py --locomo FILE         LoCoMo as well
    python benchmarks/retrieval.py --check               the notes in benchmarks/check instead
    python benchmarks/retrieval.py --show calibration    what strict and min_score .5 let through
    python benchmarks/retrieval.py --show variants       what more phrasings and a context change, with bootstrap intervals
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from locomo import conversations
from numpy.typing import NDArray

from memory_tools import Memory
from memory_tools.records import Result
from memory_tools.sections import split_lines

NOTES = Path(__file__).parent / "notes"
CHECK = Path(__file__).parent / "check"
BUDGETS = (200, 1000, 2000, 4000)
RESULTS = 40


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: frozenset[tuple[str, int]]  # path and line
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Set:
    name: str
    files: dict[str, str]
    questions: tuple[Question, ...]


def open_sets(notes: Path) -> Iterator[Set]:
    for folder in sorted(p for p in notes.iterdir() if p.is_dir()):
        paths = sorted(folder.rglob("*.md"))
        # Notes of other languages lie beside each other; memory/ is where notes are looked for.
        files = {_inside(p.relative_to(folder).as_posix()): p.read_text(encoding="utf-8") for p in paths}
        lines = {(path, n): line for path, text in files.items() for n, line in enumerate(split_lines(text), 1)}
        by_language: dict[str, list[Question]] = {}
        for row in (json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()):
            evidence = frozenset(place for place, line in lines.items() if any(part in line for part in row["evidence"]))
            name = folder.name + (f"-{row['lang']}" if folder.name == "zh-work" else "")
            by_language.setdefault(name, []).append(Question(row["q"], evidence, row.get("lang", "en")))
        for name, questions in by_language.items():
            yield Set(name, files, tuple(questions))


def _inside(path: str) -> str:
    return path if path == "MEMORY.md" or path.startswith("memory/") else f"memory/{path}"


def within(results: Sequence[Result], files: dict[str, str], evidence: frozenset[tuple[str, int]], budget: int) -> float:
    """Share of the evidence lines that are whole in the first `budget` characters. A result costs at least the lines that it claims."""
    found: set[tuple[str, int]] = set()
    left = budget
    for result in results:
        claimed = [min(len(line), 700) for line in split_lines(files[result.path])[result.start_line - 1 : result.end_line]]
        last = result.end_line
        cost = max(len(result.snippet), sum(claimed))
        if cost > left:
            last, used = result.start_line - 1, 0
            for length in claimed:
                used += length
                if used > left:
                    break
                last += 1
        found |= {(path, line) for path, line in evidence if path == result.path and result.start_line <= line <= last}
        left -= cost
        if left <= 0:
            break
    return len(found) / len(evidence)


def ndcg(results: Sequence[Result], evidence: frozenset[tuple[str, int]], k: int = 10) -> float:
    seen: set[tuple[str, int]] = set()
    gain = 0.0
    for rank, result in enumerate(results[:k]):
        new = {(p, n) for p, n in evidence if p == result.path and result.start_line <= n <= result.end_line} - seen
        gain += len(new) / math.log2(rank + 2)
        seen |= new
    return min(1.0, gain / sum(1 / math.log2(i + 2) for i in range(min(k, len(evidence)))))


def with_memory(files: dict[str, str], encoder: str, work: Callable[[Memory], None]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for path, text in files.items():
            target = Path(scratch) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="")
        with Memory(scratch, encoder=encoder) as memory:
            memory.sync()
            work(memory)


def quality(given: Set, encoder: str, policy: str) -> dict[str, object]:
    rows: list[dict[str, float]] = []

    def work(memory: Memory) -> None:
        for question in given.questions:
            began = time.perf_counter()
            results = memory.search(question.text, max_results=RESULTS, min_score=0.0, policy=policy).results
            took = time.perf_counter() - began
            row = {f"R<={b}": within(results, given.files, question.evidence, b) for b in BUDGETS}
            row["nDCG@10"] = ndcg(results, question.evidence)
            row["chars@10"] = float(sum(len(r.snippet) for r in results[:10]))
            rows.append(row | {"ms": took * 1e3})

    with_memory(given.files, encoder, work)
    figures = {k: round(statistics.mean(r[k] for r in rows), 3) for k in rows[0] if k not in ("ms", "chars@10")}
    chars = round(statistics.mean(r["chars@10"] for r in rows))
    return {"set": given.name, "n": len(rows), **figures, "chars@10": chars, "p50_ms": round(statistics.median(r["ms"] for r in rows), 1)}


def calibration(given: Set, absent: Mapping[str, Sequence[str]], encoder: str) -> dict[str, object]:
    """`survives`: of the evidence found at min_score 0, what .5 keeps. The rest: share of questions that find nothing at .5 / at .25, which
    a search without results falls back to; `nowhere`: general knowledge and nonsense, `lives`: questions about people not in the notes,
    `near`: questions of other notes in the same language, which hardly any of these answer.
    """
    found = kept = 0
    top: list[float] = []
    best: dict[str, list[float]] = {kind: [] for kind in absent}

    def work(memory: Memory) -> None:
        nonlocal found, kept
        for question in given.questions:
            hits = [
                r.relevance
                for r in memory.search(question.text, max_results=10, min_score=0.0, policy="relevance").results
                if any(p == r.path and r.start_line <= n <= r.end_line for p, n in question.evidence)
            ]
            found += len(hits)
            kept += sum(relevance >= 0.5 for relevance in hits)
            top.append(max(hits, default=0.0))
        for kind, texts in absent.items():
            for text in texts:
                results = memory.search(text, max_results=1, min_score=0.0, policy="relevance").results
                best[kind].append(max((r.relevance for r in results), default=0.0))

    with_memory(given.files, encoder, work)
    row: dict[str, object] = {
        "set": given.name,
        "evidence": found,
        "survives": round(kept / max(found, 1), 3),
        "median": round(statistics.median(top), 3),
    }
    for kind, values in best.items():
        shares = [round(float(np.mean(np.array(values) < least)), 2) if values else None for least in (0.5, 0.25)]
        row |= {kind: len(values), f"{kind} silent": f"{shares[0]} / {shares[1]}"}
    return row


def near(given: Set, sets: Sequence[Set], most: int = 120) -> list[str]:
    """Questions of the other sets in the language of this one's first question, those about people left to `lives`."""
    lives = set(lives_elsewhere(given, sets, most=10_000))
    others = [q for other in sets if other.files != given.files for q in other.questions]
    found = [q.text for q in others if q.language == given.questions[0].language and q.text not in lives]
    return found[:: max(1, len(found) // most)][:most]


def lives_elsewhere(given: Set, sets: Sequence[Set], most: int = 60) -> list[str]:
    """Questions of the other sets that name somebody these notes do not."""
    here = " ".join(given.files.values()).casefold()
    found = [
        q.text
        for other in sets
        if other.files is not given.files and other.files != given.files
        for q in other.questions
        if (people := re.findall(r"(?<=\s)[A-Z][a-z]+", q.text)) and not any(name.casefold() in here for name in people)
    ]
    return found[:: max(1, len(found) // most)][:most]


def variants(sets: Sequence[Set], encoder: str) -> Iterator[dict[str, object]]:
    """What two more phrasings, and a context, change in nDCG@10: mean difference and 95 % interval of 2,000 bootstrap samples."""
    rows = [json.loads(line) for line in (NOTES / "variants.jsonl").read_text(encoding="utf-8").splitlines()]
    rng = np.random.default_rng(0)
    for given in sets:
        differences = _variants_of(given, rows, encoder)
        for name, values in differences.items():
            if not values.size:
                continue
            means = values[rng.integers(0, len(values), (2000, len(values)))].mean(axis=1)
            low, high = np.quantile(means, (0.025, 0.975))
            interval = f"{low:+.3f} .. {high:+.3f}"
            yield {"set": given.name, "adds": name, "n": len(values), "difference": round(float(values.mean()), 3), "interval": interval}


def _variants_of(given: Set, rows: Sequence[dict[str, str]], encoder: str) -> dict[str, NDArray[np.float64]]:
    asked = {q.text: q.evidence for q in given.questions}
    mine = [row for row in rows if row["q"] in asked]
    more: list[float] = []
    context: list[float] = []

    def work(memory: Memory) -> None:
        def gain(query: str | list[str], context: str | None, evidence: frozenset[tuple[str, int]]) -> float:
            return ndcg(memory.search(query, context=context, min_score=0.0, policy="relevance").results, evidence)

        for row in mine:
            plain = gain(row["q"], None, asked[row["q"]])
            more.append(gain([row["q"], *row["variants"]], None, asked[row["q"]]) - plain)
            context.append(gain(row["q"], row["context"], asked[row["q"]]) - plain)

    if mine:
        with_memory(given.files, encoder, work)
    return {"phrasings": np.array(more), "context": np.array(context)}


def table(rows: list[dict[str, object]]) -> str:
    heads = list(rows[0])
    cells = [[str(row[h]) for h in heads] for row in rows]
    return "\n".join("| " + " | ".join(c) + " |" for c in [heads, ["---"] * len(heads), *cells])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--policy", default="relevance")
    parser.add_argument("--locomo", type=Path, help="locomo10.json, or a folder with one folder of notes a conversation and qa.jsonl")
    parser.add_argument("--check", action="store_true", help="the notes that nothing was fitted to")
    parser.add_argument("--show", choices=("quality", "calibration", "variants"), default="quality")
    parser.add_argument("--json", action="store_true", help="one JSON document a line instead of a table")
    args = parser.parse_args()
    if args.check and args.show == "variants":
        parser.error("only the notes in benchmarks/notes have variants")
    sets = list(open_sets(CHECK if args.check else NOTES))
    nowhere = [line for line in (NOTES / "absent.txt").read_text(encoding="utf-8").splitlines() if line]
    if args.locomo:
        for name, files, questions in conversations(args.locomo):
            sets.append(Set(name, files, tuple(Question(text, evidence) for text, evidence in questions)))
    if args.show == "quality":
        rows = [quality(given, args.encoder, args.policy) for given in sets]
    elif args.show == "calibration":
        asked = [{"nowhere": nowhere, "lives": lives_elsewhere(given, sets), "near": near(given, sets)} for given in sets]
        rows = [calibration(given, absent, args.encoder) for given, absent in zip(sets, asked, strict=True)]
    else:
        rows = list(variants(sets, args.encoder))
    print("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) if args.json else table(rows))


if __name__ == "__main__":
    main()
