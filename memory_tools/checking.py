"""The state of a workspace in, findings and counts out: what disagrees, what needs a person, what `fix` may heal (the derived)."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from memory_tools import durable, files, freshness, postings, watch_state
from memory_tools.errors import MemoryToolsError
from memory_tools.reports import CheckReport, Finding, Status
from memory_tools.searched import searched_text

if TYPE_CHECKING:
    from memory_tools.credit import Credit
    from memory_tools.engine import Engine
    from memory_tools.index import Index

HOST_LIMIT_CHARS = 20_000  # of MEMORY.md: what OpenClaw loads when an agent starts; the rest is cut without a word
WARN_AT = 0.8
LEFT_AFTER_S = 3600.0
_TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{8}\.tmp")  # as durable.replace names them
PROBED_BLOCKS = 2_000  # whose postings are compared with their text; all of them in an ordinary workspace


def status(engine: Engine, credit: Credit) -> Status:
    """Counts as they are in the tables, and what is pending. Imports nothing heavy, changes nothing."""
    waiting = engine.waiting_files()
    index = engine.index
    counts = index.counts()
    snapshot = credit.sidecar.load()
    with_encoder = engine.config.encoder != "none"
    warnings = [*engine.problems(), *(f.message for f in _memory_md(engine)), *(f.message for f in snapshot.problems)]
    probe = ask_itself(index)
    if probe is not None:
        warnings.append(probe.message)
    degraded = engine.degraded()
    if with_encoder and counts["pending"]:
        degraded.append(f"vectors_pending:{counts['pending']}")
    if index.folder is not None:
        words, said = watch_state.told(index.folder)
        degraded += words
        warnings += said
    return Status(
        workspace=str(engine.config.workspace),
        index="in memory" if index.in_memory else str(index.folder),
        files=counts["files"],
        sections=counts["sections"],
        blocks=counts["blocks"],
        vectors_ready=counts["ready"],
        vectors_pending=counts["pending"] if with_encoder else 0,
        encoder=engine.config.encoder,
        policy=engine.config.policy,
        sources=dict(index.connection.execute("SELECT source, count(*) FROM files GROUP BY source ORDER BY source").fetchall()),
        memories_with_history=len(snapshot.entries),
        orphans=len(snapshot.orphans),
        pending_files=waiting,
        memory_md_chars=_memory_md_chars(engine),
        warnings=tuple(warnings),
        degraded=tuple(degraded),
    )


def check(engine: Engine, credit: Credit, fix: bool, of_tools: Iterable[Finding] = ()) -> CheckReport:
    """All findings, errors first. With `fix` what is derived is healed, and told as fixed. `of_tools`: those of tool memory."""
    found = list(of_tools)
    broken = _integrity(engine.index)
    if broken and fix:
        engine.rebuild(None)
        broken = [replace(f, fixed=True) for f in broken]
    found += broken
    if not broken or fix:
        waiting = engine.waiting_files()
        if waiting:
            note = Finding(
                "note",
                "stale",
                f"{waiting} {'file' if waiting == 1 else 'files'} changed since the last sync; the next search or sync takes that in",
            )
            if fix:
                engine.sync(True, None)
            found.append(replace(note, fixed=fix))
        disagreeing = _disagreements(engine)
        if disagreeing and fix:
            engine.rebuild(None)
        found += [replace(f, fixed=fix) for f in disagreeing]
        found += _files(engine)
    found += _memory_md(engine)
    found += credit.findings()
    found += _leftovers(engine, fix and credit.sidecar.load().damaged is None)
    order = {"error": 0, "warning": 1, "note": 2}
    return CheckReport(tuple(sorted(found, key=lambda f: (order[f.level], f.path or "", f.line or 0, f.code, f.message))))


def ask_itself(index: Index) -> Finding | None:
    """Does a known section find itself by its rarest word? None where it does, or where there is nothing to ask."""
    from memory_tools.tokens import tokenize

    row = index.connection.execute(
        "SELECT b.id, b.kind, s.headings, s.triggers, substr(s.text, b.first + 1, b.last - b.first), s.address"
        " FROM blocks b JOIN sections s ON s.key = b.section WHERE b.tokens > 0 ORDER BY b.id DESC LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    id, kind, headings, triggers, text, address = row
    for term in dict.fromkeys(tokenize(searched_text(kind, text, json.loads(headings), json.loads(triggers)))):
        if id not in _holders(index, term):
            return Finding(
                "error", "index_disagrees", f"{address} does not find itself by {term!r}: run `memory-tools check --fix`", address
            )
    return None


def _holders(index: Index, term: str) -> set[int]:
    return {
        base + int.from_bytes(docs[i : i + 2], "little")
        for base, docs in postings.read(index.connection, term)
        for i in range(0, len(docs), 3)
    }


def _integrity(index: Index) -> list[Finding]:
    try:
        said = [str(row[0]) for row in index.connection.execute("PRAGMA integrity_check(5)")]
    except sqlite3.DatabaseError as e:
        said = [str(e)]
    return [] if said == ["ok"] else [Finding("error", "index_damaged", f"the index is damaged: {line}") for line in said]


def _disagreements(engine: Engine) -> list[Finding]:
    """Where the index says other things than the files, or than itself."""
    index, found = engine.index, []
    scan = engine.scan()
    known = freshness.known_files(index)
    to_read = set(freshness.differences(index, scan)[0])  # edited since the last sync: that is told, and no fault of the index
    for one in scan.found:
        try:
            if one.path in known and one not in to_read and files.read(one).hash != known[one.path].hash:
                found.append(Finding("error", "index_disagrees", f"{one.path}: changed without its times or size", one.path))
        except MemoryToolsError:  # told with the files
            continue
    from memory_tools.tokens import tokenize

    lists: dict[str, set[int]] = {}
    rows = index.connection.execute(
        "SELECT b.id, b.kind, b.tokens, s.headings, s.triggers, substr(s.text, b.first + 1, b.last - b.first), s.address"
        " FROM blocks b JOIN sections s ON s.key = b.section ORDER BY b.id DESC LIMIT ?",
        (PROBED_BLOCKS,),
    )
    for id, kind, tokens, headings, triggers, text, address in rows:
        terms = Counter(tokenize(searched_text(kind, text, json.loads(headings), json.loads(triggers))))
        for term in terms:
            if term not in lists:
                lists[term] = _holders(index, term)
        if terms.total() != tokens or any(id not in lists[term] for term in terms):
            found.append(Finding("error", "index_disagrees", f"{address}: is not found by its own words", address))
    lost = index.connection.execute("SELECT count(*) FROM blocks WHERE section NOT IN (SELECT key FROM sections)").fetchone()[0]
    if lost:
        found.append(Finding("error", "index_disagrees", f"{lost} blocks belong to no section"))
    strays = index.connection.execute("SELECT count(*) FROM sections WHERE file NOT IN (SELECT id FROM files)").fetchone()[0]
    if strays:
        found.append(Finding("error", "index_disagrees", f"{strays} sections belong to no file"))
    for path in _torn(index):
        found.append(Finding("error", "index_disagrees", f"{path}: parts of it cannot be found", path))
    if not index.in_memory and index.vectors_path() is not None:
        found += _vectors(index)
    return found


def _torn(index: Index) -> list[str]:
    """Files with lines that are in no block. Nothing but blanks stands between a section's blocks."""
    torn: set[str] = set()
    key, path, rest, at = None, "", "", 0
    rows = index.connection.execute(
        "SELECT s.key, f.path, s.text, b.first, b.last FROM sections s JOIN files f ON f.id = s.file"
        " LEFT JOIN blocks b ON b.section = s.key ORDER BY s.key, b.first, b.last"
    )
    for next_key, next_path, text, first, last in rows:
        if next_key != key:
            if rest[at:].strip():
                torn.add(path)
            key, path, rest, at = next_key, next_path, text, 0
        if first is not None:
            if rest[at:first].strip():
                torn.add(path)
            at = max(at, last)
    if rest[at:].strip():
        torn.add(path)
    return sorted(torn)


