"""A list of tool calls goes in; an OpenAI-compatible chat model on loopback that makes them, one a turn, and then says DONE comes out.

    python scripts/scripted_model.py FOLDER

FOLDER/calls.json: [{"name": "exec", "arguments": {…}}, …, {"say": "the answer"}, …]; an answer ends the agent's turn. Every request body is
appended to FOLDER/requests.jsonl, a line each; the port that the system chose is written to FOLDER/port. For tests of agents: no model
runs, nothing leaves this machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1])
CALLS = json.loads((FOLDER / "calls.json").read_text(encoding="utf-8"))
turns: Iterator[int] = iter(range(1_000_000))


def answer(turn: int) -> tuple[dict[str, object], str]:
    """The assistant's message of this turn and its finish reason."""
    call = CALLS[turn] if turn < len(CALLS) else {"say": "DONE"}
    if "say" in call:
        return {"role": "assistant", "content": call["say"]}, "stop"
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"], ensure_ascii=False)}
    made = {"index": 0, "id": f"call_{turn}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [made]}, "tool_calls"


class ScriptedModel(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Requests are logged to requests.jsonl, not to the terminal."""

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        with (FOLDER / "requests.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(body, ensure_ascii=False) + "\n")
        message, finish = answer(next(turns))
        base = {"id": "scripted", "created": 1, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            self._send("application/json", json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": usage}))
            return
        chunk = {**base, "object": "chat.completion.chunk"}
        first = {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
        last = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}
        self._send("text/event-stream", "".join(f"data: {json.dumps(event)}\n\n" for event in (first, last)) + "data: [DONE]\n\n")

    def _send(self, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedModel)
    (FOLDER / "port").write_text(str(server.server_address[1]), encoding="utf-8")
    server.serve_forever()
