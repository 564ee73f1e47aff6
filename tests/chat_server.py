"""A loopback server that speaks OpenAI's chat completions, well or badly by `mode`, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GOOD_EVALUATION = {"summary": "Ten results came back.", "evaluation": "It did what was asked.", "score": 1.0}
GOOD_GUIDELINE = {
    "guideline": "## Core Function\n\nSearches the web.\n\n## Parameters\n\n- `max_results`: 10 to 20\n\n## Pitfalls\n\n- none\n\n"
    "## Recommendations\n\n- keep queries short",
    "parameters": {"max_results": {"recommended": [10, 20], "avoid": [100]}},
}


class ChatServer:
    """`mode`: good, fenced, slips, slow, html, half, half_content, prose, empty, list, once_500 (one failure, then good), or a status."""

    def __init__(self) -> None:
        self.mode = "good"
        self.slow_s = 30.0
        self.asked: list[str] = []  # the questions, in the order of arrival
        self.keys: list[str | None] = []
        self.failed_once = False
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                chat.asked.append(body["messages"][-1]["content"])
                chat.keys.append(self.headers.get("authorization"))
                chat.answer(self, body)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.released = threading.Event()

    @property
    def summaries(self) -> int:
        return sum("Write a usage guideline" in question for question in self.asked)

    @property
    def evaluations(self) -> int:
        return len(self.asked) - self.summaries

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, object]) -> None:
        mode = self.mode
        if mode == "once_500" and not self.failed_once:
            self.failed_once, mode = True, "500"
        if mode == "slow":
            self.released.wait(self.slow_s)
        if mode.isdigit():
            error = {"error": {"message": f"status {mode}: key sk-{'a1' * 12} refused", "type": "test"}}
            return self._send(handler, int(mode), json.dumps(error), "application/json")
        if mode == "html":
            return self._send(handler, 200, "<html><body>Welcome</body></html>", "text/html")
        if mode == "list":
            return self._send(handler, 200, "[1, 2]", "application/json")
        whole = GOOD_GUIDELINE if "Write a usage guideline" in self.asked[-1] else GOOD_EVALUATION
        text = json.dumps(whole)
        content = {
            "fenced": f"<think>Hm, {{}}.</think>Here it is:\n```json\n{text}\n```\nAnything else?",
            "slips": text.replace('"summary"', "'summary'")[:-1] + ", // done\n}",
            "half_content": text[: len(text) // 2],
            "prose": "I think the call went rather well.",
            "empty": "",
        }.get(mode, text)
        document = json.dumps({
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
        })  # fmt: skip
        self._send(handler, 200, document[: len(document) // 2] if mode == "half" else document, "application/json")

    def _send(self, handler: BaseHTTPRequestHandler, status: int, text: str, kind: str) -> None:
        try:
            handler.send_response(status)
            handler.send_header("content-type", kind)
            handler.send_header("content-length", str(len(text.encode())))
            handler.end_headers()
            handler.wfile.write(text.encode())
        except OSError:
            handler.close_connection = True  # the client gave up waiting

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    server = ChatServer()
    try:
        yield server
    finally:
        server.close()
