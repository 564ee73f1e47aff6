"""Reads and outcomes in, counts in utility-scores.json out; each exactly once.

A credit is written down before the sidecar is (receipts.begin), the sidecar's entries get its token, then it is ended. Whoever comes next
under the lock settles what was interrupted between: an entry that holds the token was counted, otherwise nothing was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from memory_tools import history
from memory_tools.entries import RECENT, Entry
from memory_tools.errors import InvalidInput, MemoryToolsError, NotFound
from memory_tools.history import retract
from memory_tools.recall_log import KEEP_DAYS, Log, Part, Recall, Shown
from memory_tools.receipts import Receipts
from memory_tools.reports import FeedbackReport, Finding, Recorded
from memory_tools.scores import ORPHAN_DAYS, Book, Sections, Sidecar, Updated, update
from memory_tools.settings import Settings
from memory_tools.utility import Usage, counts, record, resolve, stored_utility

_TOOLS = "memory/tools/"  # what tools taught has statistics of its own and no entry here
_WORDS = {True: "success", False: "failure", None: "unknown"}


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a receipt says of one memory: use, success or failure, how much it counted, and whether a use by reading was there before."""

    word: str
    weight: float = 1.0
    read: bool = False

    @classmethod
    def of(cls, text: str) -> _Judged:
        word, *rest = text.split()
        weight = float(rest[0]) if rest else 1.0
        return cls(word, weight, word == "use" or "read" in rest)

    @property
    def text(self) -> str:
        if self.word == "use" or self.weight == 1.0:  # nothing outweighs it, so nothing more need be known
            return self.word
        return f"{self.word} {self.weight!r}{' read' if self.read else ''}"


@dataclass(frozen=True, slots=True)
class _Step:
    """What one section gets: `before` is the state of its recall, None where the recall was not used yet."""

    section_id: str
    recall: str
    what: str
    before: str | None


@dataclass(frozen=True, slots=True)
class _Event:
    """One call: what came of which sections."""

    ids: tuple[str, ...]
    outcome: bool | None
    positive: bool
    weight: float
    id: str
    now: datetime
    sections: Sections


@dataclass(slots=True)
class _Done:
    counted: set[str]
    gone: list[str]
    warnings: list[str]
    tools: list[str]
    token: str | None = None


