"""The text of utility-scores.json in, its entries out, and back. Pure. Fields and keys that are not ours pass through untouched.

A field is written only where it changed: what a person wrote by hand stays as it is until an outcome changes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from memory_tools.errors import Damaged
from memory_tools.history import Usage, counts
from memory_tools.reports import Finding
from memory_tools.score_values import COUNTS, EXPECTED, KNOWN, READ, WRITE, shown

ORPHANS = "~orphans"
RECENT = 10  # outcomes kept in `recent`
_ROUNDING = 1e-9  # counts are written with nine decimals at most


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory's history. Times are aware. `raw` is the entry as it stands in the file."""

    use_count: float = 0
    success_count: float = 0
    fail_count: float | None = None
    last_used: datetime | None = None
    last_success: datetime | None = None
    edited: datetime | None = None
    positive_feedback: bool = False
    pinned: bool = False
    muted: bool = False
    q: float | None = None
    utility: float | None = None
    id: str = ""
    body: str = ""
    sketch: str = ""  # base64
    recent: str = ""  # the last outcomes, newest last: + success, - failure
    event: str = ""  # the last counted event, so that one which was interrupted is not counted twice
    orphaned: datetime | None = None  # since when its section is gone
    raw: Mapping[str, object] = field(default_factory=dict, compare=False)
    unreadable: tuple[str, ...] = field(default=(), compare=False)  # known fields whose value is none

    def usage(self) -> Usage:
        return Usage(
            self.use_count, self.success_count, self.fail_count, self.last_used, self.last_success, self.edited,
            self.positive_feedback, self.pinned, self.muted, None, self.q,
        )  # fmt: skip

    def with_usage(self, usage: Usage) -> Entry:
        return replace(
            self, use_count=usage.use_count, success_count=usage.success_count, fail_count=usage.fail_count, last_used=usage.last_used,
            last_success=usage.last_success, q=usage.q, positive_feedback=usage.positive_feedback,
        )  # fmt: skip

    @property
    def judged(self) -> float:
        _, success, fail = counts(self.usage())
        return success + fail


