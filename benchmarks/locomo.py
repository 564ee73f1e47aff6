"""LoCoMo's locomo10.json, or a folder of notes made from it, in; each conversation as daily notes, with its questions, out.

Get it from its authors (CC BY-NC 4.0); it is not part of this project. A turn becomes a list item `- **Speaker**: text [image: caption]`
under a heading with the time, in a file named after the day; the evidence of a question is the lines of the turns that it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

Asked = list[tuple[str, frozenset[tuple[str, int]]]]
CATEGORIES = (1, 2, 3, 4)  # the fifth has questions without an answer
_TURN = re.compile(r"D(\d+):(\d+)")


def conversations(path: Path) -> Iterator[tuple[str, dict[str, str], Asked]]:
    """Name, files by path, and questions with the places of their evidence."""
    if path.is_dir():
        rows = [json.loads(line) for line in (path / "qa.jsonl").read_text(encoding="utf-8").splitlines() if line]
        for name in sorted({row["conv"] for row in rows}):
            folder = path / name
            files = {p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*.md"))}
            yield name, files, [(r["q"], frozenset((p, n) for p, n in r["evidence"])) for r in rows if r["conv"] == name]
        return
    for sample in json.loads(path.read_text(encoding="utf-8")):
        yield _conversation(sample)


def _conversation(sample: dict[str, object]) -> tuple[str, dict[str, str], Asked]:
    talk = sample["conversation"]
    asked = sample["qa"]
    assert isinstance(talk, dict)
    assert isinstance(asked, list)
    files: dict[str, list[str]] = {}
    places: dict[str, tuple[str, int]] = {}
    numbers = sorted(int(key.removeprefix("session_")) for key in talk if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        lines = files.setdefault(f"memory/{at:%Y-%m-%d}.md", [f"# {at:%Y-%m-%d}", ""])
        lines += [f"## {at:%H:%M}", ""]
        for turn in talk[f"session_{number}"]:
            image = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            lines.append(f"- **{turn['speaker']}**: {' '.join(turn['text'].split())}{image}")
            places[turn["dia_id"]] = (f"memory/{at:%Y-%m-%d}.md", len(lines))
        lines.append("")
    questions: Asked = []
    for row in asked:
        turns = [f"D{a}:{b}" for part in row["evidence"] for a, b in _TURN.findall(part)]
        evidence = frozenset(places[turn] for turn in turns if turn in places)
        if row["category"] in CATEGORIES and evidence:
            questions.append((row["question"], evidence))
    return str(sample["sample_id"]), {p: "\n".join(lines) + "\n" for p, lines in files.items()}, questions