class Credit:
    """The sidecar and the receipts of one workspace, and the rules by which an outcome finds its memory. `inside`: as in Sidecar."""

    def __init__(self, sidecar: Path, recalls: Path, settings: Settings | None = None, *, inside: Path | None = None) -> None:
        self.sidecar = Sidecar(sidecar, inside)
        self.receipts = Receipts(recalls)
        self.settings = settings or Settings()

    def usages(self, sections: Sections) -> dict[str, Usage]:
        """Section id -> history, of the sections that have one. A file that cannot be read gives none; see `sidecar.load().problems`."""
        return self.sidecar.usages(sections)

    def shown(self, now: datetime, query: str, results: Sequence[Shown]) -> str:
        """Remember what a search showed; returns the recall's id. Raises Forbidden or Busy where it cannot be written."""
        return self.receipts.append(now, query, results)

    def recall(self, name: str, now: datetime) -> Recall:
        """A recall by its id, or the newest one as `last`. Raises NotFound."""
        found = self.receipts.load().find(name, now)
        if found is None:
            what = "no search is remembered yet" if name == "last" else f"recall {name!r} is not known"
            raise NotFound(what, f"recalls are remembered for {KEEP_DAYS} days; name the memories by their addresses instead")
        return found

    def at(self, recall: Recall, position: int) -> str:
        """The section id at a position (from 1) in a recall. Raises InvalidInput."""
        count = len(recall.shown)
        if not 1 <= position <= count:
            what = f"position {position}: recall {recall.id} showed {count} result{'' if count == 1 else 's'}"
            raise InvalidInput(what, "positions count from 1" if count else "name the memories by their addresses instead")
        return recall.shown[position - 1].section_id

    # --- use ---------------------------------------------------------------------

    def use(self, section_ids: Iterable[str], recall: str | None, now: datetime, sections: Sections) -> tuple[str, ...]:
        """Sections were read: each that a recall showed is a use with unknown outcome, once. Returns warnings; never raises for the files.

        `recall`: the one it was read for; None: the newest of the last hour that showed it and waits for an outcome.
        """
        ids = tuple(dict.fromkeys(section_ids))
        try:
            log = self.receipts.load()
            if not self._reads(log, ids, recall, now):
                return ()  # most reads follow no search: no lock, no write
            event = _Event(ids, None, False, 1.0, "", now, sections)
            return tuple(self._credit(event, lambda log: self._reads(log, ids, recall, now))[1].warnings)
        except MemoryToolsError as e:
            return (f"the use was not counted: {e.message}",)

    def _reads(self, log: Log, ids: Sequence[str], name: str | None, now: datetime) -> list[_Step]:
        steps = []
        for id in ids:
            found = log.to_use(id, now) if name is None else self.recall(name, now)
            if found is not None and found.showed(id) and (found.id, id) not in log.states:
                steps.append(_Step(id, found.id, "use", None))
        return steps

    # --- feedback ----------------------------------------------------------------

    def feedback(
        self,
        section_ids: Iterable[str],
        outcome: bool | None,
        positive: bool,
        weight: float,
        recall: str | None,
        event_id: str | None,
        now: datetime,
        sections: Sections,
    ) -> FeedbackReport:
        """What came of using these sections. A use that was counted by reading is resolved and not added.

        The same event_id, or the same recall and section again, changes nothing (but for the thumb of `positive`, and for an outcome of
        greater weight, which takes the place of a lesser one: a person's word that of a host's guess). `recall`: an id
        or `last`; one that is no longer known counts all the same. Raises InvalidInput, Damaged, Busy, Forbidden; then nothing was counted.
        """
        ids = tuple(dict.fromkeys(section_ids))
        history.record(Usage(), outcome, now, weight)  # an impossible weight is told before anything is touched
        warnings: list[str] = []
        name = self._name(recall, now, warnings)
        word = "use" if outcome is None else _WORDS[outcome]

        def steps(log: Log) -> list[_Step]:
            made = []
            for id in ids:
                found = log.to_judge(id, now) if name is None else None
                key = name if name is not None else found.id if found else ""
                before = log.states.get((key, id)) if key else None
                if before is None or (outcome is not None and (before == "use" or weight > _Judged.of(before).weight)):
                    made.append(_Step(id, key, _Judged(word, weight, before is not None and _Judged.of(before).read).text, before))
            return made

        traces = sections.traces()  # once: what this rests on may not move between the count and the answer
        sections = replace(sections, traces=lambda: traces)
        updated, done = self._credit(_Event(ids, outcome, positive, weight, event_id or "", now, sections), steps)
        warnings += done.warnings
        warnings += [f"{id}: this memory is gone and had no history; nothing was counted" for id in done.gone]
        warnings += [f"{address}: tool memories learn from their calls; nothing was counted" for address in done.tools]
        place = {t.id: t.address for t in traces if t.address not in done.tools}
        rows = [
            _recorded(place[id], updated.entries.get(id) or Entry(), word, id in done.counted, now, self.settings)
            for id in ids
            if id in place
        ]
        return FeedbackReport(tuple(rows), name, tuple(warnings))

    def _name(self, recall: str | None, now: datetime, warnings: list[str]) -> str | None:
        if recall is None:
            return None
        try:
            return self.recall(recall, now).id
        except NotFound as e:
            if recall == "last":
                raise
            warnings.append(f"{e.message}; counted without it")
            return recall

    def _credit(self, event: _Event, steps_of: Callable[[Log], list[_Step]]) -> tuple[Updated, _Done]:
        done = _Done(set(), [], [], [])

        def change(book: Book) -> None:
            log = self._settled(book, done.warnings)
            if event.id and event.id in log.events:
                return
            there = [id for id in event.ids if id in book.entries or id in book.place]
            done.gone = [id for id in event.ids if id not in there]
            here = [id for id in there if id not in book.place or not book.place[id].path.startswith(_TOOLS)]
            done.tools = [book.place[id].address for id in there if id not in here]
            steps = [s for s in steps_of(log) if s.section_id in here]
            if steps:
                parts = [Part(s.section_id, s.recall, s.what) for s in steps]
                try:
                    done.token = self.receipts.begin(event.now, event.id, parts)
                except MemoryToolsError as e:
                    done.warnings.append(f"{e.message}: counted, but the same feedback again would count again")
            for step in steps:
                entry = self._counted(book.entries.get(step.section_id, Entry()), step, event)
                book.entries[step.section_id] = replace(entry, event=done.token or entry.event)
                done.counted.add(step.section_id)
            for id in here if event.positive else ():
                thumbed = replace(book.entries.get(id, Entry()), positive_feedback=True)
                book.entries[id] = self._valued(thumbed, event.now)

        updated = update(self.sidecar, event.sections, change, event.now)
        if done.token is not None:
            self._end(done.token, True)
        return updated, done

    def _settled(self, book: Book, warnings: list[str]) -> Log:
        """The log as it is under the lock, with what a dead process left open ended one way or the other."""
        try:
            log = self.receipts.load()
        except MemoryToolsError as e:
            warnings.append(f"{e.message}: what was searched and counted before is not known")
            return Log()
        waiting = log.pending()
        if waiting:
            there = {e.event for e in (*book.before.entries.values(), *book.before.orphans.values())}
            for one in waiting:
                if not self._end(one.token, one.token in there):
                    self.receipts.forget()  # counted below for this call alone: the next one must find it open, and try again
                if one.token in there:
                    log.count(one.token)
        return log

    def _end(self, token: str, counted: bool) -> bool:
        try:
            self.receipts.end(token, counted)
        except MemoryToolsError:
            # The sidecar holds the token, so the next credit settles it; there is nothing to do or to say.
            return False
        return True

    def _counted(self, entry: Entry, step: _Step, event: _Event) -> Entry:
        usage, before = entry.usage(), None if step.before is None else _Judged.of(step.before)
        if before is not None and before.word != "use":  # a person's word after a host's guess: the guess is taken back
            helped = before.word == _WORDS[True]
            usage = retract(usage, helped, before.weight, self.settings)
            if not before.read:
                usage = replace(usage, use_count=max(usage.use_count - before.weight, 0))
            entry = replace(entry, recent=entry.recent.removesuffix("+" if helped else "-"))
        count = resolve if before is not None and before.read else record
        entry = entry.with_usage(count(usage, event.outcome, event.now, event.weight, self.settings))
        if event.outcome is not None:
            entry = replace(entry, recent=(entry.recent + ("+" if event.outcome else "-"))[-RECENT:])
        return self._valued(entry, event.now)

    def _valued(self, entry: Entry, now: datetime) -> Entry:
        return replace(entry, utility=round(stored_utility(entry.usage(), now, self.settings), 4))

    # --- check -------------------------------------------------------------------

    def findings(self) -> list[Finding]:
        """What is wrong with the scores, which orphans wait for their text, and how the receipts are. Nothing here is derived: no fix."""
        snapshot = self.sidecar.load()
        found = list(snapshot.problems)
        for address, orphan in sorted(snapshot.orphans.items()):
            uses, success, fail = counts(orphan.usage())
            since = f" since {orphan.orphaned:%Y-%m-%d}" if orphan.orphaned else ""
            message = (
                f"{address}: the history of a memory that is gone{since} ({uses:g} uses, {success:g} helped, {fail:g} did not) "
                f"is kept for {ORPHAN_DAYS} days and returns with its text"
            )
            found.append(Finding("note", "orphan", message, address.partition("#")[0]))
        try:
            broken = self.receipts.load().broken
        except MemoryToolsError as e:
            found.append(Finding("warning", "receipts", e.message))
        else:
            if broken:
                found.append(Finding("note", "receipts", f"{self.receipts.path}: {broken} half-written lines are skipped"))
        return found


def _recorded(address: str, entry: Entry, word: str, counted: bool, now: datetime, settings: Settings) -> Recorded:
    uses, success, fail = counts(entry.usage())
    outcome = "unknown" if word == "use" else word
    return Recorded(address, outcome, uses, success, fail, round(stored_utility(entry.usage(), now, settings), 4), counted)
