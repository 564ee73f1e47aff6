"""Which tools were asked for, and with what success, counted in one small derived file. Losing it costs only these counts.

Each retrieval appends a line; a file that has grown is folded into one line for each name.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memory_tools import durable
from memory_tools.errors import MemoryToolsError
from memory_tools.plain_files import read_bytes

log = logging.getLogger("memory_tools.tools")

_FOLD_BYTES = 128 * 1024
_MAX_KEPT = 1_000  # names, the last asked ones
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """How often one tool's memory was retrieved, or asked for and not there. `last`: local time of the last time."""

    found: int = 0
    missing: int = 0
    last: str = ""


class ToolUsage:
    """The counts of all workspaces of one server."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def count(self, workspace_id: str, found: Sequence[str], missing: Sequence[str], time: str) -> None:
        """Add one retrieval. A disk that refuses costs the count and nothing else."""
        line = json.dumps({"at": time, "in": workspace_id, "found": _short(found), "missing": _short(missing)}, ensure_ascii=False)
        try:
            with durable.lock(self._path, timeout_s=1.0):
                durable.append_unlocked(self._path, line.encode("utf-8", "replace") + b"\n")
                if self._path.stat().st_size > _FOLD_BYTES:
                    self._fold()
        except (MemoryToolsError, OSError) as e:
            log.info("retrieval not counted: %s", e)

    def read(self, workspace_id: str) -> dict[str, Asked]:
        try:
            content = read_bytes(self._path) or b""
        except MemoryToolsError as e:
            log.info("retrieval counts not read: %s", e)
            return {}
        return {name: asked for (owner, name), asked in _counts(content).items() if owner == workspace_id}

    def _fold(self) -> None:
        counts = _counts(read_bytes(self._path) or b"")
        kept = sorted(counts.items(), key=lambda item: (item[1].last, item[0]))[-_MAX_KEPT:]
        lines = [
            json.dumps({"at": a.last, "in": owner, "name": name, "counts": [a.found, a.missing]}, ensure_ascii=False)
            for (owner, name), a in sorted(kept)
        ]
        durable.replace(self._path, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def _short(names: Sequence[str]) -> list[str]:
    return [n[:_MAX_NAME] for n in names[:_MAX_KEPT]]


def _counts(content: bytes) -> dict[tuple[str, str], Asked]:
    counts: dict[tuple[str, str], Asked] = {}
    for line in content.decode("utf-8", "replace").split("\n"):
        try:
            raw = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue  # half a line of a crash; the counts are derived
        if not isinstance(raw, Mapping):
            continue
        owner, at = str(raw.get("in", "")), str(raw.get("at", ""))
        folded = raw.get("counts")
        if isinstance(folded, list) and len(folded) == 2 and all(isinstance(n, int) for n in folded):
            _add(counts, owner, str(raw.get("name", "")), folded[0], folded[1], at)
        for key, found, missing in (("found", 1, 0), ("missing", 0, 1)):
            names = raw.get(key)
            for name in names if isinstance(names, list) else ():
                _add(counts, owner, str(name), found, missing, at)
    return counts


def _add(counts: dict[tuple[str, str], Asked], owner: str, name: str, found: int, missing: int, at: str) -> None:
    old = counts.get((owner, name), Asked())
    counts[owner, name] = replace(old, found=old.found + found, missing=old.missing + missing, last=max(old.last, at))
