"""One question over one state of the index: candidates by meaning, then utility, the fallbacks, and what to say about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_tools import questions, utility
from memory_tools.ask import Ask
from memory_tools.history import running_q
from memory_tools.records import Candidate, Dropped, Result

if TYPE_CHECKING:
    from memory_tools.corpus import Reader
    from memory_tools.engine import Meaning
    from memory_tools.search import Floats, Query, Scored

REACH = 60  # passages of stage 1 beyond those asked for: pinned ones further down, places of muted ones, and what `explain` tells of
SPARE = 8  # the same where there are pages of tools, of which an answer shows one
UsageOf = Callable[[Candidate], utility.Usage]
TOOL_PAGES = "memory/tools/"  # pages of tool memory: at most one of them in an answer, with the tool's own success rate
NOTHING = "No relevant memory found"


@dataclass(frozen=True, slots=True)
class Answer:
    results: tuple[Result, ...]
    shown: tuple[Candidate, ...]  # of the same length and order
    broadened: bool
    warnings: tuple[str, ...]
    dropped: tuple[Dropped, ...]


def read(reader: Reader, ask: Ask) -> Query:
    """What the question asks of this corpus; its `wordings` (and the context) are what is to be encoded."""
    from memory_tools import search

    return search.read(ask.phrasings, ask.context, ask.now, reader.corpus, reader.postings)


def answer(
    reader: Reader,
    ask: Ask,
    question: Query,
    meaning: Meaning | None,
    usages: Mapping[str, utility.Usage],
    tool_usage: Callable[[str], utility.Usage],
    settings: utility.Settings,
) -> Answer:
    """Rank what the reader holds. `meaning`: the question's wordings and, last, the context if any, encoded; None without an encoder."""
    of_tools: dict[str, utility.Usage] = {}

    def usage_of(c: Candidate) -> utility.Usage:
        if not c.path.startswith(TOOL_PAGES):
            return usages.get(c.section_id) or utility.Usage(edited=c.edited)
        if c.path not in of_tools:
            of_tools[c.path] = replace(tool_usage(c.path), edited=c.edited)
        return of_tools[c.path]

    # A policy that re-orders needs the whole pool; what is pinned may be further down; what is muted, and a second hit on the tools, gives
    # up its place.
    reach = ask.max_results if ask.policy == "relevance" else max(ask.max_results, settings.pool)
    reach += REACH if ask.explain or any(u.pinned or u.muted for u in usages.values()) else SPARE if reader.holds_tools else 0
    scored = _score(reader, ask, question, meaning)
    found = _candidates(reader, scored, ask.min_score, reach)
    broadened, warnings = False, []
    if not found and not ask.strict:
        found = _candidates(reader, scored, ask.min_score / 2, reach)
        broadened = bool(found)
    if not found:
        reason = f"nothing reaches min_score {ask.min_score:g}" + ("" if ask.strict else ", nor half of it")
        if not (reader.corpus.allowed & ~reader.corpus.heading).any():
            reason = "the workspace holds no memory yet"
        return Answer((), (), False, (f"{NOTHING} ({reason})",), ())
    ranked = _rank(found, ask, usage_of, settings)
    kept = [r for r in ranked if r.kept]
    if not kept and not ask.strict:
        lower = max(settings.utility_threshold - 0.2, 0.0)
        again = _rank(found, ask, usage_of, replace(settings, utility_threshold=lower))
        kept = [r for r in again if r.kept] or [r for r in again if not usage_of(found[int(r.address)]).muted][:1]
        if kept:
            used = f"utility threshold lowered from {settings.utility_threshold:g} to {lower:g}"
            warnings.append(f"All matches were below the utility threshold; {used}. Consider writing a new, better entry.")
    if not kept:
        warnings.append(f"{NOTHING} (all {len(found)} matches are muted or below the utility threshold {settings.utility_threshold:g})")
    if kept and not usages and ask.policy in ("seed", "balanced"):
        warnings.append("No utility history yet: ranked by relevance and recency. Report outcomes with `feedback` and it will learn.")
    order = _fit([(r, found[int(r.address)]) for r in kept[: ask.max_results]], ask.max_chars)
    results = tuple(_result(r, c, usage_of(c), ask, settings) for r, c in order)
    chosen = {r.address for r, _ in order}
    dropped = (
        tuple(_dropped(r, found[int(r.address)], usage_of, ask, settings) for r in ranked if r.address not in chosen) if ask.explain else ()
    )
    return Answer(results, tuple(c for _, c in order), broadened, tuple(warnings), dropped)


