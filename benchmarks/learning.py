"""Generated or given task streams in; out, one JSON line per figure, how much oftener the first place helps than it would without learning.

A memory holds the resolution of one kind of task. Each task comes with the memories that stage 1 found; the policy ranks them, the first
is used, and the outcome is recorded. Worlds: `clean`; `bad30`, where 30 % of the memories carry a near but wrong resolution, also with
20 % of the outcomes flipped or only 30 % reported; `stale`, where 30 % of the kinds change at half time and new memories appear. After
the stream the memories are frozen and held-out tasks are run.

    python benchmarks/learning.py                        the default policy, 8 generated streams, about a minute
    python benchmarks/learning.py --policy sum           the plain weighted sum, which `balanced` is measured against
    python benchmarks/learning.py --data FOLDER          given streams: *.json.gz, each {"memories", "steps", "tasks_per_day",
                                                         "worlds": {name: {"ids", "relevance", "solves": [tasks][found],
                                                         "born_day": [memories]}}}
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory_tools.utility import POLICIES, Settings, Usage, counts, rank, record

START = datetime(2026, 1, 1, tzinfo=UTC)
CONDITIONS = {  # name: world, share of outcomes flipped, share of outcomes reported
    "clean": ("clean", 0.0, 1.0),
    "bad30": ("bad30", 0.0, 1.0),
    "bad30_flip20": ("bad30", 0.2, 1.0),
    "bad30_cover30": ("bad30", 0.0, 0.3),
    "stale": ("stale", 0.0, 1.0),
}
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class World:
    """`ids`, `relevance`, `solves`: one row a task, best first; `born_day`: of each memory, in days from the start."""

    ids: list[list[int]]
    relevance: list[list[float]]
    solves: list[list[int]]
    born_day: list[float]


@dataclass(frozen=True, slots=True)
class Stream:
    name: str
    steps: int  # tasks that are learnt from; what comes after is held out
    tasks_per_day: int
    worlds: dict[str, World]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a generated stream is like; `spread` is the noise of a text around its kind, against centres at distances of about 1."""

    kinds: int
    each: int  # memories of a kind
    spread: float
    family: float = 1.0  # how alike the kinds of one family of six are
    own: float = 1.0  # how much of a kind is its own
    skew: float = 0.0  # Zipf exponent of how often a kind is asked
    shape: str = "cosine"  # of the relevance: cosine | calibrated | steep | coarse
    blur: float = 0.0  # noise of the relevance itself


RECIPES = (
    Recipe(77, 6, 1.35, family=1.4, own=0.8),  # like Banking77: stage 1 is right on 3 of 4 tasks
    Recipe(150, 4, 1.15, family=1.2, skew=0.5),
    Recipe(40, 10, 1.6, family=1.2, own=0.8, shape="calibrated"),
    Recipe(77, 6, 1.4, skew=0.8, shape="calibrated"),
    Recipe(120, 3, 1.2, shape="steep"),
    Recipe(60, 6, 1.4, shape="coarse"),
    Recipe(30, 5, 1.3, family=1.5, own=0.7, skew=1.0, blur=0.03),
    Recipe(77, 8, 1.15, shape="calibrated", blur=0.02),
)


