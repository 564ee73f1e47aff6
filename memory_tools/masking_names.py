"""A name, and the text behind it, to whether that text is a secret: which names tell, where the value ends, what is a placeholder."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Endings of names, letters only, lower case. `pass` and `auth` count only as whole words.
_PASSWORD = (
    "password", "passwd", "passwort", "kennwort", "passphrase", "passcode", "pwd", "contraseña", "senha", "пароль", "パスワード",
    "비밀번호", "密码", "密碼", "口令",
)  # fmt: skip
_SECRET = (
    "secret", "secretkey", "apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "masterkey", "accountkey",
    "sharedaccesskey", "servicekey", "subscriptionkey", "authkey", "secretaccesskey", "sessionkey", "credential", "密钥",
)  # fmt: skip
_TOKEN = ("token", "sessionid", "authtoken", "connectsid", "phpsessid", "jsessionid", "令牌", "bearer")
_WHOLE = {"pass": "password", "auth": "token", "authorization": "password", "proxyauthorization": "password", "cookie": "password",
          "setcookie": "password", "xapikey": "secret", "dbpass": "password", "userpass": "password"}  # fmt: skip
# Tokens that are places in a list or units of text, and secrets that are only named.
_NOT = re.compile(
    r"(?:page|next|continuation|continue|sync|cursor|start|end|max|min|num|total|prompt|completion|input|output|stop|eos|bos|pad|unk|mask|sep|cls"
    r"|special|first|last|prev|previous|word|text|n|per|cached|reasoning|skip|watch)token\Z"
)
_TAILS = re.compile(r"(?:value|text|plain|base64|base|b64|prod|dev|test|live|staging|default|str|hash|\d+)\Z")
_LETTERS = re.compile(r"[^\w]|_", re.UNICODE)

_PLACEHOLDER = re.compile(
    r"\A(?:[*•.x×#_-]+|<[^>]*>?|\$\{?.*|%[^%]*%?|\{\{?.*|\[.*|\(.*|…|\.\.\.|null|none|nil|undefined|true|false|yes|no|on|off|empty|unset"
    r"|not[ _-]?set|required|optional|string|str|text|bytes|int|integer|number|bool|boolean|hidden|masked|redacted|removed|changed|expired"
    r"|invalid|incorrect|wrong|missing|needed|forgotten|reset|and|or|is|the|a|an|was|must|should|cannot|can|will|not|for|field|fields|input|of|to|in|from|protected"
    r"|your[-_ ].*|my[-_ ]?(?:token|secret|key|api[-_]?key)|changeme|here)\Z",
    re.I,
)
_EXPRESSION = re.compile(
    r"(?:os\.|process\.|env\.|environ|getenv|secrets\.|config\.|settings\.|self\.|this\.|args\.|options\.|params\.|req\.|request\.|vault\.|keyring"
    r"|ctx\.|data\.|user\.|std::|sys\.|import\.)|\A[A-Za-z_][\w.]*\(.*|\A[A-Za-z_]\w*\[.*|\A[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|\A@",
)
_QUOTES = "\"'`"
_LINE_END = re.compile(r"[\r\n]|\Z")
_FLAG_END = re.compile(r"[\s\"'`]|\Z")
_PLAIN_END = re.compile(r"[\s\"'`,;&<>)\]}]|\\[nrt\"]|\Z")
_AFTER = re.compile(r"[ \t]*(?:[\r\n,;}\])&|]|\\[nr]|\Z)")
MAX_VALUE = 4000  # characters of one secret that is known by its name alone


@dataclass(frozen=True, slots=True)
class Value:
    start: int
    end: int
    quoted: bool


def kind_of_name(name: str) -> str:
    """ "password", "secret", "token", or "" for a name that promises none: `db_password`, `X-API-Key`, `accessToken`, `page_token`."""
    letters = _LETTERS.sub("", name.lower())
    if letters in _WHOLE:
        return _WHOLE[letters]
    if len(letters) > 80:  # no identifier
        return ""
    for word in (letters, letters.removesuffix("s"), _TAILS.sub("", letters)):  # `passwords`, `SECRET_KEY_BASE`
        if word.endswith(_PASSWORD):
            return "password"
        if word.endswith(_SECRET) and not word.endswith("publickey"):
            return "secret"
        if word.endswith(_TOKEN):
            # `tokens` alone counts text (`max_tokens`, "tokens: 150"); a list of tokens is masked by their shapes.
            return "" if _NOT.search(word) or letters.endswith("tokens") else "token"
    return ""


def bare_name(text: str, match: re.Match[str]) -> str:
    """The whole identifier around a match of a sensitive word: what stands before it, and the match without its separator."""
    start = match.start()
    low = max(0, start - 40)
    while start > low and (text[start - 1].isalnum() or text[start - 1] in "_-."):
        start -= 1
    return text[start : match.end()].rstrip(" \t=:：>|是为\\\"'`]")


def read_value(text: str, start: int, *, flag: bool) -> Value:
    """Where the value that begins at `start` ends: at its closing quote, else at white space, a comma, a bracket or `&`."""
    at = start
    while at < len(text) and at - start < 8 and text[at] == "\\":  # JSON inside JSON: \"
        at += 1
    slashes = at - start
    if at < len(text) and text[at] in _QUOTES:
        quote = text[at]
        at += 1
        end = text.find(quote, at, at + MAX_VALUE)
        while end >= 0:  # not closed: the line's rest
            before = end
            while before > at and text[before - 1] == "\\":
                before -= 1
            if (end - before == slashes) if slashes else (end - before) % 2 == 0:
                return Value(at, before if slashes else end, True)
            end = text.find(quote, end + 1, at + MAX_VALUE)
        return Value(at, _end(_LINE_END, text, at), True)
    return Value(start, _end(_FLAG_END if flag else _PLAIN_END, text, start), False)


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    stop = pattern.search(text, start, start + MAX_VALUE)
    return stop.start() if stop else min(len(text), start + MAX_VALUE)


def is_secret_value(value: str, kind: str) -> bool:
    """Whether a value under such a name is a secret, and not a placeholder, an expression or a word of prose."""
    value = value.strip()
    if not value or "[masked:" in value or _PLACEHOLDER.match(value) or _EXPRESSION.search(value[:200]):
        return False
    if kind == "token":
        return len(value) >= 8 and (len(value) >= 32 or any(c.isdigit() for c in value)) and not value.isdigit() and " " not in value
    if kind == "secret":
        return len(value) >= 6 and "\n\n" not in value
    return len(value) >= 3 or not value.isascii() or value.isdigit()


def next_is_secret(text: str, value: Value, kind: str, name: str, introduction: str) -> bool:
    """The same for running text: `Password: must have 8 letters` is prose, `password=password` code, `password: hunter2` a secret."""
    body = text[value.start : value.end].rstrip(".") if not value.quoted else text[value.start : value.end]
    if not is_secret_value(body, kind) or (not value.quoted and name.lower().endswith(body.lower())):
        return False
    if value.quoted:
        return len(body) <= 500 or kind != "password"
    if "=" in introduction and "==" not in introduction:
        return True
    rest = _AFTER.match(text, value.end)
    mixed = any(c.isdigit() for c in body) or not body.isalnum()
    if kind == "password":
        return rest is not None or mixed
    return (rest is not None and len(body) >= 12) or (mixed and len(body) >= 8)