# --- stage 1 --------------------------------------------------------------------


def _score(reader: Reader, ask: Ask, question: Query, meaning: Meaning | None) -> Scored:
    from memory_tools import calibration, search

    count = len(ask.phrasings)
    cosines: list[Floats | None] = [None] * (count + 1)
    if meaning is not None:
        cosines[: len(meaning.vectors)] = [reader.cosines(v) for v in meaning.vectors]
    known = meaning is not None and any(c is not None for c in cosines[:count])
    scale = calibration.for_encoder(meaning.encoder, meaning.scale) if meaning is not None and known else calibration.for_encoder(None)
    return search.score(reader.corpus, reader.postings, question, cosines[:count], cosines[count] if ask.context else None, scale)


def _candidates(reader: Reader, scored: Scored, least: float, reach: int) -> list[Candidate]:
    from memory_tools import passages

    if not len(reader.corpus):
        return []
    picked = passages.pick(reader.corpus, scored, limit=reach, min_score=least, text=reader.text, likeness=reader.likeness)
    found: list[Candidate] = []
    tool_seen, ceiling = False, 1.0
    for passage in picked:
        candidate = _candidate(reader, passage)
        if candidate.path.startswith(TOOL_PAGES):
            if tool_seen:
                continue
            tool_seen = True
        # Stage 1's order is the order of relevance from here on, so it may not rise along the list.
        ceiling = min(ceiling, candidate.relevance)
        found.append(replace(candidate, relevance=ceiling))
    return found


def _candidate(reader: Reader, passage: object) -> Candidate:
    from memory_tools.passages import Passage

    assert isinstance(passage, Passage)
    place = reader.place(passage.first, passage.last)
    text = reader.text(passage.first, passage.last)
    start_line, end_line = place.start_line, place.end_line
    if passage.cut is not None:
        first, last = passage.cut
        start_line += _newlines(text[:first])
        text = text[first:last]
        end_line = start_line + _newlines(text)
    differs = []
    for position in passage.differs:
        other = reader.place(position, position)
        differs.append(f"{other.path}#L{other.start_line}-L{other.end_line}")
    reasons = passage.terms + ((f"meaning {passage.cosine:.2f}",) if passage.cosine is not None else ())
    return Candidate(
        place.section_id,
        place.address,
        place.path,
        start_line,
        end_line,
        text,
        place.headings,
        round(passage.relevance, 4),
        place.source,
        reasons,
        passage.similar,
        tuple(differs),
        place.edited,
    )