def generate(recipe: Recipe, seed: int, steps: int = 3500, held_out: int = 800, found: int = 10, per_day: int = 50) -> Stream:
    """A stream of texts as points on a sphere: kinds in families of six, memories and tasks scattered around their kind."""
    dice, size, kinds = np.random.default_rng(seed), 48, recipe.kinds
    families = dice.normal(size=(max(1, kinds // 6), size))
    centres = (
        dice.normal(size=size) + recipe.family * families[np.arange(kinds) % len(families)] + recipe.own * dice.normal(size=(kinds, size))
    )
    scatter = recipe.spread * np.exp(0.25 * dice.normal(size=kinds))

    def texts(kind: Ints) -> Floats:
        wide = scatter[kind] * np.exp(0.35 * dice.normal(size=len(kind)))
        return _unit(centres[kind] + wide[:, None] * dice.normal(size=(len(kind), size)))

    memories = np.concatenate([np.repeat(np.arange(kinds), recipe.each), np.repeat(np.arange(kinds), 3)])
    old = np.arange(len(memories)) < kinds * recipe.each
    likeness = _unit(centres - centres.mean(0)) @ _unit(centres - centres.mean(0)).T
    near = np.argsort(-(likeness - 9 * np.eye(kinds)), axis=1)
    asked = 1.0 / np.arange(1, kinds + 1) ** recipe.skew
    tasks = dice.choice(kinds, size=steps + held_out, p=dice.permutation(asked / asked.sum()))
    cosine = texts(tasks) @ texts(memories).T
    relevance = _shaped(cosine + recipe.blur * dice.normal(size=cosine.shape), recipe.shape, dice)

    wrong = np.where(dice.random(len(memories)) < 0.3, near[memories, dice.integers(0, 2, len(memories))], memories)
    changes = dice.random(kinds) < 0.3
    late = np.arange(len(tasks)) >= steps // 2
    answer = np.where(late & changes[tasks], tasks + kinds, tasks)  # from half time a changed kind wants another resolution
    aged = np.where(old, np.where(dice.random(len(memories)) < 0.2, near[memories, 0], memories), memories + kinds)
    born = np.where(old, 0.0, steps / 2 / per_day)

    def world(resolution: Ints, wanted: Ints, news: bool) -> World:
        hidden = ~(old | (late[:, None] & changes[memories])) if news else np.broadcast_to(~old, relevance.shape)
        shown = np.where(hidden, -1.0, relevance)
        ids = np.argsort(-shown, axis=1, kind="stable")[:, :found]
        solves = (resolution[ids] == wanted[:, None]).astype(int)
        return World(ids.tolist(), np.take_along_axis(relevance, ids, 1).round(4).tolist(), solves.tolist(), born.tolist())

    worlds = {"clean": world(memories, tasks, False), "bad30": world(wrong, tasks, False), "stale": world(aged, answer, True)}
    return Stream(f"generated-{recipe.kinds}-{recipe.shape}-{seed}", steps, per_day, worlds)


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return unit


def _shaped(cosine: Floats, shape: str, dice: np.random.Generator) -> Floats:
    best = cosine.max(1)
    if shape == "calibrated":
        cosine = 1 / (1 + np.exp(-14 * (cosine - np.quantile(best, 0.25) + 0.05)))
    elif shape == "steep":
        cosine = 1 / (1 + np.exp(-30 * (cosine - np.quantile(best, 0.5))))
    elif shape == "coarse":  # few levels and many near-ties, as word overlap gives
        cosine = np.round(np.clip((cosine - 0.2) / 0.8, 0, 1) * 12) / 12 + 1e-3 * dice.random(cosine.shape)
    return np.clip(cosine, 0.0, 1.0)


def given(folder: Path) -> list[Stream]:
    streams = []
    for path in sorted(folder.glob("*.json.gz")):
        read = json.loads(gzip.decompress(path.read_bytes()))
        worlds = {name: World(w["ids"], w["relevance"], w["solves"], w["born_day"]) for name, w in read["worlds"].items()}
        streams.append(Stream(path.name.removesuffix(".json.gz"), read["steps"], read["tasks_per_day"], worlds))
    return streams


def first(found: Sequence[tuple[int, float]], usage: dict[int, Usage], now: datetime, policy: str) -> int:
    if policy == "sum":
        return _first_by_sum(found, usage, now)
    return int(rank([(str(i), r, usage[i]) for i, r in found], now, policy=policy)[0].address)


def _first_by_sum(found: Sequence[tuple[int, float]], usage: dict[int, Usage], now: datetime) -> int:
    """0.3 recency of the edit + 0.4 (successes + 1) / (judged + 2) + 0.3 relevance over the pool's range."""
    low, high = min(r for _, r in found), max(r for _, r in found)
    half_life = Settings().edit_half_life_days

    def value(memory: int, relevance: float) -> float:
        _, success, fail = counts(usage[memory])
        age = max((now - (usage[memory].edited or now)).total_seconds() / 86400, 0.0)
        return 0.3 * 2 ** (-age / half_life) + 0.4 * (success + 1) / (success + fail + 2) + 0.3 * (relevance - low) / max(high - low, 0.15)

    return max(found, key=lambda f: (value(*f), f[1], -f[0]))[0]


def run(stream: Stream, condition: str, policy: str, seed: int) -> dict[str, float]:
    """Gains over stage 1: over the whole stream, on the held-out tasks, and over the first 300."""
    name, flipped, reported = CONDITIONS[condition]
    world, dice = stream.worlds[name], random.Random(seed)
    usage = {i: Usage(edited=START + timedelta(days=d)) for i, d in enumerate(world.born_day)}
    gained = []
    for task, (ids, relevance, solves) in enumerate(zip(world.ids, world.relevance, world.solves, strict=True)):
        now = START + timedelta(days=min(task, stream.steps) / stream.tasks_per_day)
        chosen = first(list(zip(ids, relevance, strict=True)), usage, now, policy)
        solved = solves[ids.index(chosen)]
        gained.append(solved - solves[0])
        if task < stream.steps:
            outcome = bool(solved) != (dice.random() < flipped)
            usage[chosen] = record(usage[chosen], outcome if dice.random() < reported else None, now)
    parts = {"gain": gained[: stream.steps], "heldout_gain": gained[stream.steps :], "cold300_gain": gained[:300]}
    return {name: statistics.fmean(part) if part else 0.0 for name, part in parts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="balanced", choices=(*POLICIES, "sum"))
    parser.add_argument("--data", type=Path, help="a folder of streams instead of generated ones")
    parser.add_argument("--streams", type=int, default=len(RECIPES), help="how many to generate")
    parser.add_argument("--steps", type=int, default=3500, help="tasks in a generated stream")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", action="store_true", help="a line for each stream beside the mean")
    args = parser.parse_args()
    make = (generate(RECIPES[i % len(RECIPES)], args.seed + i, args.steps) for i in range(args.streams))
    streams = given(args.data) if args.data else list(make)
    if not streams:
        parser.error(f"no *.json.gz in {args.data}")
    for condition in CONDITIONS:
        runs = [run(stream, condition, args.policy, args.seed) for stream in streams]
        if args.each:
            for stream, figures in zip(streams, runs, strict=True):
                print(json.dumps({"condition": condition, "stream": stream.name, **{k: round(v, 4) for k, v in figures.items()}}))
        line: dict[str, object] = {"condition": condition, "policy": args.policy, "streams": len(streams)}
        for figure in runs[0]:
            values = [r[figure] for r in runs]
            line[figure] = round(statistics.fmean(values), 4)
            if len(values) > 1:  # two standard errors over streams
                line[figure + "_pm"] = round(2 * statistics.stdev(values) / len(values) ** 0.5, 4)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
