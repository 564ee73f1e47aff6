"""A JSON document in, the server's JSON document out: a POST with bounded time, size and number of tries; no error shows the key."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from memory_tools.errors import InvalidInput, Unavailable

_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_MAX_ANSWER = 256 * 1024 * 1024  # 96 vectors of 4,096 numbers are 8 MB
_MAX_TOLD = 300  # characters of the server's own words in an error
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and how long to try. `jitter` gives a number in [0, 1); waits double from `first_wait_s`."""

    attempts: int
    timeout_s: float
    longest_wait_s: float
    first_wait_s: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class _Refused(Exception):
    """This try failed. `wait_s`: what the server asked for, None where it said nothing; `again`: whether trying again may help."""

    def __init__(self, message: str, hint: str = "", again: bool = False, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.message, self.hint, self.again, self.wait_s = message, hint, again, wait_s


class _NoRedirects(HTTPRedirectHandler):
    """A redirect could carry the texts and the key to another host; it becomes an error that names the host."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str) -> None:
        return None


class Poster:
    def __init__(self, url: str, api_key: str | None) -> None:
        if api_key is not None and (not api_key.isascii() or not api_key.isprintable() or " " in api_key):
            raise InvalidInput("encoder_api_key holds characters that no key has (a line break, a space, not ASCII)", "paste it again")
        self._url = url
        self._key = api_key or None
        self.where = f"embeddings at {urlsplit(url).netloc}"
        # A proxy of the environment is for the outside; a server on this machine is asked directly.
        proxies = [ProxyHandler({})] if urlsplit(url).hostname in _LOOPBACK else []
        self._opener = build_opener(_NoRedirects, *proxies)

    def __call__(self, document: Mapping[str, object], pace: Pace) -> object:
        """Unavailable: refused, or no usable answer after the last try."""
        body = json.dumps(document, ensure_ascii=False).encode("utf-8")
        for attempt in range(1, pace.attempts + 1):
            try:
                return self._once(body, pace)
            except _Refused as refused:
                wait_s = min(pace.first_wait_s * 2 ** (attempt - 1), pace.longest_wait_s) * (0.5 + pace.jitter() / 2)
                tries = f" (tried {attempt} times)" if attempt > 1 else ""
                if not refused.again or attempt == pace.attempts:
                    raise Unavailable(f"{self.where}: {refused.message}{tries}", refused.hint) from None
                if refused.wait_s is not None and refused.wait_s > pace.longest_wait_s:
                    told = f"{self.where}: {refused.message}; it asks to wait {refused.wait_s:.0f} s"
                    raise Unavailable(told, "try again later") from None
                pace.sleep(max(wait_s, refused.wait_s or 0.0))
        raise AssertionError("attempts is at least 1")

    def _once(self, body: bytes, pace: Pace) -> object:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "memory-tools"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        until = time.monotonic() + pace.timeout_s
        try:
            with self._opener.open(Request(self._url, body, headers, method="POST"), timeout=pace.timeout_s) as response:
                answer = _read(response, until, pace.timeout_s)
        except HTTPError as error:
            with error:
                raise self._by_status(error, pace) from None
        except TimeoutError:
            raise _Refused(f"no answer within {pace.timeout_s:g} s", again=True) from None
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise _Refused(f"no connection within {pace.timeout_s:g} s", again=True) from None
            # Nobody listens there, or there is no such host: that does not mend itself within seconds.
            broken = isinstance(error.reason, ConnectionResetError | BrokenPipeError)
            raise _Refused(f"cannot connect: {error.reason}", "is the server running, and the address right?", again=broken) from None
        except (HTTPException, OSError) as error:
            raise _Refused(f"the connection broke: {error!r}", again=True) from None
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            shown = self._hidden(answer.decode("utf-8", "replace"))[:80]
            raise _Refused(f"the answer is not JSON: {shown!r}", "is this an OpenAI-compatible /embeddings route?") from None

    def _hidden(self, message: str) -> str:
        """A server may repeat the key in its answer. It is taken out before anything is cut, so that no part of it is left either."""
        return message.replace(self._key, "***") if self._key else message

    def _by_status(self, error: HTTPError, pace: Pace) -> _Refused:
        try:
            told = error.read(20_000)
        except (OSError, HTTPException):
            told = b""
        message, code = _words(self._hidden(told.decode("utf-8", "replace")))
        said = f"HTTP {error.code}" + (f": {message}" if message else "")
        if 300 <= error.code < 400:
            target = self._hidden(str(error.headers.get("Location", "another address")))[:_MAX_TOLD]
            hint = "put the final address into the encoder's base_url"
            return _Refused(f"HTTP {error.code}: redirected to {target}, which is not followed", hint)
        if error.code in (401, 403):
            return _Refused(said, "set encoder_api_key (or MEMORY_TOOLS_ENCODER_API_KEY) to a valid key")
        if code == "insufficient_quota" or error.code == 402:
            return _Refused(said, "the account has no quota left; trying again does not help")
        if error.code == 404:
            return _Refused(said, "check the base_url (it ends in /v1 for most servers) and the model's name")
        return _Refused(said, again=error.code in _AGAIN, wait_s=_retry_after(error.headers.get("Retry-After"), pace.now()))


def _read(response: HTTPResponse, until: float, timeout_s: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := response.read1(1 << 20):
        parts.append(part)
        size += len(part)
        if size > _MAX_ANSWER:
            raise _Refused(f"the answer is longer than {_MAX_ANSWER >> 20} MB")
        if time.monotonic() > until:  # the socket's own timeout starts anew with every byte
            raise _Refused(f"no whole answer within {timeout_s:g} s", again=True)
    if response.length:  # fewer bytes than its Content-Length announced
        raise _Refused("the answer broke off", again=True)
    return b"".join(parts)


def _words(body: str) -> tuple[str, str]:
    """(message, code) of an error document in one of the usual shapes, else the body's beginning."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(body.split())[:_MAX_TOLD], ""
    error = document.get("error", document) if isinstance(document, dict) else document
    if not isinstance(error, dict):
        return str(error)[:_MAX_TOLD], ""
    message = error.get("message") or error.get("detail") or json.dumps(error, ensure_ascii=False)
    quota = "insufficient_quota" in (error.get("code"), error.get("type"))
    return " ".join(str(message).split())[:_MAX_TOLD], "insufficient_quota" if quota else ""


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds, from a number of seconds or a date; None where there is none or it makes no sense."""
    if not value:
        return None
    try:
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:  # not a number: the other form is a date
        with suppress(ValueError):
            date = parsedate_to_datetime(value)
            return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now.timestamp())
        return None
