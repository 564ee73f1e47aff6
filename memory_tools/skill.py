"""A folder for skills goes in; the skill `memory-retrieval` (SKILL.md and its pages) comes out inside it, and a person's edits stay.

Each page is handled on its own:

- absent: written;
- the same as ours: left alone;
- as an earlier `install` wrote it: upgraded;
- anything else was edited by a person: kept, and our page is put beside it as `<page>.new` for comparison.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_tools import durable, plain_files
from memory_tools.errors import InvalidInput, NotFound

NAME = "memory-retrieval"
MANIFEST = ".installed.json"  # page -> hashes of what install wrote; hidden, so that no client lists it as a page


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the installed skill. `path` is where it lies; `state` is written, upgraded, unchanged, kept or removed."""

    path: Path
    state: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Installed:
    """What `install` did. `folder` is the skill's folder; `pages` are in the order SKILL.md first, then by name."""

    folder: Path
    pages: tuple[Page, ...]

    @property
    def changed(self) -> bool:
        return any(page.state in {"written", "upgraded", "removed"} for page in self.pages)


def sources() -> Mapping[str, Path]:
    """The skill's pages, relative name -> file: from the wheel's `_skill/`, else from the checkout around an editable install."""
    package = Path(__file__).resolve().parent
    for root in (package / "_skill", package.parent):
        main = root / "SKILL.md"
        # The checkout is recognised by its own skill/ too: a SKILL.md that merely lies in site-packages is not ours.
        if main.is_file() and (root / "skill").is_dir():
            pages = sorted((root / "skill").glob("*.md"), key=lambda page: page.name)
            return {"SKILL.md": main, **{f"skill/{page.name}": page for page in pages}}
    raise NotFound(f"{package}: SKILL.md did not come with this installation", "install markdown-memory-tools again")


def install(target: Path) -> Installed:
    """Write or upgrade `target/memory-retrieval/`. Running it again changes nothing.

    target: the folder that holds skills (OpenClaw: `<workspace>/skills`, Claude Code: `~/.claude/skills`); made when missing.
    Raises InvalidInput where a file is in the way, and Busy or Forbidden from the write itself.
    """
    folder = target / NAME
    for place in (target, folder, folder / "skill"):
        if place.exists() and not place.is_dir():
            raise InvalidInput(f"{place} is a file, so the skill cannot be installed there", "name another folder, or move the file away")
    pages = sources()
    ours = {name: path.read_bytes() for name, path in pages.items()}
    known = _read_manifest(folder / MANIFEST)
    durable.make_folder(folder / "skill")
    # The hashes are written before the pages: if the process dies between the two, the next run still knows which pages are ours.
    expected = {name: sorted({*known.get(name, ()), _hash(content)}) for name, content in ours.items()}
    _write_manifest(folder / MANIFEST, {**known, **expected})
    done = [_place(folder / name, content, known.get(name, ())) for name, content in ours.items()]
    gone = sorted(set(known) - set(ours))
    done += [page for name in gone if (page := _retire(folder / name, known[name])) is not None]
    if gone:
        kept = {name: hashes for name, hashes in _read_manifest(folder / MANIFEST).items() if name not in gone or (folder / name).exists()}
        _write_manifest(folder / MANIFEST, kept)
    return Installed(folder, tuple(done))


def _place(path: Path, content: bytes, known: Sequence[str]) -> Page:
    beside = path.with_name(path.name + ".new")
    if not path.exists():
        durable.replace(path, content)
        return Page(path, "written")
    current = _hash(plain_files.read_bytes(path) or b"")
    if current == _hash(content):
        if beside.is_file():  # the person took our page over, so the copy for comparison has served
            durable.remove(beside)
        return Page(path, "unchanged")
    if current in known:
        durable.replace(path, content)
        return Page(path, "upgraded")
    if not beside.is_file() or plain_files.read_bytes(beside) != content:
        durable.replace(beside, content)
    return Page(path, "kept", f"edited by hand, so it stays as it is; the page of this version is {beside.name}")


def _retire(path: Path, known: Sequence[str]) -> Page | None:
    """A page that this version no longer has: removed if nobody edited it."""
    if not path.is_file():
        return None
    if _hash(plain_files.read_bytes(path) or b"") not in known:
        return Page(path, "kept", "edited by hand; this version no longer has the page")
    durable.remove(path)
    return Page(path, "removed")


def _hash(content: bytes) -> str:
    # Git may check pages out with CRLF; that is no edit.
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _read_manifest(path: Path) -> dict[str, list[str]]:
    """Page -> hashes. A manifest that does not parse counts as absent: then every differing page counts as edited, and nothing is lost."""
    try:
        raw = json.loads(plain_files.read_bytes(path) or b"")
    except (ValueError, RecursionError):
        return {}
    pages = raw.get("pages") if isinstance(raw, dict) else None
    if not isinstance(pages, dict):
        return {}
    # Only names that install itself could have written: a manifest from a stranger's folder must not name files to remove.
    return {
        name: [h for h in hashes if isinstance(h, str)]
        for name, hashes in pages.items()
        if isinstance(hashes, list) and (name == "SKILL.md" or re.fullmatch(r"skill/[A-Za-z0-9-]+\.md", name))
    }


def _write_manifest(path: Path, pages: Mapping[str, list[str]]) -> None:
    content = (json.dumps({"pages": dict(sorted(pages.items()))}, indent=2) + "\n").encode()
    if plain_files.read_bytes(path) != content:
        durable.replace(path, content)
