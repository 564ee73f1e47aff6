"""A folder to a workspace (`init`), and a text to an entry of today's note (`remember`). Notes are only ever appended to.

What was remembered lately is kept beside the notes, in `memory/.remembered.jsonl`, so that a retry stores nothing twice. Its line is
written before the note, and believed only where the note holds the text: a process that dies between the two has stored nothing yet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from memory_tools.errors import Forbidden, InvalidInput, NotFound
from memory_tools.reports import Remembered

JOURNAL = ".remembered.jsonl"
JOURNAL_KEPT = 1_000  # entries; the journal is cut back to these when it holds twice as many
REPEAT_WINDOW = timedelta(minutes=10)
MAX_EVENT_CHARS = 200

_NOTE = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md")
_IGNORED = (".memory-tools/", ".*.lock", "memory/.remembered.jsonl")


@dataclass(frozen=True, slots=True)
class Initialized:
    """What `init` did: names relative to the workspace."""

    workspace: str
    created: tuple[str, ...]
    kept: tuple[str, ...]
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of the journal. `size`: bytes of the note before the text was appended."""

    time: datetime
    event: str | None
    hash: str
    path: str
    size: int


def init(workspace: Path) -> Initialized:
    """Make MEMORY.md, memory/ and .gitignore where they are missing. What exists is not changed. Raises InvalidInput, Forbidden, Busy."""
    from memory_tools import durable
    from memory_tools.plain_files import check_inside

    if workspace.exists() and not workspace.is_dir():
        raise InvalidInput(f"{workspace} is a file, not a folder", "name a folder with --workspace")
    notes = workspace / "memory"
    check_inside(workspace, notes)
    created: list[str] = []
    kept: list[str] = []
    (kept if notes.is_dir() else created).append("memory/")
    durable.make_folder(notes)
    ignore = workspace / ".gitignore"
    lines = ("# memory-tools: locks and what is derived from the notes", *_IGNORED)
    with durable.lock(notes / JOURNAL):  # one lock for all of it: a lock file beside each would stay behind
        # memory.md is the same file as MEMORY.md on some systems and its accepted sister on the others.
        for names, content in ((("MEMORY.md", "memory.md"), "# Memory\n"), ((".gitignore",), "\n".join(lines) + "\n")):
            present = next((name for name in names if (workspace / name).exists() or (workspace / name).is_symlink()), None)
            if present is None:
                durable.replace(workspace / names[0], content.encode())
            (created if present is None else kept).append(present or names[0])
    hints: list[str] = []
    if ".gitignore" in kept and ignore.is_file() and not ignore.is_symlink():
        known = {line.strip().rstrip("/") for line in ignore.read_text(encoding="utf-8", errors="replace").split("\n")}
        hints = [f".gitignore: add {line}" for line in _IGNORED if line.rstrip("/") not in known]
    return Initialized(str(workspace), tuple(created), tuple(kept), tuple(hints))


def remember(workspace: Path, text: str, heading: str | None, event_id: str | None, now: datetime) -> Remembered:
    """Append `text` to `memory/YYYY-MM-DD.md` of `now`, an aware time in the user's zone, under `heading` or `HH:MM`.

    The text stays as it is, headings in it too; only a code fence or comment that it leaves open is closed, for the next entry's sake.
    The same `event_id`, or the same text within 10 minutes, stores nothing and tells where it stands. The lines are those from the
    entry's heading to the text's end. Raises InvalidInput, TooLarge, NotFound, Forbidden, Busy; then nothing was stored.
    """
    import hashlib

    from memory_tools import durable, note_entry

    body, title = note_entry.body_of(text), note_entry.title_of(heading, now)
    note_entry.require_text("event id", event_id or "", MAX_EVENT_CHARS)
    digest = hashlib.sha256(body.encode()).hexdigest()[:32]
    path = f"memory/{now:%Y-%m-%d}.md"
    note, journal = _contained(workspace, path), _contained(workspace, f"memory/{JOURNAL}")
    with durable.lock(journal):
        known = _entries(journal)
        repeated = _repeated(workspace, known, body, digest, event_id, now)
        if repeated is not None:
            if event_id and not any(entry.event == event_id for entry in known):
                # The same text under a new event: a retry of that event must find it too, however late it comes.
                _note_down(journal, known, _Entry(now, event_id, digest, repeated.path, 0))
            return repeated
        with durable.lock(note):
            before = note.read_bytes() if note.exists() else b""
            if b"\0" in before:
                raise Forbidden(f"{path} is not UTF-8 text, so nothing is added to it", "save it as UTF-8, or move it away")
            _note_down(journal, known, _Entry(now, event_id or None, digest, path, len(before)))
            durable.append_unlocked(note, note_entry.compose(path, _decoded(before), title, body).encode())
            place = note_entry.locate(path, _decoded(note.read_bytes()), body, _decoded(before))
    assert place is not None  # appended just now, under the lock
    return Remembered(place.path, place.address, place.start_line, place.end_line, stored=True)


