"""Text or a JSON value in, the same with its secrets replaced by `[masked:kind]` and their number out. Pure, linear, idempotent.

Two ways to know a secret: by its own shape (masking_rules.py), and by the name it stands under (`password=…`, `"api_key": "…"`,
`--token …`, `Authorization: …`, a URL's user part). Placeholders (`<token>`, `$TOKEN`, `****`, `None`, `os.environ[...]`) stay.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_tools.errors import InvalidInput
from memory_tools.masking_names import bare_name, is_secret_value, kind_of_name, next_is_secret, read_value
from memory_tools.masking_rules import RULES

MAX_DEPTH = 64  # of a JSON value; deeper is an attack or a mistake

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class Masked:
    text: str
    count: int  # secrets replaced


@dataclass(frozen=True, slots=True)
class MaskedValue:
    value: Json
    count: int


Span = tuple[int, int, str]

# Those from here to _NETRC are matched against the lower-cased text, which is several times faster than ignoring case.
_NAME = re.compile(  # a sensitive word, what may end the identifier, quotes, and the separator; the value is read by hand
    r"(?:pass(?:word|wd|wort|phrase|code)?|pwd|kennwort|contraseña|senha|пароль|パスワード|비밀번호|密码|密碼|口令|secret|api[ _-]?key"
    r"|access[ _-]?key|private[ _-]?key|signing[ _-]?key|encryption[ _-]?key|master[ _-]?key|account[ _-]?key|shared[ _-]?access[ _-]?key"
    r"|service[ _-]?key|subscription[ _-]?key|auth[ _-]?key|token|credentials?|session[ _-]?(?:id|key)"
    r"|connect\.sid|phpsessid|jsessionid|_authtoken|\bauth|密钥|令牌)"
    r"s?(?:[_-]?(?:key(?:[_-]base)?|value|text|plain|base64|base|b64|prod|dev|test|live|staging|default|str|hash|\d{1,3}))?"
    r"(?:\\{0,8}[\"'`])?\]?[ \t]{0,8}(?:=>|:=|==|=|:|：|是|为|\|)[ \t]{0,8}"
)
_FLAG = re.compile(r"(?<![\w-])--?[a-z0-9_-]{0,30}(?:password|passwd|passphrase|secret|token|api-?_?key|access-?_?key)[= \t]{1,4}")
_SHORT_FLAG = re.compile(r"(?:\bsshpass[ \t]+-p[ \t]?|\bmysql(?:dump|admin)?\b[^\n|;&]{0,200}?[ \t]-p(?=[^ \t\n-]))")
_CURL_USER = re.compile(r"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{1,4}['\"]?[\w.@%+-]{1,100}:(?P<s>[^\s'\"]{1,200})")
_HEADER = re.compile(r"\b(?:proxy-)?authorization\\{0,8}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,8}[\"']?(?P<s>[^\r\n\"'\\,;]{4,2000})")
_SCHEME = re.compile(r"\A(?:bearer|basic|token|digest|negotiate|apikey|bot|splunk|aws4-hmac-sha256)[ \t]+")
_BEARER = re.compile(r"\b(?P<scheme>bearer|basic)[ \t]{1,4}(?P<s>[a-z0-9._~+/-]{12,}={0,2})")
_COOKIE = re.compile(r"\b(?:set-)?cookie\\{0,8}[\"']?[ \t]{0,4}:[ \t]{0,4}\\{0,8}[\"']?(?P<s>[^\r\n\"'\\]{6,8000})")
_URL_USER = re.compile(r"://(?:[^\s/@:'\"<>?#]{0,200}):(?P<s>[^\s/'\"<>]{1,500})@")
_URL_SLASH = re.compile(r"(?<!http)(?<!https)://[^\s/@:'\"<>]{1,100}:(?!\d{1,5}[/?#])(?P<s>[^\s'\"<>]{1,200})@(?=[\w.-])")
_URL_TOKEN = re.compile(r"://(?P<s>[A-Za-z0-9_-]{20,200})@(?=[\w.-])")
_NETRC = re.compile(r"\blogin[ \t\n]+\S{1,200}[ \t\n]+password[ \t\n]+(?P<s>\S{1,200})")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PPK = re.compile(r"Private-Lines:[ \t]*\d{1,4}(?P<s>[A-Za-z0-9+/=\s]*)")
_BASE64_RUN = re.compile(r"(?:[A-Za-z0-9+/=:,. \t-]|\\[nr]|[\r\n])*")
_MARK = re.compile(r"\[masked:[a-z0-9-]{1,40}\]")


def mask(text: str) -> Masked:
    """Replace each secret of a text. A second pass finds nothing more."""
    spans = [s for s in _spans(text) if s[0] < s[1]]
    if not spans:
        return Masked(text, 0)
    kept = [(m.start(), m.end()) for m in _MARK.finditer(text)]
    out: list[str] = []
    at = count = 0
    for start, end, label in _merge(spans):
        if any(a < end and start < b for a, b in kept):
            continue
        out += [text[at:start], f"[masked:{label}]"]
        at, count = end, count + 1
    out.append(text[at:])
    return Masked("".join(out), count)


def _merge(spans: list[Span]) -> list[Span]:
    """Overlapping spans as one, which keeps the label of the longest."""
    merged: list[Span] = []
    longest = 0
    for start, end, label in sorted(spans, key=lambda s: (s[0], -s[1], s[2])):
        if merged and start < merged[-1][1]:
            last = merged[-1]
            better = end - start > longest
            longest = max(longest, end - start)
            merged[-1] = (last[0], max(last[1], end), label if better else last[2])
        else:
            merged.append((start, end, label))
            longest = end - start
    return merged


def _spans(text: str) -> Iterator[Span]:
    lower = text.replace("\u0130", "i").lower()  # the one character whose lower case is longer
    for rule in RULES:
        if any(h in lower for h in rule.hints):
            for m in rule.pattern.finditer(text):
                group = "s" if "s" in rule.pattern.groupindex else 0
                yield m.start(group), m.end(group), rule.label
    yield from _private_keys(text)
    yield from _named(text, lower)
    if "://" in text:
        for pattern in (_URL_USER, _URL_SLASH, _URL_TOKEN):
            yield from _checked(text, text, pattern, "url-password")
    if "authorization" in lower:
        yield from _headers(text, lower)
    if "bearer" in lower or "basic" in lower:
        for m in _BEARER.finditer(lower):
            value = text[m.start("s") : m.end("s")]
            # "basic JavaScript/TypeScript", "bearer responsibilities"
            if _is_basic(value) if m["scheme"] == "basic" else re.search("[0-9]|[a-z][A-Z]", value):
                yield m.start("s"), m.end("s"), "bearer-token"
    if "cookie" in lower:
        yield from _checked(text, lower, _COOKIE, "cookie", need="=")
    if "login" in lower and "password" in lower:
        yield from _checked(text, lower, _NETRC, "password")
    if "-u" in text or "--user" in text or "--proxy-user" in text:
        yield from _checked(text, text, _CURL_USER, "password")
    if "AKIA" in text or "ASIA" in text:
        yield from _aws_secrets(text)


def _checked(text: str, searched: str, pattern: re.Pattern[str], label: str, need: str = "") -> Iterator[Span]:
    for m in pattern.finditer(searched):
        value = text[m.start("s") : m.end("s")]
        if need in value and is_secret_value(value, "password"):
            yield m.start("s"), m.end("s"), label


def _headers(text: str, lower: str) -> Iterator[Span]:
    for m in _HEADER.finditer(lower):
        scheme = _SCHEME.match(m["s"])
        start = m.start("s") + (scheme.end() if scheme else 0)
        end = m.start("s") + len(m["s"].rstrip())
        # A bare word after `authorization:` without a scheme may be prose ("authorization: required").
        if is_secret_value(text[start:end], "password" if scheme else "token"):
            yield start, end, "authorization"


def _is_basic(value: str) -> bool:
    """Whether base64 text holds `user:password`."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except ValueError:
        return False