@dataclass(frozen=True, slots=True)
class Scores:
    """The whole file: entries and orphans by address, and what else is in it."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    orphans: Mapping[str, Entry] = field(default_factory=dict)
    others: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()
    repeated: str | None = None  # a key that is there twice; only one of the two would survive a rewrite


def parse(content: bytes, name: str) -> Scores:
    """Raises Damaged with `name`, line and column where the content is not a JSON object."""
    text = _decoded(content, name)
    repeats: list[str] = []

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(found)
        if len(made) != len(found):
            keys = [key for key, _ in found]
            repeats.extend(key for i, key in enumerate(keys) if key in keys[:i])
        return made

    try:
        whole = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as e:
        raise _damaged(name, e.lineno, e.colno, f"not valid JSON ({e.msg})") from e
    except (ValueError, RecursionError) as e:  # a number of thousands of digits, thousands of brackets
        raise _damaged(name, 1, 1, f"not valid JSON ({type(e).__name__})") from e
    if not isinstance(whole, dict):
        raise _damaged(name, 1, 1, "not a JSON object")
    reader = _Reader(text, name)
    entries: dict[str, Entry] = {}
    orphans: dict[str, Entry] = {}
    others: dict[str, object] = {}
    odd: dict[str, object] = {}  # under our key, but no orphans
    for key, value in whole.items():
        if key == ORPHANS and isinstance(value, dict):
            for address, orphan in value.items():
                if isinstance(orphan, dict):
                    orphans[address] = reader.entry(address, orphan)
                else:
                    odd[address] = orphan
        elif not key.startswith("~") and isinstance(value, dict) and (not KNOWN.isdisjoint(value) or "#" in key):
            entries[key] = reader.entry(key, value)
        else:
            others[key] = value
            if "#" in key and not key.startswith("~"):
                reader.problem(key, "is not an entry (an object with use_count, success_count, ...)")
    if odd:
        others[ORPHANS] = odd
    if repeats:
        reader.problem(repeats[0], "is there more than once; only the last one counts")
    return Scores(entries, orphans, others, tuple(reader.problems), repeats[0] if repeats else None)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        raise _damaged(name, line, e.start - content.rfind(b"\n", 0, e.start), "not UTF-8") from e


def _damaged(name: str, line: int, column: int, what: str) -> Damaged:
    return Damaged(f"{name}:{line}:{column}: {what}", "restore it from a backup or version control, or move it away; it was left untouched")


@dataclass(slots=True)
class _Reader:
    text: str
    name: str
    problems: list[Finding] = field(default_factory=list)

    def problem(self, key: str, what: str) -> None:
        at = self.text.find(json.dumps(key, ensure_ascii=False))
        line = self.text.count("\n", 0, at) + 1 if at >= 0 else None
        self.problems.append(Finding("warning", "scores_value", f"{key}: {what}", self.name, line))

    def entry(self, key: str, raw: dict[str, object]) -> Entry:
        values: dict[str, object] = {}
        unreadable = []
        for name, given in raw.items():
            read = READ.get(name)
            if read is None or given is None:
                continue
            value = read(given)
            if value is None:
                unreadable.append(name)
                self.problem(key, f"{name} is {shown(given)}, which is not {EXPECTED[name]}; it is left out")
            else:
                values[name] = value
        entry = Entry(**values, raw=raw, unreadable=tuple(sorted(unreadable)))  # type: ignore[arg-type]
        failed, others = entry.fail_count, entry.use_count - entry.success_count
        # 2.3 - 2 is 0.29999999999999982: three tenths of a failure beside two successes fit into 2.3 uses.
        if not (0 <= entry.success_count <= entry.use_count and (failed is None or 0 <= failed <= others + _ROUNDING)):
            uses, success, fail = counts(entry.usage())
            said = f"{entry.success_count:g} successes" + ("" if failed is None else f" and {failed:g} failures")
            taken = f"{success:g} successes, {fail:g} failures of {uses:g} uses"
            self.problem(key, f"{said} of {entry.use_count:g} uses cannot be; taken as {taken}")
        return entry


def read_entry(raw: dict[str, object]) -> Entry:
    """One entry; what cannot be read is in `unreadable`."""
    return _Reader("", "").entry("", raw)


def written(entry: Entry) -> dict[str, object]:
    """As it goes into the file: as it stood there, with the fields that changed. Damaged where an unreadable count would be lost."""
    before = read_entry(dict(entry.raw))
    raw = dict(entry.raw)
    for name in () if entry == before else sorted(KNOWN):
        value = getattr(entry, name)
        if value == getattr(before, name):
            continue
        if name in before.unreadable and name in COUNTS:  # what the tool made itself, or a time that is past now, may be replaced
            raise Damaged(f"{name} is {shown(raw[name])}, which is not {EXPECTED[name]}", "correct it by hand; it was left untouched")
        if value is None or value == "":
            raw.pop(name, None)
        else:
            raw[name] = WRITE[name](value) if name in WRITE else value
    if raw and not entry.raw:  # an entry of our own has the documented fields, also where nothing was counted yet
        raw = {"use_count": 0, "success_count": 0} | raw
    return raw


def formatted(scores: Scores, before: Scores | None = None) -> bytes:
    """Keys sorted, two spaces, UTF-8: it reads and diffs well. Raises Damaged where an unreadable count would be lost.

    `before`: what was parsed; the entries that are still the same objects need not be compared.
    """
    whole: dict[str, object] = dict(scores.others)
    untouched = {id(entry) for entry in before.entries.values()} if before else set()
    for address, entry in scores.entries.items():
        whole[address] = entry.raw if id(entry) in untouched else _written(address, entry)
    orphans = {address: _written(address, entry) for address, entry in scores.orphans.items()}
    if orphans:
        there = whole.pop(ORPHANS, {})
        if not isinstance(there, dict):  # somebody's own value under our key
            whole[f"{ORPHANS} (unreadable)"] = there
            there = {}
        whole[ORPHANS] = {**there, **orphans}
    try:
        return (_json(whole, "", ensure_ascii=False) + "\n").encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, written as \ud83d by hand, has no UTF-8
        return (_json(whole, "", ensure_ascii=True) + "\n").encode("ascii")
    except RecursionError as e:
        raise Damaged("a value is nested too deeply to be written again", "simplify it by hand; the file was left untouched") from e


def _json(value: object, pad: str, *, ensure_ascii: bool) -> str:
    """As json.dumps(indent=2, sort_keys=True), but what holds no further object goes through the C encoder, 8 times as fast."""
    inner = pad + "  "
    if isinstance(value, dict) and value:
        if any(isinstance(v, dict | list) for v in value.values()):
            lines = [
                f"{inner}{json.dumps(key, ensure_ascii=ensure_ascii)}: {_json(value[key], inner, ensure_ascii=ensure_ascii)}"
                for key in sorted(value)
            ]
            return "{\n" + ",\n".join(lines) + f"\n{pad}}}"
        flat = json.dumps(value, ensure_ascii=ensure_ascii, sort_keys=True, separators=(f",\n{inner}", ": "))
        return f"{{\n{inner}{flat[1:-1]}\n{pad}}}"
    return json.dumps(value, ensure_ascii=ensure_ascii, sort_keys=True, indent=2).replace("\n", f"\n{pad}")


def _written(address: str, entry: Entry) -> dict[str, object]:
    try:
        return written(entry)
    except Damaged as e:
        raise Damaged(f"{address}: {e.message}", e.hint) from e
