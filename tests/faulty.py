"""A verb that writes and the number of a step go in; the verb is failed or ended there, and what it left is held against the promises.

Promises, whatever step fails and however: notes are as before or as intended, scores and calls are those before or those after and never
fewer than acknowledged, `check` is clean or heals with `fix`, a search finds, and doing it again ends where an untouched run ends.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from memory_tools import Memory, seam, skill, workspace
from memory_tools.config import Config
from memory_tools.errors import MemoryToolsError, NotFound
from memory_tools.tool_settings import ToolSettings
from memory_tools.tool_store import ToolFolder

DEPLOY, BACKUP, PRINTER = "MEMORY.md#deploy", "MEMORY.md#backup", "MEMORY.md#old-printer"
MEMORY = """# Memory

## Deploy

- the deploy script lives in ops/deploy.sh

## Backup

- the database is copied to the cellar at three in the morning

## Old printer

- the printer in room four jams on thick paper
"""
NOTES = {
    "MEMORY.md": MEMORY,
    "memory/2026-03-05.md": "# 2026-03-05\n\n## 14:05\n\n- rotated the staging certificate\n",
    "knowledge/ports.md": "# Ports\n\nThe metrics endpoint listens on port 9464.\n",
}
SCORES = {
    DEPLOY: {"use_count": 5, "success_count": 4, "last_used": "2026-03-05T11:00:00Z", "utility": 0.85},
    PRINTER: {"use_count": 6, "success_count": 0, "last_used": "2024-01-01T00:00:00Z", "edited": "2024-01-01T00:00:00Z", "utility": 0.0},
}
ASKED = "which port do the metrics listen on"  # answered by knowledge/ports.md, which no verb touches
ANSWER = "knowledge/ports.md#ports"

Counts = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Verb:
    """`act` opens what it needs, does the verb and closes. `kinds`: the steps that must have been failed, or the seam is not passed."""

    name: str
    act: Callable[[Path], None]
    kinds: tuple[str, ...]
    prepare: Callable[[Path], object] = lambda root: None
    encoder: str = "none"
    appends: bool = False  # a kill in the middle of its write leaves the beginning of what it appends


@dataclass(frozen=True, slots=True)
class Mode:
    """How a step fails. `stays`: so do all later ones; `torn`: a write gets half of its bytes out first; `ends`: the process is killed."""

    name: str
    number: int = errno.ENOSPC
    stays: bool = False
    torn: bool = False
    ends: bool = False


MODES = (
    Mode("disk full once"),
    Mode("disk stays full", stays=True, torn=True),
    Mode("broken disk", errno.EIO),
    Mode("no permission", errno.EACCES),
    Mode("killed", ends=True),
    Mode("killed in the middle of a write", ends=True, torn=True),
)

# What SQLite says where the system says that.
_SQLITE = {
    errno.ENOSPC: "database or disk is full",
    errno.EIO: "disk I/O error",
    errno.EACCES: "attempt to write a readonly database",
    errno.EROFS: "attempt to write a readonly database",
}


@dataclass(slots=True)
class State:
    """What must not be lost."""

    notes: dict[str, bytes]
    counts: dict[str, tuple[float, float]]
    calls: list[str]
    summarized: bool
    others: dict[str, bytes] = field(default_factory=dict)  # pages of the skill, merged scores


def opened(root: Path, encoder: str = "none") -> Memory:
    return Memory(config=Config(root, encoder=encoder))


def call(n: int) -> dict[str, object]:
    return {"tool_name": "web_search", "input": {"n": n}, "output": f"o{n}", "create_time": f"2026-03-05 14:00:{n:02d}"}


def make(root: Path) -> None:
    """A small workspace with notes, scores, an index and the calls of one tool."""
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="")
    (root / "memory" / "utility-scores.json").write_text(json.dumps(SCORES), encoding="utf-8")
    with opened(root) as memory:
        memory.sync()
        memory.record_tool_calls([call(n) for n in range(3)])


# --- the verbs --------------------------------------------------------------------------------


def _memory(act: Callable[[Memory], object], encoder: str = "none") -> Callable[[Path], None]:
    def run(root: Path) -> None:
        with opened(root, encoder) as memory:
            act(memory)

    return run


def _search(root: Path) -> None:
    with opened(root) as memory:
        assert memory.search("where is the database copied to").recall


def _edit(root: Path) -> None:
    note = root / "memory" / "2026-03-05.md"
    note.write_text(note.read_text(encoding="utf-8") + "\n## 15:10\n\n- the staging domain moved\n", encoding="utf-8", newline="")
    (root / "knowledge" / "new.md").write_text("# New\n\nA page of its own.\n", encoding="utf-8")
    (root / "memory" / "utility-scores.json").write_text(json.dumps(SCORES | {"MEMORY.md#gone": SCORES[DEPLOY]}), encoding="utf-8")


def _sides(root: Path) -> None:
    folder = root / "merge"
    folder.mkdir()
    for name, uses in (("base", 5), ("ours", 7), ("theirs", 6)):
        entry = {**SCORES[DEPLOY], "use_count": uses, "success_count": uses - 1}
        (folder / f"{name}.json").write_text(json.dumps({DEPLOY: entry}), encoding="utf-8")


def _merge(memory: Memory) -> object:
    base, ours, theirs = (memory.workspace / "merge" / f"{n}.json" for n in ("base", "ours", "theirs"))
    if json.loads(ours.read_text(encoding="utf-8"))[DEPLOY]["use_count"] == 8:
        return None  # done before, and only the answer was lost: merged again, theirs would be added again, as with any merge of files
    return memory.merge_scores(base, ours, theirs)


def _init(root: Path) -> None:
    workspace.init(root / "fresh")


def _older_skill(root: Path) -> None:
    """A page as an earlier version installed it, one that a person edited, and one that is no longer there."""
    skill.install(root / "skills")
    folder = root / "skills" / skill.NAME
    manifest = json.loads((folder / skill.MANIFEST).read_text(encoding="utf-8"))
    (folder / "SKILL.md").write_text("older\n", encoding="utf-8")
    manifest["pages"]["SKILL.md"] = [skill._hash(b"older\n")]
    (folder / "skill" / "gone.md").write_text("gone\n", encoding="utf-8")
    manifest["pages"]["skill/gone.md"] = [skill._hash(b"gone\n")]
    next(p for p in sorted((folder / "skill").glob("*.md")) if p.name != "gone.md").unlink()
    (folder / skill.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


def _all_moved(memory: Memory) -> object:
    done = memory.archive(yes=True)
    for one in done.kept:  # a refused move is told as kept, with the reason
        raise MemoryToolsError(one.reason)
    return done


def _archived(root: Path) -> None:
    _memory(_all_moved)(root)


def _restored(memory: Memory) -> object:
    try:
        return memory.restore(PRINTER)
    except NotFound:
        if "jams on thick paper" not in memory.get(PRINTER).text:
            raise
        return memory.recalculate()  # done before, and only the answer was lost


def _read(memory: Memory) -> object:
    excerpt = memory.get(BACKUP)
    for note in excerpt.notes:  # the text comes all the same; that the use is not counted is told
        if "not counted" in note:
            raise MemoryToolsError(note)
    return excerpt


def _summarized(memory: Memory) -> object:
    report = memory.summarize_tools("web_search")
    for failed in report.failed:
        raise MemoryToolsError(failed.reason)
    return report


_WRITE = ("open", "write", "fsync", "replace")

VERBS = (
    Verb("feedback", _memory(lambda m: m.feedback([DEPLOY, BACKUP], event_id="e1")), (*_WRITE, "sqlite")),
    Verb("get after a recall", _memory(_read), (*_WRITE, "sqlite"), _search),
    Verb("search", _memory(lambda m: m.search(ASKED)), ("open", "write", "sqlite")),
    Verb("remember", _memory(lambda m: m.remember("the cat eats at six", "Cat", "e1")), ("open", "write", "fsync", "sqlite"), appends=True),
    Verb("archive", _memory(_all_moved), (*_WRITE, "mkdir", "sqlite")),
    Verb("restore", _memory(_restored), (*_WRITE, "unlink", "sqlite"), _archived),
    Verb("tool record", _memory(lambda m: m.record_tool_calls([call(n) for n in range(3, 6)])), _WRITE, appends=True),
    Verb("tool summarize", _memory(_summarized), _WRITE),
    Verb("sync", _memory(lambda m: m.sync()), ("open", "sqlite"), _edit),
    Verb("sync with vectors", _memory(lambda m: m.sync(), "default"), ("open", "write", "fsync", "sqlite"), _edit, "default"),
    Verb("first sync", _memory(lambda m: m.sync()), (*_WRITE, "mkdir", "sqlite"), lambda root: shutil.rmtree(root / ".memory-tools")),
    Verb("rebuild", _memory(lambda m: m.rebuild()), (*_WRITE, "unlink", "sqlite"), _edit),
    Verb("rebuild with vectors", _memory(lambda m: m.rebuild(), "default"), (*_WRITE, "unlink", "sqlite"), _edit, "default"),
    Verb("recalculate", _memory(lambda m: m.recalculate()), (*_WRITE, "sqlite"), _edit),
    Verb("scores merge", _memory(_merge), _WRITE, _sides),
    Verb("skill install", lambda root: void(skill.install(root / "skills")), (*_WRITE, "mkdir")),
    Verb("skill upgrade", lambda root: void(skill.install(root / "skills")), (*_WRITE, "unlink"), _older_skill),
    Verb("init", _init, (*_WRITE, "mkdir")),
)


def void(value: object) -> None:
    """For a verb whose answer does not matter here."""


def copied(made: Path, root: Path) -> Path:
    """The workspace in another place with its index in use: one that came with a copy is not opened, and so the pointer is corrected."""
    shutil.copytree(made, root, symlinks=True)
    pointer = root / ".memory-tools" / "current"
    if pointer.exists():
        number, _, _ = pointer.read_text(encoding="ascii").partition(" ")
        pointer.write_text(f"{int(number)} {(pointer.parent / f'index-{int(number)}.db').stat().st_ino}\n", encoding="ascii")
    return root


# --- failing a step -----------------------------------------------------------------------------


class Fault:
    """Counts the steps and fails the n-th (from 1); `hit` is its kind, "" while it was not reached."""

    def __init__(self, n: int, mode: Mode) -> None:
        self.n, self.mode = n, mode
        self.seen = 0
        self.hit = ""
        self._in_memory = False

    def __call__(self, kind: str, target: str) -> None:
        if kind == "open":
            self._in_memory = target == "None" or (self._in_memory and not target.endswith(".db"))
        if self._in_memory and (kind == "sqlite" or target == "None"):  # no disk can refuse that
            return
        self.seen += 1
        if self.seen < self.n or (self.seen > self.n and not self.mode.stays):
            return
        self.hit = self.hit or kind
        if self.mode.torn and kind == "write":
            _tear(self)
            return
        self.fail(kind, target)

    def fail(self, kind: str, target: str) -> None:
        """Does not return."""
        if self.mode.ends:
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "sqlite":
            raise sqlite3.OperationalError(_SQLITE[self.mode.number])
        raise OSError(self.mode.number, os.strerror(self.mode.number), target)


_write = os.write


def _tear(fault: Fault) -> None:
    """The next os.write gets half of its bytes out and no more, as a disk does that is full by then."""

    def half(fd: int, content: bytes | memoryview) -> int:
        done = _write(fd, bytes(content)[: len(content) // 2])
        os.write = full if not fault.mode.ends else _write
        if fault.mode.ends:
            fault.fail("write", "")
        return done

    def full(fd: int, content: bytes | memoryview) -> int:
        os.write = _write
        raise OSError(fault.mode.number, os.strerror(fault.mode.number))

    os.write = half  # type: ignore[assignment]


@contextmanager
def failing(fault: Callable[[str, str], None]) -> Iterator[None]:
    seam.on_step = fault
    try:
        yield
    finally:
        seam.on_step = None
        os.write = _write


def attempt(verb: Verb, root: Path, fault: Fault) -> bool:
    """Do the verb with the fault; whether it was acknowledged. Anything but an error of ours is a traceback, and comes through."""
    if not fault.mode.ends:
        with failing(fault):
            try:
                verb.act(root)
            except MemoryToolsError:
                return False
        return True
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with failing(fault):
                verb.act(root)
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    assert os.WIFSIGNALED(ended) or os.WEXITSTATUS(ended) == 0, f"{verb.name}: an error at step {fault.n}"
    fault.hit = "killed" if os.WIFSIGNALED(ended) else ""
    return not fault.hit


# --- what is there -------------------------------------------------------------------------------


def look(root: Path) -> State:
    """Everything of record, read from the files alone."""
    notes: dict[str, bytes] = {}
    for path in sorted([*root.glob("*.md"), *root.glob("memory/**/*.md"), *root.glob("knowledge/*.md")]):
        name = path.relative_to(root).as_posix()
        if not name.startswith("memory/tools/"):
            notes[name] = path.read_bytes()
    sidecar = json.loads((root / "memory" / "utility-scores.json").read_text(encoding="utf-8"))
    entries = {**sidecar.get("~orphans", {}), **{k: v for k, v in sidecar.items() if k != "~orphans"}}
    counts = {address: (entry["use_count"], entry["success_count"]) for address, entry in entries.items()}
    known = ToolFolder(root, "default", ToolSettings()).load("web_search").calls.calls  # opens no index
    others = {
        p.relative_to(root).as_posix(): p.read_bytes()
        for folder in ("skills", "fresh", "merge")
        for p in sorted((root / folder).rglob("*"))
        if p.is_file() and not p.name.endswith((".lock", ".tmp"))
    }
    return State(notes, counts, [c.output for c in known], any(c.is_summarized for c in known), others)


def hold(verb: Verb, root: Path, before: State, intended: State, acknowledged: bool, torn: bool = False) -> None:
    """Nothing is lost, torn or made up; and what was acknowledged is there."""
    now = look(root)
    for path in {*before.notes, *intended.notes, *now.notes}:
        allowed = [s.notes.get(path) for s in (before, intended)]
        if "/archive/" in path:  # holds times, so its bytes differ from run to run
            assert path not in now.notes or b"jams on thick paper" in now.notes[path]
        else:
            # A new note of which nothing was written may be there, empty: to remove it could take what somebody else put there meanwhile.
            allowed += [b""] if before.notes.get(path) is None else []
            if torn:  # the beginning of an entry that was never acknowledged
                allowed += [now.notes[path]] if (intended.notes.get(path) or b"").startswith(now.notes.get(path, b"-")) else []
            assert now.notes.get(path) in allowed, f"{path} is neither as before nor as intended"
    text = b"".join(now.notes.values())
    assert b"jams on thick paper" in text
    assert now.calls in (before.calls, intended.calls) or (torn and now.calls == intended.calls[: len(now.calls)]), now.calls
    assert now.calls[: len(before.calls)] == before.calls
    for address in {*before.counts, *intended.counts, *now.counts}:
        assert now.counts.get(address) in (before.counts.get(address), intended.counts.get(address)), address
    for path in {*before.others, *intended.others, *now.others}:
        if path.endswith(skill.MANIFEST):  # written before the pages and after
            assert path not in now.others or json.loads(now.others[path])
            continue
        assert now.others.get(path) in (before.others.get(path), intended.others.get(path)), path
    if acknowledged:
        if now.counts != intended.counts and verb.name in ("archive", "restore"):
            with opened(root) as memory:
                memory.recalculate()  # the index was busy: the history follows its section with the next write of the scores
        assert_same(look(root), intended)
    with opened(root, verb.encoder) as memory:
        report = memory.search(ASKED)
        assert report.results, report.warnings
        assert report.results[0].address == ANSWER
        memory.status()
        if not memory.check().ok:
            memory.check(fix=True)
            again = memory.check()
            assert again.ok, again.findings


def assert_same(now: State, intended: State) -> None:
    assert {p: b for p, b in now.notes.items() if "/archive/" not in p} == {p: b for p, b in intended.notes.items() if "/archive/" not in p}
    assert {p for p in now.notes if "/archive/" in p} == {p for p in intended.notes if "/archive/" in p}
    assert now.counts == intended.counts
    assert (now.calls, now.summarized) == (intended.calls, intended.summarized)
    assert now.others == intended.others


def every_step(verb: Verb, mode: Mode, folder: Path, pick: Callable[[list[str]], list[int]] | None = None) -> Counter[str]:
    """Fail each step of a verb in turn until a run passes untouched (or those that `pick` takes); how often each kind was failed.

    `pick`: the kinds of the steps in order -> numbers of steps from 1.
    """
    template = folder / "template"
    make(template)
    verb.prepare(template)
    before = look(template)
    clean = folder / "clean"
    copied(template, clean)
    order: list[str] = []
    with failing(lambda kind, target: order.append(kind) if target != "None" else None):
        verb.act(clean)
    intended = look(clean)
    hits: Counter[str] = Counter()
    for n in pick(order) if pick else itertools.count(1):
        root = folder / "run"
        copied(template, root)
        fault = Fault(n, mode)
        acknowledged = attempt(verb, root, fault)
        if not fault.hit:
            hold(verb, root, before, intended, True)
            break
        if mode.ends:  # the child took its count along
            fault.hit = order[n - 1] if n <= len(order) else "late"
        hits[fault.hit] += 1
        try:
            torn = mode.ends and mode.torn and verb.appends and fault.hit == "write"
            hold(verb, root, before, intended, acknowledged, torn)
            if not acknowledged:
                rest = {p: b for p, b in look(root).notes.items() if torn and b not in (before.notes.get(p), intended.notes.get(p))}
                verb.act(root)
                _whole(look(root), intended, rest)
        except BaseException as e:
            e.add_note(f"{verb.name}, {mode.name}: step {n}, {fault.hit}, {'acknowledged' if acknowledged else 'refused'}")
            raise
        shutil.rmtree(root)
    return hits


def first_of_each_kind(order: list[str]) -> list[int]:
    return sorted(order.index(kind) + 1 for kind in set(order))


def last_of_each_kind(order: list[str]) -> list[int]:
    return sorted(len(order) - order[::-1].index(kind) for kind in set(order))


def every_third(start: int) -> Callable[[list[str]], list[int]]:
    return lambda order: list(range(1 + start % 3, len(order) + 1, 3))


def _whole(now: State, intended: State, rest: Mapping[str, bytes]) -> None:
    """As intended; in a note whose append was cut in the middle, the entry stands whole behind the `rest` of the first attempt."""
    for path, begun in rest.items():
        if now.notes[path] != intended.notes[path] and now.notes[path].startswith(begun):
            assert now.notes[path].rstrip().endswith(intended.notes[path].strip())
            intended = replace(intended, notes={**intended.notes, path: now.notes[path]})
    assert_same(now, intended)