def _named(text: str, lower: str) -> Iterator[Span]:
    """Values behind a sensitive name, a separator and possibly quotes; and behind command-line flags."""
    at = 0
    while m := _NAME.search(lower, at):
        name = bare_name(text, m)
        kind = kind_of_name(name)
        value = read_value(text, m.end(), flag=False)
        if kind and value.start < value.end and next_is_secret(text, value, kind, name, m.group()):
            yield value.start, value.end, kind
            at = max(value.end, m.end())
        else:  # a long value that is none is not read again for each name inside it
            at = m.end() if value.end - value.start < 100 else value.end
    for pattern in (_FLAG, _SHORT_FLAG):
        for m in pattern.finditer(lower):
            value = read_value(text, m.end(), flag=True)
            if value.start < value.end and is_secret_value(text[value.start : value.end], "password"):
                yield value.start, value.end, "password"


def _aws_secrets(text: str) -> Iterator[Span]:
    """The 40 characters that stand within 200 of an access key's id: a credentials file, CSV or log line."""
    for m in re.finditer(r"(?<![A-Za-z0-9])A[KS]IA[A-Z2-7]{16}(?![A-Za-z0-9])", text):
        for s in _AWS_SECRET.finditer(text, max(0, m.start() - 200), min(len(text), m.end() + 200)):
            value = s.group()
            if re.search("[a-z]", value) and re.search("[A-Z]", value) and re.search("[0-9/+]", value):
                yield s.start(), s.end(), "aws-secret-key"


