"""HTTP requests in, one call of Memory or of tool memory each, its JSON document out: the routes, and what an error looks like on them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from memory_tools import __version__, render
from memory_tools.errors import InvalidInput, MemoryToolsError, Unavailable
from memory_tools.tool_records import kind_of
from memory_tools.verbs import VERBS

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

    from memory_tools.config import Config
    from memory_tools.resident import Resident
    from memory_tools.tool_memory import ToolMemoryStore

log = logging.getLogger("memory_tools.http")

AT_ONCE = {"tool": 16, "memory": 16}  # requests of a kind that work at once: a slow judge must not keep a search waiting
Body = Mapping[str, object]
Tools = Callable[[str | None], "ToolMemoryStore"]

_NAMES = {"type": "string", "description": "Comma-separated tool names, for example `web_search,file_reader`."}
_WORKSPACE = {"type": "string", "description": "Whose tools; `default`, or none, is the server's own workspace."}
_CALL = {
    "type": "object",
    "required": ["tool_name", "input", "output"],
    "properties": {
        "tool_name": {"type": "string"},
        "input": {"anyOf": [{"type": "object"}, {"type": "string"}]},
        "output": {"type": "string"},
        "create_time": {"type": "string", "description": "YYYY-MM-DD HH:MM:SS; now without."},
        "success": {"type": "boolean", "default": True},
        "time_cost": {"type": "number", "default": 0.0, "description": "Seconds."},
        "token_cost": {"type": "integer", "description": "Estimated without."},
        "summary": {"type": "string"},
        "evaluation": {"type": "string"},
        "score": {"type": "number", "description": "1.0 or 0.0, where the caller judges the call itself."},
    },
}


def create_app(resident: Resident) -> FastAPI:
    """The application over one memory, without the guard that serving puts in front. Raises Unavailable without the extra `server`."""
    try:
        import anyio
        from anyio import to_thread
        from fastapi import FastAPI
        from starlette.exceptions import HTTPException
        from starlette.requests import Request
        from starlette.responses import Response
    except ModuleNotFoundError as e:
        raise Unavailable(f"serving over HTTP needs FastAPI ({e})", "pip install 'markdown-memory-tools[server]'") from e

    # Its pages for people load their scripts from elsewhere, and would be given the token: /openapi.json says the same.
    app = FastAPI(title="memory-tools", version=__version__, description="Recall over Markdown memory.", docs_url=None, redoc_url=None)
    limiters = {kind: anyio.CapacityLimiter(n) for kind, n in AT_ONCE.items()}

    def answer(document: render.Json, status: int = 200) -> Response:
        return Response(render.dumps(document), status, media_type="application/json")

    async def run(path: str, work: Callable[[], tuple[render.Json, int]]) -> Response:
        kind = "tool" if path in TOOL_ROUTES else "memory"
        try:
            document, status = await to_thread.run_sync(work, limiter=limiters[kind])
        except Exception as e:  # the one place where every failure of this face becomes its document
            if not isinstance(e, MemoryToolsError):
                log.exception("%s failed", path)
            error = render.failure(e)
            return answer(refusal(path, error), error.status)
        return answer(document, status)

    def memory_route(verb: str) -> None:
        async def endpoint(request: Request) -> Response:
            body = await request.body()
            return await run(f"/{verb}", lambda: (resident.call(verb, parsed(body)), 200))

        endpoint.__annotations__.update({"request": Request, "return": Response})
        described = VERBS[verb]
        app.add_api_route(
            f"/{verb}",
            endpoint,
            methods=["POST"],
            summary=described.title,
            description=described.description,
            openapi_extra=_body_schema(described.schema()),
        )

    def tool_route(path: str, call: Callable[[Tools, Body], tuple[render.Json, int]], title: str, schema: Mapping[str, object]) -> None:
        async def endpoint(request: Request) -> Response:
            body = await request.body()
            return await run(path, lambda: call(resident.tools, parsed(body)))

        endpoint.__annotations__.update({"request": Request, "return": Response})
        app.add_api_route(path, endpoint, methods=["POST"], summary=title, openapi_extra=_body_schema(schema))

    def health() -> render.Json:
        return {"status": "ok", "version": __version__}

    async def unknown(request: Request, e: Exception) -> Response:
        status = e.status_code if isinstance(e, HTTPException) else 500
        kind = {404: "not_found", 405: "invalid", 413: "too_large"}.get(status, "internal")
        text = f"{request.method} {request.url.path}: {e.detail if isinstance(e, HTTPException) else 'failed'}"
        return answer({"error": {"type": kind, "message": text, "hint": "the routes are listed at /openapi.json"}}, status)

    for verb in VERBS:
        if verb.startswith("memory_"):
            memory_route(verb)
    for path, (call, title, schema) in TOOL_ROUTES.items():
        tool_route(path, call, title, schema)
    app.add_api_route("/health", health, methods=["GET"], summary="Whether the server answers")
    app.add_exception_handler(HTTPException, unknown)
    return app


def serve(config: Config) -> None:
    """Serve until interrupted, with the watcher beside. Raises InvalidInput without a token on an address that others can reach."""
    from memory_tools import http_serving
    from memory_tools.resident import Resident

    with Resident(config) as resident:
        http_serving.serve(create_app(resident), config, refusal=refusal)


def parsed(body: bytes) -> Body:
    """The object of a request's body. Raises InvalidInput."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise InvalidInput(f"the body is not JSON ({str(e)[:200]})", "send one JSON object") from e
    if not isinstance(found, dict):
        raise InvalidInput(f"the body is {kind_of(found)}, not a JSON object")
    return found


