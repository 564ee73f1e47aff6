"""Frozen answers of Memory's verbs, for the faces to render: what was read, counted, stored, found wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory_tools.records import Skipped


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of one file. `next`: the line to go on from, or `line:character` inside a long line; None at the end."""

    path: str
    text: str
    start_line: int
    end_line: int
    total_lines: int
    next: int | str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """One memory that a feedback touched, as it stands now."""

    address: str
    outcome: str  # success | failure | unknown
    use_count: float
    success_count: float
    fail_count: float
    utility: float
    counted: bool  # False: this event was known already, nothing changed


@dataclass(frozen=True, slots=True)
class FeedbackReport:
    recorded: tuple[Recorded, ...]
    recall: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    path: str
    address: str
    start_line: int
    end_line: int
    stored: bool  # False: the same text was stored within the last 10 minutes

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.start_line}-L{self.end_line}"


@dataclass(frozen=True, slots=True)
class SyncReport:
    files: int
    sections: int
    blocks: int
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    vectors_ready: int = 0
    vectors_pending: int = 0
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    level: str  # error | warning | note
    code: str
    message: str
    path: str | None = None
    line: int | None = None
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class CheckReport:
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not any(f.level == "error" and not f.fixed for f in self.findings)


@dataclass(frozen=True, slots=True)
class Status:
    workspace: str
    index: str
    files: int
    sections: int
    blocks: int
    vectors_ready: int
    vectors_pending: int
    encoder: str
    policy: str
    sources: Mapping[str, int] = field(default_factory=dict)
    memories_with_history: int = 0
    orphans: int = 0
    pending_files: int = 0  # changed on disk since the last sync
    memory_md_chars: int | None = None
    warnings: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
