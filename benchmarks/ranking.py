"""Numbers of blocks in; out, the processor time and the memory that ranking takes: one line a size. Stage 1 alone, made-up postings.

python benchmarks/ranking.py                     2,080, 20,800 and 208,000 blocks
OPENBLAS_NUM_THREADS=1 python benchmarks/ranking.py --blocks 1000000
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from datetime import datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memory_tools import calibration, passages, search

QUESTIONS = 30
VOCABULARY = 4_000
SECTION, FILE = 18, 75  # blocks


class Made:
    """Blocks of 8 to 40 words, the words drawn by Zipf's law, in sections and files; every second section is a conversation."""

    def __init__(self, blocks: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        length = rng.integers(8, 40, blocks).astype(np.int32)
        at = np.arange(blocks)
        section = (at // SECTION).astype(np.int32)
        heading = at % SECTION == 0
        flags = np.where((section % 2 == 1) & ~heading, 4, 0) | np.where(rng.random(blocks) < 0.3, 1, 0)
        self.corpus = search.Corpus(
            file=(at // FILE).astype(np.int32),
            section=section,
            length=length,
            chars=length * 6,
            day=(738_000 + at // FILE).astype(np.int32),
            heading=heading,
            vector=at.astype(np.int32),
            allowed=np.ones(blocks, np.bool_),
            flags=flags.astype(np.uint8),
        )
        words = np.minimum(rng.zipf(1.25, int(length.sum())), VOCABULARY) - 1
        owner = np.repeat(at, length)
        pairs, counts = np.unique(words.astype(np.int64) * blocks + owner, return_counts=True)
        starts = np.searchsorted(pairs // blocks, np.arange(VOCABULARY + 1))
        self._postings = {
            f"w{word}": (pairs[a:b] % blocks, counts[a:b].astype(np.float32)) for word, (a, b) in enumerate(pairwise(starts.tolist()))
        }
        self.cosines = rng.normal(0.05, 0.08, blocks).astype(np.float32)
        self.rng = rng

    def postings(self, term: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        return self._postings.get(term, (np.zeros(0, np.int64), np.zeros(0, np.float32)))

    def question(self) -> str:
        return " ".join(f"w{w}" for w in np.minimum(self.rng.zipf(1.25, 8), VOCABULARY) - 1)

    def text(self, first: int, last: int) -> str:
        return " ".join(f"word{i}" for i in range(first, last + 20))


def measure(blocks: int) -> dict[str, object]:
    made = Made(blocks)
    scale = calibration.for_encoder("universal-multilingual-v3/1")
    now = datetime(2026, 3, 20)
    score_ms: list[float] = []
    pick_ms: list[float] = []
    peak = 0
    for i in range(QUESTIONS):
        if i == QUESTIONS - 1:  # the last one for memory alone: tracing slows it down
            tracemalloc.start()
        began = time.process_time()
        query = search.read([made.question()], None, now, made.corpus, made.postings)
        scored = search.score(made.corpus, made.postings, query, [made.cosines], None, scale)
        between = time.process_time()
        passages.pick(made.corpus, scored, limit=20, min_score=0.5, text=made.text)
        if tracemalloc.is_tracing():
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        else:
            score_ms.append((between - began) * 1e3)
            pick_ms.append((time.process_time() - between) * 1e3)
    return {
        "blocks": blocks,
        "score_ms": round(statistics.median(score_ms), 2),
        "pick_ms": round(statistics.median(pick_ms), 2),
        "peak_mb": round(peak / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, nargs="*", default=[2_080, 20_800, 208_000])
    for blocks in parser.parse_args().blocks:
        print(json.dumps(measure(blocks)), flush=True)


if __name__ == "__main__":
    main()
