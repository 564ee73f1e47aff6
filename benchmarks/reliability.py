"""A part and its size go in; out, one line per figure: steps failed per verb, kills and losses, latency, errors and growth.

Everything is measured on workspaces made for it in a temporary folder; nothing else is read or written.

    python benchmarks/reliability.py faults                  every step of every verb that writes, in six ways: about ten minutes
    python benchmarks/reliability.py faults --verb feedback
    python benchmarks/reliability.py kills --rounds 200      about ten minutes
    python benchmarks/reliability.py load --seconds 60
    python benchmarks/reliability.py watch --edits 10000     24 simulated hours, about eight minutes
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests")]

import faulty  # noqa: E402
import killing  # noqa: E402
import loading  # noqa: E402


def faults(folder: Path, verb_name: str | None) -> bool:
    """Steps failed per verb and kind, over all ways to fail; anything lost ends it with the step's number."""
    logging.disable(logging.CRITICAL)
    total: Counter[str] = Counter()
    complete = True
    for verb in faulty.VERBS:
        if verb_name not in (None, verb.name):
            continue
        started, hits = time.monotonic(), Counter[str]()
        for mode in faulty.MODES:
            hits += faulty.every_step(verb, mode, folder / f"{verb.name} {mode.name}".replace(" ", "-"))
        missing = [kind for kind in verb.kinds if not hits[kind]]
        complete = complete and not missing
        kinds = " ".join(f"{kind} {count}" for kind, count in sorted(hits.items()))
        print(f"{verb.name:22} {hits.total():5} failed: {kinds}  ({time.monotonic() - started:.0f} s)", flush=True)
        for kind in missing:
            print(f"{verb.name}: no step of the kind {kind}, the seam is not passed")
        total += hits
    print(f"{'all':22} {total.total():5} failed: " + " ".join(f"{kind} {count}" for kind, count in sorted(total.items())))
    return complete


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("faults", "kills", "load", "watch"))
    parser.add_argument("--verb", help="faults: this one only", choices=[verb.name for verb in faulty.VERBS])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--edits", type=int, default=10_000)
    parser.add_argument("--encoder", default="default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.part == "faults":
            return 0 if faults(folder, given.verb) else 1
        if given.part == "kills":
            figures = killing.KillLoop(folder).run(given.rounds)
            print(figures)
            print("\n".join(figures.died))
            return 1 if figures.lost.total() + figures.doubled.total() + figures.missed + len(figures.died) else 0
        if given.part == "load":
            load = loading.serve(folder, given.seconds, given.clients, given.encoder)
            print(load)
            return 1 if load.errors else 0
        watched = loading.watch(folder, given.edits, given.encoder)
        print(watched)
        return 0 if watched.clean and not watched.unseen else 1


if __name__ == "__main__":
    sys.exit(main())