def _newlines(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


# --- stage 2 --------------------------------------------------------------------


def _rank(found: Sequence[Candidate], ask: Ask, usage_of: UsageOf, settings: utility.Settings) -> list[utility.Ranked]:
    # The key is the place in stage 1's order, padded so that ties keep it.
    return utility.rank([(f"{i:06}", c.relevance, usage_of(c)) for i, c in enumerate(found)], ask.now, ask.policy, settings)


def _fit(order: list[tuple[utility.Ranked, Candidate]], max_chars: int | None) -> list[tuple[utility.Ranked, Candidate]]:
    """What fits max_chars, best first: a passage that is too long is cut around its match, never dropped for a shorter one behind it."""
    if max_chars is None:
        return order
    from memory_tools.passages import shorten

    out, left = [], max_chars
    for ranked, candidate in order:
        if left <= 0:
            break
        if len(candidate.snippet) > left:
            first, last = shorten(candidate.snippet, candidate.reasons, left)
            if last <= first:
                break
            start = candidate.start_line + _newlines(candidate.snippet[:first])
            snippet = candidate.snippet[first:last]
            candidate = replace(candidate, snippet=snippet, start_line=start, end_line=start + _newlines(snippet))
        left -= len(candidate.snippet)
        out.append((ranked, candidate))
    return out


def _result(ranked: utility.Ranked, candidate: Candidate, usage: utility.Usage, ask: Ask, settings: utility.Settings) -> Result:
    uses, _, _ = utility.counts(usage)
    return Result(
        address=candidate.address,
        path=candidate.path,
        start_line=candidate.start_line,
        end_line=candidate.end_line,
        snippet=candidate.snippet,
        headings=candidate.headings,
        source=candidate.source,
        score=round(ranked.score, 6),
        relevance=ranked.relevance,
        recency=round(ranked.recency, 6),
        success_rate=ranked.success_rate,
        use_count=uses,
        last_used=usage.last_used,
        # of the numbers shown, so that a reader can check it
        utility=round(
            utility.calculate_utility(round(ranked.recency, 6), ranked.success_rate, ranked.relevance, usage.positive_feedback, settings), 6
        ),
        why=_why(candidate, usage, ask),
        similar=candidate.similar,
        differs=candidate.differs,
        explain=_explanation(ranked, usage, ask, settings) if ask.explain else None,
    )


def _why(candidate: Candidate, usage: utility.Usage, ask: Ask) -> str:
    uses, successes, failures = utility.counts(usage)
    terms = [reason for reason in candidate.reasons if " " not in reason]
    held = questions.words_held(ask.phrasings, terms)[:6] if terms else []
    reasons = held + [reason for reason in candidate.reasons if " " in reason]
    parts = ["matches " + ", ".join(reasons) if reasons else "near in meaning"]
    if usage.pinned:
        parts.append("pinned")
    if successes + failures:
        parts.append(f"helped {successes:g} of {successes + failures:g} times")
    elif uses:
        parts.append(f"used {'once' if uses == 1 else f'{uses:g} times'}, outcome unknown")
    else:
        parts.append("not tried yet")
    if usage.positive_feedback:
        parts.append("thumb up")
    if candidate.similar:
        parts.append(f"{candidate.similar} more like it")
    if candidate.differs:
        parts.append("an older entry says otherwise: " + ", ".join(candidate.differs))
    return "; ".join(parts)


def _explanation(ranked: utility.Ranked, usage: utility.Usage, ask: Ask, settings: utility.Settings) -> Mapping[str, object]:
    _, successes, failures = utility.counts(usage)
    w = settings.weights
    out: dict[str, object] = {
        "weights": {"recency": w.recency, "success_rate": w.success_rate, "relevance": w.relevance},
        "inputs": {"recency": round(ranked.recency, 4), "success_rate": ranked.success_rate, "relevance": ranked.relevance},
        "bonus": settings.feedback_bonus if usage.positive_feedback else 0.0,
        "threshold": settings.utility_threshold,
        "policy": ask.policy,
        "score": round(ranked.score, 4),
        "judged": {"success": successes, "failure": failures},
    }
    if ask.policy == "balanced":
        out["expected_success"] = round(utility.expected_success(usage, settings), 4)
    if ask.policy == "memrl":
        out["q"] = running_q(usage, settings)
    return out


def _dropped(ranked: utility.Ranked, candidate: Candidate, usage_of: UsageOf, ask: Ask, settings: utility.Settings) -> Dropped:
    if usage_of(candidate).muted:
        reason = "muted"
    elif not ranked.kept:
        reason = f"utility {ranked.utility:.2f} below the threshold {settings.utility_threshold:g}"
    else:
        reason = f"beyond the first {ask.max_results} results" + (f" or {ask.max_chars} characters" if ask.max_chars else "")
    citation = f"{candidate.path}#L{candidate.start_line}-L{candidate.end_line}"
    return Dropped(candidate.address, citation, ranked.relevance, ranked.utility, round(ranked.score, 6), reason)
