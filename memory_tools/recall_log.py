"""The lines of recalls.jsonl in, what searches showed and what was credited for it out, and back. Pure.

A recall: {"recall", "time", "query", "shown": [[section id, address, citation], ...]}.
A credit: {"try": token, "time", "event", "parts": [[section id, recall, what], ...]}, written before the sidecar, and {"done": token} or
{"void": token} after it. A try that has neither is settled by the sidecar itself: the entries it changed hold its token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory_tools.score_values import read_time, time_text

KEEP_RECALLS = 1000
KEEP_DAYS = 7
SHOWN_HOURS = 1  # how long a search explains a later read or outcome that names no recall
USED_HOURS = 24  # how long a read waits for an outcome that names no recall
QUERY_CHARS = 300


@dataclass(frozen=True, slots=True)
class Shown:
    section_id: str
    address: str  # as it was then
    citation: str


@dataclass(frozen=True, slots=True)
class Recall:
    """One search. `shown`: in the order of its results; several may share a section."""

    id: str
    time: datetime
    query: str
    shown: tuple[Shown, ...]

    def showed(self, section_id: str) -> bool:
        return any(s.section_id == section_id for s in self.shown)


@dataclass(frozen=True, slots=True)
class Part:
    """One memory in a credit. `what`: use, success or failure; `recall` "" where none showed it."""

    section_id: str
    recall: str
    what: str


@dataclass(frozen=True, slots=True)
class Try:
    token: str
    time: datetime
    event: str
    parts: tuple[Part, ...]


@dataclass(slots=True)
class Log:
    """The file as it was read."""

    recalls: dict[str, Recall] = field(default_factory=dict)  # oldest first
    tries: dict[str, Try] = field(default_factory=dict)
    ended: dict[str, bool] = field(default_factory=dict)  # token -> whether it was counted
    broken: int = 0  # lines that are no JSON: half written in a crash
    states: dict[tuple[str, str], str] = field(default_factory=dict)  # (recall, section id) -> use, success or failure
    events: dict[str, str] = field(default_factory=dict)  # event id -> token

    def count(self, token: str) -> None:
        """A try was counted: what it credited is known from now on."""
        self.ended[token] = True
        done = self.tries[token]
        if done.event:
            self.events[done.event] = token
        for part in done.parts:
            if part.recall and (part.what != "use" or (part.recall, part.section_id) not in self.states):
                self.states[part.recall, part.section_id] = part.what

    def pending(self) -> list[Try]:
        return [t for t in self.tries.values() if t.token not in self.ended]

    def find(self, name: str, now: datetime) -> Recall | None:
        """A recall of the last 7 days by its id, or the newest by the name `last`."""
        recent = self._since(now, timedelta(days=KEEP_DAYS))
        if name == "last":
            return next(recent, None)
        recall = self.recalls.get(name)
        return recall if recall is not None and now - recall.time <= timedelta(days=KEEP_DAYS) else None

    def to_use(self, section_id: str, now: datetime) -> Recall | None:
        """The newest recall of the last hour that showed the section and has no outcome for it yet."""
        for recall in self._since(now, timedelta(hours=SHOWN_HOURS)):
            if recall.showed(section_id) and self.states.get((recall.id, section_id), "use") == "use":
                return recall
        return None

    def to_judge(self, section_id: str, now: datetime) -> Recall | None:
        """The newest one in which the section was read and waits for an outcome; else as `to_use`."""
        for recall in self._since(now, timedelta(hours=USED_HOURS)):
            if self.states.get((recall.id, section_id)) == "use":
                return recall
        return self.to_use(section_id, now)

    def _since(self, now: datetime, age: timedelta) -> Iterator[Recall]:
        return (r for r in reversed(self.recalls.values()) if now - r.time <= age)


def parse(content: bytes, log: Log | None = None) -> Log:
    """The lines of the file as a Log, or added to one."""
    log = log or Log()
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            _take(log, row)
        except (ValueError, TypeError, KeyError, RecursionError):
            log.broken += 1
    return log


def _take(log: Log, row: dict[str, object]) -> None:
    if "recall" in row:
        id = str(row["recall"])
        shown = tuple(Shown(str(s), str(a), str(c)) for s, a, c in _rows(row["shown"]))
        log.recalls.pop(id, None)
        log.recalls[id] = Recall(id, _moment(row), str(row["query"]), shown)
    elif "try" in row:
        token = str(row["try"])
        parts = tuple(Part(str(s), str(r), str(w)) for s, r, w in _rows(row["parts"]))
        log.tries[token] = Try(token, _moment(row), str(row.get("event") or ""), parts)
        if row.get("done") is True:
            log.count(token)
    elif "done" in row and str(row["done"]) in log.tries:
        log.count(str(row["done"]))
    elif "void" in row:
        log.ended.setdefault(str(row["void"]), False)


def _rows(value: object) -> list[tuple[object, object, object]]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _moment(row: Mapping[str, object]) -> datetime:
    moment = read_time(row["time"])
    if moment is None:
        raise ValueError("not a time")
    return moment


def kept(log: Log, now: datetime) -> Iterator[Mapping[str, object]]:
    oldest = now - timedelta(days=KEEP_DAYS)
    for t in log.tries.values():
        if t.time >= oldest and log.ended.get(t.token, True):
            parts = [[p.section_id, p.recall, p.what] for p in t.parts]
            ended = {"done": True} if t.token in log.ended else {}
            yield {"try": t.token, "time": time_text(t.time), "event": t.event, "parts": parts, **ended}
    for r in list(log.recalls.values())[-KEEP_RECALLS:]:
        if r.time >= oldest:
            rows = [[s.section_id, s.address, s.citation] for s in r.shown]
            yield {"recall": r.id, "time": time_text(r.time), "query": r.query, "shown": rows}


def encoded(row: Mapping[str, object]) -> bytes:
    # Half a surrogate pair has no UTF-8; as \ud83d it is JSON all the same.
    return (json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "backslashreplace")
