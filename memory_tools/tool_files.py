"""One tool's two files: `<stem>.md` (front matter and guideline) and `<stem>.calls.jsonl`; their text to values and back, read and written.

Writers hold the lock of the calls file for both. A person's text outside the generated part, and unknown front matter, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from memory_tools import durable
from memory_tools.errors import Damaged, InvalidInput
from memory_tools.tool_records import TIME_FORMAT, Advice, Json, ToolCall, from_line, to_line

START, END = "<!-- memory-tools:guideline -->", "<!-- /memory-tools:guideline -->"
_START_LINE = re.compile(rf"^{re.escape(START)}[ \t]*\r?$", re.M)
_END_LINE = re.compile(rf"^{re.escape(END)}[ \t]*\r?$", re.M)
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.M | re.S)
_TOP_KEY = re.compile(r"^([A-Za-z_][\w-]*|\"[^\"\n]*\"|'[^'\n]*')[ \t]*:(?=[ \t\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class Page:
    """A tool's Markdown file. `front`: its front matter's values; `body`: the text after it."""

    front: Mapping[str, object] = field(default_factory=dict)
    front_text: str = ""
    body: str = ""

    @property
    def guideline(self) -> str | None:
        """The generated part, None where there is none."""
        parts = _parts(self.body)
        return parts[1].strip("\r\n") if parts else None

    @property
    def content(self) -> str:
        """What a reader of the tool's memory gets: the guideline and the person's own text, without marks and the file's title."""
        parts = _parts(self.body)
        text = (parts[0] + parts[1].strip("\r\n") + parts[2] if parts else self.body).strip()
        title = f"# {one_line(str(self.front.get('when_to_use', '')))}"
        return text[len(title) :].strip() if text == title or text.startswith((title + "\n", title + "\r")) else text

    @property
    def parameters(self) -> dict[str, Advice]:
        raw = self.front.get("parameters")
        out: dict[str, Advice] = {}
        for name, value in raw.items() if isinstance(raw, dict) else ():
            if isinstance(value, dict):
                out[str(name)] = Advice(_plain(value.get("recommended")), _plain(value.get("avoid")))
        return out

    def text_of(self, key: str) -> str:
        value = self.front.get(key)
        if isinstance(value, datetime):  # a time without quotes
            return value.strftime(TIME_FORMAT)
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the calls file. `call` None: a line that holds no call, kept as it is until it is pushed out."""

    line: str
    call: ToolCall | None


@dataclass(frozen=True, slots=True)
class Calls:
    entries: tuple[Entry, ...] = ()
    whole: bool = True  # False: the last line was cut off by a crash, so the next write replaces the file

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(e.call for e in self.entries if e.call is not None)

    @property
    def damaged(self) -> int:
        return sum(e.call is None for e in self.entries)


# --- text to values and back -------------------------------------------------------------------------


def parse_page(path: Path, text: str) -> Page:
    """Raises Damaged where the front matter is not YAML: it is data of record, and a person has to look."""
    from memory_tools.plain_yaml import parse

    found = _FRONT.match(text)
    if found is None:
        return Page(body=text)
    try:
        front = parse("\n" + found[1])  # a line more, for the `---`: errors name the file's line
    except InvalidInput as e:
        raise Damaged(f"{path}: front matter: {e.message}", "correct it by hand; the calls beside it are kept") from e
    if front is None:
        front = {}
    if not isinstance(front, dict):
        raise Damaged(f"{path}: front matter: expected `key: value` lines", "correct it by hand; the calls beside it are kept")
    return Page({str(k): v for k, v in front.items()}, found[1], text[found.end() :])


def format_page(page: Page, values: Mapping[str, Json], guideline: str | None, title: str) -> str:
    """The file's text with these front matter values and, where given, this guideline in its generated part."""
    import yaml

    chunks, seen = _chunks(page.front_text), set[str]()
    lines: list[str] = []
    for key, chunk in chunks:
        if key in values:
            seen.add(key)
            comment = re.match(r"(?:#[^\n]*\n)*", chunk)
            chunk = (comment[0] if comment else "") + _dump(yaml.safe_dump, key, values[key])
        lines.append(chunk if chunk.endswith("\n") else chunk + "\n")
    lines += [_dump(yaml.safe_dump, key, value) for key, value in values.items() if key not in seen]
    front = "".join(lines)
    if not _holds(front, values):  # an unusual layout, such as a key inside a text that spans lines: written anew, comments lost
        front = "".join(
            _dump(yaml.safe_dump, key, value) for key, value in {**{k: _plain(v) for k, v in page.front.items()}, **values}.items()
        )
    body = page.body or f"\n# {one_line(title)}\n"
    if guideline is not None:
        body = _with_guideline(body, guideline, title)
    return f"---\n{front}---\n{body}"