def _vectors(index: Index) -> list[Finding]:
    """Rows that blocks name and the matrix does not hold."""
    path = index.vectors_path()
    most = index.connection.execute("SELECT max(row) FROM vectors").fetchone()[0]
    encoder = str(index.meta("encoder") or "")
    if path is None or most is None or "(" not in encoder:
        return []
    row_bytes = 4 + int(encoder.rpartition("(")[2].rstrip(")"))
    size = path.stat().st_size if path.exists() else 0
    if size < (int(most) + 1) * row_bytes:
        return [Finding("error", "vectors_missing", f"{path}: holds {size // row_bytes} vectors of {int(most) + 1}", None)]
    from memory_tools.vectors import Matrix

    spoilt = Matrix(path, row_bytes - 4).spoilt(int(most) + 1)
    return [Finding("error", "vectors_damaged", f"{path}: {spoilt} of {int(most) + 1} rows hold no vector", None)] if spoilt else []


def _files(engine: Engine) -> list[Finding]:
    index = engine.index
    found = [Finding("warning", "skipped", f"{s.path}: {s.reason}", s.path) for s in engine.scan().skipped]
    for path, problems in index.connection.execute("SELECT path, problems FROM files WHERE problems <> '[]' ORDER BY path").fetchall():
        found += [Finding("warning", "odd_file", f"{path}: {problem}", path) for problem in json.loads(problems)]
    # Dated notes (day > 0) may repeat headings: an agent appends to them all day.
    twins = index.connection.execute(
        "SELECT f.path, s.heading, count(*), min(s.start_line) FROM sections s JOIN files f ON f.id = s.file"
        " WHERE s.level > 0 AND f.day = 0 GROUP BY f.path, s.slug HAVING count(*) > 1 ORDER BY f.path, 4"
    )
    for path, heading, count, line in twins.fetchall():
        message = f"{path}: {count} headings {heading!r}; their addresses differ only by a number that moves when one is inserted above"
        found.append(Finding("note", "duplicate_heading", message, path, int(line)))
    return found