def _private_keys(text: str) -> Iterator[Span]:
    at = 0
    while "PRIVATE KEY" in text and (m := _BEGIN.search(text, at)):
        end = text.find("-----END ", m.end())
        stop = text.find("-----", end + 9) if end >= 0 else -1
        if end >= 0 and stop >= 0:
            at = stop + 5
        else:  # cut off before its end: the run of base64 is still the key
            run = _BASE64_RUN.match(text, m.end())
            at = run.end() if run else m.end()
        yield m.start(), at, "private-key"
    if "Private-Lines:" in text:
        for m in _PPK.finditer(text):
            yield m.start("s"), m.end("s"), "private-key"


def mask_value(value: object) -> MaskedValue:
    """Replace each secret of a JSON value: in its strings, under its names, in its keys. Raises InvalidInput beyond MAX_DEPTH."""
    masked, count = _walk(value, "", 0)
    return MaskedValue(masked, count)


def _walk(value: object, kind: str, depth: int) -> tuple[Json, int]:
    """`kind`: what the name that this value stands under says, "" for nothing."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        if kind and is_secret_value(value, kind):
            return f"[masked:{kind}]", 1
        found = mask(value)
        return found.text, found.count
    if isinstance(value, bool) or value is None:
        return value, 0
    if isinstance(value, int | float):
        return (f"[masked:{kind}]", 1) if kind == "password" else (value, 0)
    if isinstance(value, Mapping):
        return _walk_mapping(value, kind, depth)
    if isinstance(value, Sequence):
        out: list[Json] = []
        total = 0
        flag = ""
        for item in value:
            masked, count = _walk(item, kind or flag, depth + 1)
            # ["--password", "hunter2"]: an argument list
            flag = kind_of_name(item.lstrip("-")) if isinstance(item, str) and item.startswith("-") and "=" not in item else ""
            out.append(masked)
            total += count
        return out, total
    raise InvalidInput(f"a {type(value).__name__} is not a JSON value")


def _walk_mapping(value: Mapping[object, object], kind: str, depth: int) -> tuple[Json, int]:
    out: dict[str, Json] = {}
    total = 0
    label = next((v for k in ("name", "key", "Name", "Key") if isinstance(v := value.get(k), str)), "")
    for key, item in value.items():
        name = mask(str(key))
        inner = kind_of_name(str(key))
        if str(key).lower() == "value" and label:  # {"name": "API_KEY", "value": "…"}: an environment list
            inner = inner or kind_of_name(label)
        masked, count = _walk(item, inner or (kind if not isinstance(item, Mapping) else ""), depth + 1)
        out[name.text] = masked
        total += count + name.count
    return out, total