def _contained(workspace: Path, path: str) -> Path:
    """The file of a note, which may be missing yet but may not lead out of the workspace."""
    if not workspace.exists():
        raise NotFound(f"workspace {workspace} does not exist", f"make one: memory-tools --workspace {workspace} init")
    if not workspace.is_dir():
        raise InvalidInput(f"{workspace} is a file, not a workspace folder", "name a folder with --workspace")
    target = workspace / path
    folder = target.parent
    if folder.exists() and not folder.is_dir():
        raise Forbidden(f"{folder} is a file, but daily notes need a folder of that name", "move it away")
    real = target.resolve()
    if not real.is_relative_to(workspace.resolve()):
        raise Forbidden(f"{path} leads out of the workspace, to {real}", "notes are written inside the workspace only")
    if target.is_symlink():  # to a file of another kind, for example .git/config
        raise Forbidden(f"{path} is a symbolic link", "put the file itself in its place")
    if real.exists() and not real.is_file():
        raise Forbidden(f"{path} is not a plain file", "move it away")
    return real


def _decoded(content: bytes) -> str:
    return content.decode("utf-8-sig", errors="replace")


def _repeated(workspace: Path, known: Sequence[_Entry], body: str, digest: str, event_id: str | None, now: datetime) -> Remembered | None:
    """Where this text already stands, if this is a repetition."""
    from memory_tools import note_entry

    same = [entry for entry in known if event_id and entry.event == event_id]
    same += [entry for entry in known if entry.hash == digest and abs(now - entry.time) < REPEAT_WINDOW]
    for entry in same:
        note = _contained(workspace, entry.path)
        content = note.read_bytes() if note.exists() else b""
        if len(content) <= entry.size:
            continue  # written down, then the process died before the note
        now_there, before = _decoded(content), _decoded(content[: entry.size])
        if entry.hash == digest:
            place = note_entry.locate(entry.path, now_there, body, before)
        else:  # another text under the same event: it is still that event, and what was stored first stands
            place = note_entry.locate_after(entry.path, now_there, before)
        if place is not None:
            return Remembered(place.path, place.address, place.start_line, place.end_line, stored=False)
    return None


def _entries(journal: Path) -> list[_Entry]:
    """The journal, newest first. A line that does not parse (torn, or by another hand) is no entry: at worst a retry is stored twice."""
    try:
        lines = journal.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
    return [entry for line in reversed(lines) if (entry := _parsed(line)) is not None]


def _parsed(line: str) -> _Entry | None:
    try:
        row = json.loads(line)
        entry = _Entry(datetime.fromisoformat(row["time"]), row["event"], str(row["hash"]), row["path"], int(row["size"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    # A cloned workspace brings its own journal, which must not name other files.
    return entry if entry.time.tzinfo is not None and isinstance(entry.path, str) and _NOTE.fullmatch(entry.path) else None


def _note_down(journal: Path, known: Sequence[_Entry], entry: _Entry) -> None:
    from memory_tools import durable

    if len(known) >= 2 * JOURNAL_KEPT:
        durable.replace(journal, b"".join(_line(one) for one in reversed(known[:JOURNAL_KEPT])))
    durable.append_unlocked(journal, _line(entry))


def _line(entry: _Entry) -> bytes:
    row = {"time": entry.time.isoformat(), "event": entry.event, "hash": entry.hash, "path": entry.path, "size": entry.size}
    return (json.dumps(row, ensure_ascii=False) + "\n").encode()