def _leftovers(engine: Engine, fix: bool) -> list[Finding]:
    """Temporary files of writers that were killed. Younger ones may be somebody's who is writing now, or looks at a file that was torn."""
    workspace, index = engine.config.workspace, engine.index.folder
    found: list[Finding] = []
    for folder in (workspace, *(workspace / "memory" / name for name in ("", "tools", "archive")), *([index] if index else [])):
        for path in sorted(folder.glob(".*.tmp")):
            with suppress(OSError):  # gone by now
                if not _TEMPORARY.fullmatch(path.name) or time.time() - path.lstat().st_mtime < LEFT_AFTER_S:
                    continue
                if fix:
                    durable.remove(path)
                found.append(Finding("note", "leftover", f"{path}: left by a writer that was killed", None, fixed=fix))
    return found


def _memory_md_chars(engine: Engine) -> int | None:
    row = engine.index.connection.execute(
        "SELECT chars FROM files WHERE path IN ('MEMORY.md', 'memory.md') ORDER BY path LIMIT 1"
    ).fetchone()
    return int(row[0]) if row else None


def _memory_md(engine: Engine) -> list[Finding]:
    chars = _memory_md_chars(engine)
    if chars is None or chars < WARN_AT * HOST_LIMIT_CHARS:
        return []
    share = chars / HOST_LIMIT_CHARS
    cut = " and is cut there" if chars > HOST_LIMIT_CHARS else ""
    message = (
        f"MEMORY.md has {chars:,} characters, {share:.0%} of the {HOST_LIMIT_CHARS:,} that an agent loads at start{cut}; "
        "move details to other files"
    )
    return [Finding("note", "memory_md_size", message, "MEMORY.md")]