def _holds(front: str, values: Mapping[str, Json]) -> bool:
    from memory_tools.plain_yaml import parse

    try:
        read = parse(front)
    except InvalidInput:
        return False
    return isinstance(read, dict) and all(read.get(key) == value for key, value in values.items())


def _dump(dump: object, key: str, value: Json) -> str:
    assert callable(dump)
    text: str = dump({key: value}, allow_unicode=True, sort_keys=False, default_flow_style=False, width=10_000)
    return text


def _chunks(front_text: str) -> list[tuple[str, str]]:
    """Front matter cut at its top-level keys, so that what is not ours keeps its bytes. A comment goes with the key below it."""
    chunks: list[tuple[str, str]] = []
    key, chunk, above = "", "", ""
    for line in re.findall(r"[^\n]*\n|[^\n]+\Z", front_text):
        found = _TOP_KEY.match(line)
        if found:
            chunks.append((key, chunk))
            key, chunk, above = found[1].strip("\"'"), above + line, ""
        elif line.startswith("#"):
            above += line
        else:
            chunk, above = chunk + above + line, ""
    return [(k, c) for k, c in [*chunks, (key, chunk + above)] if c]


def _with_guideline(body: str, guideline: str, title: str) -> str:
    part = f"{START}\n{neutral(guideline).strip()}\n{END}"
    parts = _parts(body)
    if parts:
        return parts[0] + part + parts[2]
    heading = re.match(r"\s*# [^\n]*\n", body)
    if heading and heading[0].strip() == f"# {one_line(title)}":
        rest = body[heading.end() :].strip("\r\n")
        return f"{heading[0].rstrip()}\n\n{part}\n" + (f"\n{rest}\n" if rest else "")
    own = body.strip("\r\n")  # a file that a person wrote: the guideline goes below it
    return f"{own}\n\n{part}\n" if own else f"\n# {one_line(title)}\n\n{part}\n"


def _parts(body: str) -> tuple[str, str, str] | None:
    """What stands before, between and after the two marks; None without both."""
    start = _START_LINE.search(body)
    end = _END_LINE.search(body, start.end()) if start else None
    return (body[: start.start()], body[start.end() : end.start()], body[end.end() :]) if start and end else None


def neutral(guideline: str) -> str:
    """A guideline that cannot end its own part of the file early."""
    return guideline.replace("memory-tools:guideline", "guideline").replace("\r\n", "\n").replace("\r", "\n")


def one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text).split())


def _plain(value: object) -> Json:
    """YAML's dates and numbers that JSON has no word for, as text."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if value is None or isinstance(value, bool | int | str):
        return value
    return value if isinstance(value, float) and abs(value) < float("inf") else str(value)


def parse_calls(content: bytes) -> Calls:
    lines = content.decode("utf-8", "replace").split("\n")
    entries = [Entry(line.rstrip("\r"), from_line(line)) for line in lines if line.strip()]
    whole = content.endswith(b"\n") or not content
    if not whole and entries and entries[-1].call is None:
        return Calls(tuple(entries[:-1]), False)  # half a line: it was never acknowledged
    return Calls(tuple(entries), whole)


def format_calls(entries: Sequence[Entry]) -> bytes:
    return "".join(e.line + "\n" for e in entries).encode()


def newest(entries: Sequence[Entry], limit: int) -> tuple[Entry, ...]:
    """From the oldest of the newest `limit` calls on."""
    places = [n for n, e in enumerate(entries) if e.call is not None]
    return tuple(entries[places[-limit] :]) if len(places) > limit else tuple(entries)


def entry(call: ToolCall) -> Entry:
    return Entry(to_line(call), call)


# --- disk ----------------------------------------------------------------------------------------


def append_calls(path: Path, calls: Sequence[ToolCall]) -> None:
    """For a caller that holds the lock."""
    durable.append_unlocked(path, format_calls([entry(c) for c in calls]))