def refusal(path: str, error: MemoryToolsError) -> render.Json:
    """The error document; on the tool routes beside the keys that their clients read."""
    document = render.error_document(error)
    if path not in TOOL_ROUTES:
        return document
    return {"answer": error.message + (f" ({error.hint})" if error.hint else ""), "success": False, "metadata": {}, **document}


def _retrieve(tools: Tools, body: Body) -> tuple[render.Json, int]:
    report = tools(_text(body, "workspace_id")).retrieve(_text(body, "tool_names"))
    return dict(report.document()), 200


def _add(tools: Tools, body: Body) -> tuple[render.Json, int]:
    calls = body.get("tool_call_results")
    if calls is None:
        raise InvalidInput("tool_call_results: is required")
    if not isinstance(calls, list):
        raise InvalidInput(f"tool_call_results: expected a list, not {kind_of(calls)}")
    return dict(tools(_text(body, "workspace_id")).record(calls).document()), 200


def _summarize(tools: Tools, body: Body) -> tuple[render.Json, int]:
    report = tools(_text(body, "workspace_id")).summarize(_text(body, "tool_names"))
    document: render.Json = dict(report.document())
    if report.success or not report.failed:
        return document, 200
    # Nothing but failures is an error of ours, told with the same document.
    causes = "; ".join(f"{f.tool_name}: {f.reason}" for f in report.failed)
    return document | render.error_document(Unavailable(causes, "the guidelines are as before; try again")), 502


def _text(body: Body, name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name}: expected text, not {kind_of(value)}")
    return value


def _body_schema(schema: Mapping[str, object]) -> Any:  # the form that FastAPI prescribes
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": dict(schema)}}}}


def _schema(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": {"workspace_id": _WORKSPACE, **properties}}


TOOL_ROUTES: Mapping[str, tuple[Callable[[Tools, Body], tuple[render.Json, int]], str, Mapping[str, object]]] = {
    "/retrieve_tool_memory": (_retrieve, "What is known of these tools", _schema(tool_names=_NAMES)),
    "/add_tool_call_result": (
        _add,
        "Record tool calls",
        _schema(tool_call_results={"type": "array", "items": _CALL}) | {"required": ["tool_call_results"]},
    ),
    "/summary_tool_memory": (_summarize, "Distil calls into guidelines", _schema(tool_names=_NAMES)),
}
