"""An ASGI application and a configuration in, a guarded server out: it sees no request before Host, Origin, token and size are checked."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memory_tools import render
from memory_tools.errors import Busy, Forbidden, InvalidInput, MemoryToolsError, TooLarge, Unauthorized, Unavailable

if TYPE_CHECKING:
    from memory_tools.config import Config

MAX_BODY_BYTES = 8 * 1024 * 1024  # a batch of tool calls with their outputs; memory itself is far smaller
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]*)?")  # a name and perhaps a port, no user before an `@`
BODY_WITHIN_S = 30.0  # a body that comes more slowly holds a connection and is no client of ours

Message = MutableMapping[str, Any]  # the shapes that ASGI itself prescribes
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
Refusal = Callable[[str, MemoryToolsError], render.Json]  # (path, error) -> the document of that route's errors


def is_loopback(host: str) -> bool:
    """Whether an address or host name, without port, means this machine only."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _name_in(address: str) -> str:
    """The host name in `//host:port` or a whole address; "" where there is none that can be read."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # `[` without its end
        return ""


class Guard:
    """An ASGI application in front of another one. Refusals are error documents.

    Without a token only names of this machine are answered to: a page in a browser whose own host name was pointed here (DNS
    rebinding) still sends that name as Host. Behind a token and on another address the machine has names that are not known here.
    """

    def __init__(
        self,
        app: App,
        *,
        host: str,
        token: str | None,
        max_body_bytes: int = MAX_BODY_BYTES,
        body_within_s: float = BODY_WITHIN_S,
        refusal: Refusal | None = None,
    ) -> None:
        self._app = app
        self._body_within_s = body_within_s
        self._refusal: Refusal = refusal or (lambda path, error: render.error_document(error))
        self._any_host = not is_loopback(host) and token is not None
        self._token = token
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._check({name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]})
            inner = await self._bounded(receive) if scope["method"] in ("POST", "PUT", "PATCH", "DELETE") else receive
        except MemoryToolsError as e:
            await _refuse(e, self._refusal(scope["path"], e), send)
            return
        await self._app(scope, inner, send)

    def _check(self, headers: dict[str, str]) -> None:
        named = headers.get("host", "")
        host = _name_in(f"//{named}") if _HOST.fullmatch(named) else ""
        if not (self._any_host or is_loopback(host) or host == "0.0.0.0"):
            raise Forbidden(f"Host {named[:200]!r} is not a name of this machine", "use http://127.0.0.1")
        origin = headers.get("origin")
        if origin is not None and not is_loopback(_name_in(origin)):
            raise Forbidden(f"Origin {origin[:200]!r} may not ask here", "pages of other sites cannot read this memory")
        length = headers.get("content-length", "0").strip()
        if length.isdecimal() and (len(length) > 18 or int(length) > self._max_body_bytes):
            raise TooLarge(f"the body has {length[:18]} bytes or more, at most {self._max_body_bytes:,}")
        if self._token is not None:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                raise Unauthorized("a bearer token is needed", "send the header Authorization: Bearer TOKEN")

    async def _bounded(self, receive: Receive) -> Receive:
        """The whole body, read here: a length that a client does not declare is bounded too, and so is the time that it takes."""
        body = bytearray()
        more = True
        try:
            async with asyncio.timeout(self._body_within_s):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        break
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > self._max_body_bytes:
                        raise TooLarge(f"the body has more than {self._max_body_bytes:,} bytes")
        except TimeoutError:
            raise Busy(f"the body did not arrive within {self._body_within_s:g} s", "send it again") from None
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        return replay


def serve(app: App, config: Config, path: str = "", refusal: Refusal | None = None) -> None:
    """Serve until interrupted. Raises InvalidInput without a token on an address that others can reach, Busy for a taken port."""
    try:
        import uvicorn
    except ModuleNotFoundError as e:
        raise Unavailable("serving over HTTP needs uvicorn", "pip install 'markdown-memory-tools[server]'") from e
    if not is_loopback(config.host) and not config.token:
        raise InvalidInput(
            f"host {config.host} can be reached by others, so a token is needed",
            "set MEMORY_TOOLS_TOKEN, or token in ~/.config/memory-tools/config.yaml",
        )
    try:
        listener = socket.create_server((config.host, config.port), family=socket.AF_INET6 if ":" in config.host else socket.AF_INET)
    except OSError as e:
        raise Busy(f"{config.host}:{config.port}: {e.strerror or e}", "choose another --port") from e
    # Connections inherit it. Without, an answer's body waits 40 ms for the acknowledgement of its head, with every request but the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    host = f"[{config.host}]" if ":" in config.host else config.host
    sys.stderr.write(f"listening on http://{host}:{listener.getsockname()[1]}{path}\n")
    sys.stderr.flush()
    guarded = Guard(app, host=config.host, token=config.token, refusal=refusal)
    settings = uvicorn.Config(guarded, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=3)
    uvicorn.Server(settings).run(sockets=[listener])


async def _refuse(error: MemoryToolsError, document: render.Json, send: Send) -> None:
    body = render.dumps(document).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if isinstance(error, Unauthorized):
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
