"""Frozen values that pass between the stages: what each stage takes in and hands on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

# --- words of the user's ----------------------------------------------------

POLICIES = ("balanced", "seed", "memrl", "relevance")
OUTCOMES: Mapping[str, bool | None] = {"success": True, "failure": False, "unknown": None}

# --- files -> sections -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stat:
    """What tells that a file changed without reading it. Times in nanoseconds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, state: os.stat_result) -> Stat:
        return cls(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)

    def is_of(self, state: os.stat_result) -> bool:
        return (
            self.mtime_ns == state.st_mtime_ns
            and self.size == state.st_size
            and self.ctime_ns == state.st_ctime_ns
            and self.inode == state.st_ino
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A memory file on disk. `path` is relative to the workspace with `/`, or `@name/...` for an extra root."""

    path: str
    real: str  # its real path; a plain string, since a Path costs as much as looking at the file
    source: str  # memory | knowledge | tools | extra
    stat: Stat


@dataclass(frozen=True, slots=True)
class Known:
    """A file as the index has it. `read_ns`: when it was read, nanoseconds since 1970."""

    id: int
    stat: Stat
    hash: str
    read_ns: int


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that was left out, with the reason. `keep`: it may still be there (permission), so what is known of it stays."""

    path: str
    reason: str
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    found: tuple[Found, ...]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A file's decoded text (no BOM, line endings as they are), the hash of its bytes, and what was odd about it."""

    text: str
    hash: str
    stat: Stat
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """The smallest retrievable piece of a section. `text == document[start:end]`; lines are 1-based and inclusive."""

    start_line: int
    end_line: int
    start: int
    end: int
    text: str
    kind: str  # heading | item | paragraph | table | code | html


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text under it up to the next heading of any level. The lead section has level 0 and the path as its address."""

    address: str
    path: str
    slug: str  # without the repeat's suffix; "" for the lead section
    heading: str  # inline markup reduced to its text; "" for the lead section
    headings: tuple[str, ...]  # the path of headings down to this one
    level: int
    start_line: int
    end_line: int  # last line before the next heading, or the file's last line
    start: int
    end: int  # character offsets of the same range
    blocks: tuple[Block, ...]  # the heading (if any) first, then the content; together they hold every non-blank line
    importance: float | None = None
    triggers: tuple[str, ...] = ()
    project: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    path: str
    sections: tuple[Section, ...]
    front_matter: Mapping[str, object]
    front_matter_end: int  # last line of the front matter, 0 without
    total_lines: int
    problems: tuple[str, ...] = ()


# --- identity ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of one section to find it again after an edit."""

    id: str  # stable section id; "" where none was given yet
    address: str
    path: str
    slug: str
    heading: str
    order: int  # place in the file, from 0
    body: str  # hash of the normalised body, hex
    sketch: bytes  # MinHash of the body's NFKC character 3-grams
    size: int  # characters of the normalised body
    edited: datetime | None = None  # when this body was first seen


# --- results -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that the semantic stage found: contiguous lines of one section."""

    section_id: str
    address: str
    path: str
    start_line: int
    end_line: int
    snippet: str
    headings: tuple[str, ...]
    relevance: float  # calibrated, [0, 1]
    source: str
    reasons: tuple[str, ...] = ()  # what matched, for `why`
    similar: int = 0  # near-duplicates folded into this one
    differs: tuple[str, ...] = ()  # citations of older memories that say otherwise
    edited: datetime | None = None  # when the section's body was first seen


@dataclass(frozen=True, slots=True)
class Result:
    """A passage after the utility stage. Several results may share a section and then share its history."""

    address: str
    path: str
    start_line: int
    end_line: int
    snippet: str
    headings: tuple[str, ...]
    source: str
    score: float  # the policy's ordering value, [0, 1]
    relevance: float
    recency: float
    success_rate: float | None
    use_count: float
    last_used: datetime | None
    utility: float
    why: str
    similar: int = 0
    differs: tuple[str, ...] = ()
    explain: Mapping[str, object] | None = None

    @property
    def content(self) -> str:
        return self.snippet

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.start_line}-L{self.end_line}"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A candidate that was not shown, and why not (search --explain)."""

    address: str
    citation: str
    relevance: float
    utility: float
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to one search. Iterating it iterates the results, best first."""

    query: str
    policy: str
    results: tuple[Result, ...]
    recall: str | None
    broadened: bool = False
    warnings: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> Result:
        return self.results[index]
