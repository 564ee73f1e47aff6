"""The verbs of recall: search, get, feedback, remember. Arguments go in, one call of Memory each, its answer comes out."""

from __future__ import annotations

import sys

import click

from memory_tools.cli_session import Session, verb
from memory_tools.errors import InvalidInput
from memory_tools.records import OUTCOMES, POLICIES

POLICY = click.Choice(POLICIES)


@verb()
@click.argument("query", nargs=-1, required=True)
@click.option("--variant", multiple=True, metavar="TEXT", help="Another phrasing of the question; repeat for more. The best one counts.")
@click.option("--context", metavar="TEXT", help="What the task is about; a weaker vote than the question.")
@click.option("--max-results", type=int, metavar="N", help="At most N memories (10).")
@click.option("--min-score", type=float, metavar="X", help="Least relevance, 0 to 1 (0.5).")
@click.option("--max-chars", type=int, metavar="N", help="At most N characters of memory text.")
@click.option("--policy", type=POLICY, help="How relevance and history make the order (balanced).")
@click.option("--threshold", type=float, metavar="X", help="Least utility, 0 to 1 (0.5).")
@click.option("--strict", is_flag=True, help="What passes, or nothing: no second, broader attempt.")
@click.option("--include-archive", is_flag=True, help="Search archived memories too.")
@click.option("--explain", is_flag=True, help="Show how each result was scored, what was left out, and why.")
@click.pass_obj
def search(
    session: Session,
    query: tuple[str, ...],
    variant: tuple[str, ...],
    context: str | None,
    max_results: int | None,
    min_score: float | None,
    max_chars: int | None,
    policy: str | None,
    threshold: float | None,
    strict: bool,
    include_archive: bool,
    explain: bool,
) -> None:
    """Find the few lines of memory that answer a question.

    \b
    memory-tools search "API 超时怎么处理"
    memory-tools search "deploy fails" --variant "release broken" --max-results 3
    """
    phrasings = [" ".join(query), *variant]
    with session.memory() as memory:
        report = memory.search(
            phrasings if len(phrasings) > 1 else phrasings[0],
            context=context,
            max_results=max_results,
            min_score=min_score,
            max_chars=max_chars,
            policy=policy,
            threshold=threshold,
            strict=strict,
            include_archive=include_archive,
            explain=explain,
        )
        session.emit(report)


@verb()
@click.argument("path", metavar="PATH|ADDRESS|CITATION")
@click.option("--from", "from_line", metavar="N", help="First line, or the `next` of an earlier answer.")
@click.option("--lines", type=int, metavar="N", help="How many lines.")
@click.option("--recall", metavar="ID", help="The search that this reading belongs to.")
@click.pass_obj
def get(session: Session, path: str, from_line: str | None, lines: int | None, recall: str | None) -> None:
    """Read memory: a file, the lines of a citation, or the section of an address.

    \b
    memory-tools get MEMORY.md#L3-L7
    memory-tools get "MEMORY.md#主动汇报约定"
    memory-tools get memory/2026-03-05.md --from 40 --lines 20
    """
    with session.memory() as memory:
        session.emit(memory.get(path, from_line=_place(from_line), lines=lines, recall=recall))


@verb()
@click.argument("used", nargs=-1, required=True, metavar="ADDRESS...|last N...")
@click.option("--outcome", type=click.Choice(list(OUTCOMES)), required=True, help="What came of using these memories.")
@click.option("--positive", is_flag=True, help="A person said that it helped.")
@click.option("--weight", type=float, default=1.0, metavar="X", help="How much this counts, above 0 up to 1 (1).")
@click.option("--recall", metavar="ID", help="The search whose positions are meant (the last one).")
@click.option("--event-id", metavar="ID", help="Counted once, however often it is sent.")
@click.pass_obj
def feedback(
    session: Session, used: tuple[str, ...], outcome: str, positive: bool, weight: float, recall: str | None, event_id: str | None
) -> None:
    """Say what came of using a memory, so that what helps comes first next time.

    \b
    memory-tools feedback last 1 3 --outcome success
    memory-tools feedback "MEMORY.md#deploy" --outcome failure
    """
    named: list[str | int] = [int(one) if one.isascii() and one.isdigit() else one for one in used]
    if named[0] == "last":
        if len(named) == 1:
            raise click.UsageError("Which of the last results? For example: feedback last 1 3 --outcome success")
        named, recall = named[1:], recall or "last"
    with session.memory() as memory:
        session.emit(memory.feedback(named, outcome=OUTCOMES[outcome], positive=positive, weight=weight, recall=recall, event_id=event_id))


@verb()
@click.argument("text", nargs=-1)
@click.option("--heading", metavar="TEXT", help="Heading of the entry (the time).")
@click.option("--event-id", metavar="ID", help="Stored once, however often it is sent.")
@click.pass_obj
def remember(session: Session, text: tuple[str, ...], heading: str | None, event_id: str | None) -> None:
    """Append a memory to today's note (memory/YYYY-MM-DD.md). Without TEXT, or with -, it is read from stdin.

    \b
    memory-tools remember "Anna prefers short mails" --heading "Anna"
    git log -1 | memory-tools remember
    """
    if text in ((), ("-",)):
        if sys.stdin.isatty():
            raise click.UsageError("No text: give it as an argument, or pipe it in.")
        content = _stdin()
    else:
        content = " ".join(text)
    with session.memory() as memory:
        session.emit(memory.remember(content, heading=heading, event_id=event_id))


def _place(value: str | None) -> int | str | None:
    return int(value) if value is not None and value.isascii() and value.isdigit() else value


def _stdin() -> str:
    """All of stdin as UTF-8, whatever the console's encoding is."""
    content = sys.stdin.buffer.read()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise InvalidInput(f"stdin: not UTF-8 text at byte {e.start + 1}", "convert it first, for example with iconv") from None
