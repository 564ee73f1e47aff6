"""Notes at 1, 10 and 100 times their size in, how fast and how large memory-tools is with them out: one JSON line a size.

The notes are those of benchmarks/notes over and over, or with `--locomo` those of LoCoMo (see retrieval.py); 1 time is about 2,080 blocks.
Copies differ: in each, every seventh word becomes another one by a fixed rule, so that nothing is shared by its content.

Ratios are of the least of interleaved pairs, so that a busy machine cancels out; times in seconds or milliseconds are for orientation.
`own`: of the rate at which the encoder alone encodes the same texts. `bare`: of a process that imports numpy and ends. `busy`: with
two spinning processes for each processor, how many times longer. `loop`: a loop of Python, 3 ms on an idle machine like that of the README.

    python benchmarks/speed.py                        1 and 10 times
    python benchmarks/speed.py --sizes 1 10 100       100 times too: the vectors of 208,000 blocks take long
    python benchmarks/speed.py --encoder none         the words alone
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from locomo import conversations
from retrieval import Set, open_sets

from memory_tools import Memory

BLOCKS = 2_080  # at 1 time
PAIRS = 8
QUESTIONS = 100
MARKER = "quuxinator"
ENCODE = """
from pathlib import Path
from memory_tools.encoders.universal import Universal
Universal({}).encode(["what is due on Monday"], "query")
"""


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def swapped(text: str, copy: int) -> str:
    """The text of a copy: every seventh word of four letters or more turned round and numbered; copy 0 is the text itself."""
    words = count()
    return re.sub(r"[^\W\d_]{4,}", lambda m: f"{m[0][::-1]}{copy}" if copy and next(words) % 7 == copy % 7 else m[0], text)


def locomo_sets(path: Path) -> Iterator[Set]:
    for name, files, _ in conversations(path):
        yield Set(name, files, ())


def made(root: Path, sets: Sequence[Set], size: int) -> None:
    """Write notes of about BLOCKS * size blocks: lines that hold something are nearly blocks."""
    lines = sum(sum(1 for line in text.splitlines() if line.strip()) for one in sets for text in one.files.values())
    for copy in range(max(1, round(BLOCKS * size / lines))):
        for one in sets:
            for path, text in one.files.items():
                target = root / "memory" / f"copy{copy}" / one.name / path.removeprefix("memory/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(swapped(text, copy), encoding="utf-8")


def questions_of(root: Path) -> list[str]:
    """Lines from all over the notes, without their first and last words: a note answers what it says itself, and much else is alike."""
    lines = [line for path in sorted(root.rglob("*.md")) for line in path.read_text(encoding="utf-8").splitlines() if len(line) > 40]
    step = max(1, len(lines) // QUESTIONS)
    return [" ".join(line.split()[2:-1])[:100] or line[:60] for line in lines[::step]][:QUESTIONS]


def run(*words: str, encoder: str, check: bool = True) -> str:
    environ = os.environ | {"MEMORY_TOOLS_ENCODER": encoder}
    return subprocess.run([sys.executable, *words], check=check, capture_output=True, text=True, env=environ).stdout


@contextmanager
def busy() -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        time.sleep(0.5)
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def loop() -> None:
    for n in range(30_000):
        str(n)


def over(act: Callable[[], object], other: Callable[[], object], pairs: int = PAIRS) -> float:
    took = [(timed(act), timed(other)) for _ in range(pairs)]
    return min(a for a, _ in took) / min(b for _, b in took)


def measured(root: Path, size: int, encoder: str) -> dict[str, object]:
    out: dict[str, object] = {"size": size, "files": sum(1 for _ in root.rglob("*.md"))}
    out["megabytes"] = sum(p.stat().st_size for p in root.rglob("*.md")) / 1e6
    questions = questions_of(root)

    def bare() -> str:
        return run("-c", "import numpy", encoder=encoder)

    with Memory(root, encoder=encoder) as memory:
        out["lexical_s"] = timed(lambda: memory.sync(vectors=False))
        out["blocks"] = memory.status().blocks
        if encoder != "none":
            memory.search(questions[0])  # opens the encoder
            out["vectors_s"], out["vectors_own"] = encoded(memory)
        for question in questions[:5]:
            memory.search(question)
        pairs = [(timed(lambda q=question: memory.search(q, min_score=0)), timed(loop)) for question in questions]  # type: ignore[misc]
        warm = [search for search, _ in pairs]
        out["warm_loop"] = statistics.median(search / idle for search, idle in pairs)
        out["warm_p50_ms"], out["warm_p95_ms"] = (x * 1e3 for x in statistics.quantiles(warm, n=20)[9::9])
        ask = questions[len(questions) // 2]

        def cold(question: str = ask) -> list[tuple[str, int, int]]:
            words = ("-m", "memory_tools", "--workspace", str(root), "search", "--json", "--min-score", "0", "--policy", "relevance")
            found = json.loads(run(*words, "--", question, encoder=encoder))["results"]
            return [(r["path"], r["startLine"], r["endLine"]) for r in found]

        sample = questions[3 :: max(1, len(questions) // 10)]
        ranked = [memory.search(q, min_score=0, policy="relevance").results for q in sample]
        same = [cold(q) == [(r.path, r.start_line, r.end_line) for r in found] for q, found in zip(sample, ranked, strict=True)]
        out["cold_is_warm"] = statistics.mean(same)
        out["cold_bare"] = over(cold, bare)
        changed = sorted(root.rglob("*.md"))[3]

        def change() -> None:
            with changed.open("a", encoding="utf-8") as file:
                file.write(f"\n- the marker is {MARKER}{time.time_ns()}\n")

        def seen() -> None:
            assert any(MARKER in r.snippet for r in memory.search(MARKER, min_score=0).results)

        took = []
        for _ in range(PAIRS):
            change()
            took.append((timed(lambda: memory.search(f"the marker {MARKER}")), timed(bare)))
        seen()
        out["change_bare"] = min(a for a, _ in took) / min(b for _, b in took)
        quiet, idle = (min(timed(act) for _ in range(PAIRS)) for act in (lambda: memory.search(ask), loop))
        with busy():
            loaded, kept_busy = (statistics.median(timed(act) for _ in range(PAIRS)) for act in (lambda: memory.search(ask), loop))
        out["busy_search"], out["busy_loop"] = loaded / quiet, kept_busy / idle
        out["index_megabytes"] = sum(p.stat().st_size for p in (root / ".memory-tools").iterdir()) / 1e6
    out["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return out


def encoded(memory: Memory) -> tuple[float, float]:
    """Seconds that all vectors took, and their rate over that of the encoder alone, which is measured in turn with it."""
    from memory_tools import embedding
    from memory_tools.encoders import open_encoder

    encoder = open_encoder("default")
    texts = list(embedding._pending_texts(memory._engine.index, 10**9).values())
    sample = texts[:: max(1, len(texts) // 1_000)]
    encoder.encode(sample[:50], "passage")
    alone: list[float] = []
    batches = count()

    def between(done: int, of: int) -> None:
        if next(batches) % 8 == 0:
            alone.append(timed(lambda: encoder.encode(sample, "passage")))

    took = timed(lambda: memory.sync(progress=between)) - sum(alone)
    return took, (len(texts) / took) / (len(sample) * len(alone) / sum(alone))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--encoder", default="default")
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)  # a size in a process of its own: its memory is its own too
    args = parser.parse_args()
    if args.one:
        figures = measured(args.one, args.sizes[0], args.encoder)
        print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}))
        return
    sets = list(locomo_sets(args.locomo) if args.locomo else {id(one.files): one for one in open_sets()}.values())
    if args.encoder == "default":
        bare = ("-c", "import numpy")
        for name, folder in (("mapped", "Path.home() / '.cache' / 'memory-tools'"), ("library", "None")):
            words = ("-c", ENCODE.format(folder))
            run(*words, encoder="none")
            ratio = over(lambda w=words: run(*w, encoder="none"), lambda: run(*bare, encoder="none"))  # type: ignore[misc]
            print(json.dumps({"encode_one_question_in_a_process": name, "bare": round(ratio, 2)}), flush=True)
    for size in args.sizes:
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch) / "workspace"
            made(root, sets, size)
            words = (str(Path(__file__).resolve()), "--one", str(root), "--sizes", str(size), "--encoder", args.encoder)
            print(run(*words, encoder=args.encoder).strip(), flush=True)


if __name__ == "__main__":
    main()
