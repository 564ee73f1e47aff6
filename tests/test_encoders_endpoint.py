"""The OpenAI-compatible encoder against a real server on the loopback interface that plays each kind of answer."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_tools import Memory, freshness
from memory_tools.encoders import open_encoder
from memory_tools.encoders.endpoint import Endpoint, _batches
from memory_tools.encoders.posting import Pace
from memory_tools.errors import InvalidInput, Unavailable

KEY = "sk-test-4f9a77c1d2"
NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0  # announce that many bytes more than are sent
    silent: bool = False  # say nothing at all until the client gives up


@dataclass
class Asked:
    path: str
    authorization: str | None
    model: str
    texts: list[str]


class Played:
    """A server that gives the prepared answers in turn, and good vectors once they are used up."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[Answer | Callable[[Asked], Answer]] = []
        self.asked: list[Asked] = []
        self.released = threading.Event()
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = Asked(self.path, self.headers.get("Authorization"), document["model"], document["input"])
                played.asked.append(asked)
                answer = played.answers.pop(0) if played.answers else good
                if callable(answer):
                    answer = answer(asked)
                if answer.silent:
                    played.released.wait(10)
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body) + answer.cut))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(answer.body)
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def close(self) -> None:
        if self.released.is_set():
            return
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def vector_of(text: str) -> list[float]:
    return [float(len(text)), float(sum(map(ord, text)) % 97 + 1), 3.0]


def listed(items: Sequence[object]) -> Answer:
    return Answer(body=json.dumps({"object": "list", "data": items}).encode())


def good(asked: Asked) -> Answer:
    return listed([{"index": i, "embedding": vector_of(text)} for i, text in enumerate(asked.texts)])


def refused(status: int, message: str, code: str = "", **headers: str) -> Answer:
    return Answer(status, json.dumps({"error": {"message": message, "code": code}}).encode(), headers)


@pytest.fixture
def played() -> Iterator[Played]:
    server = Played()
    yield server
    server.close()


@dataclass
class Waits:
    """A clock that notes how long was waited, and does not wait."""

    seconds: list[float] = field(default_factory=list)

    def pace(self, attempts: int, timeout_s: float) -> Pace:
        return Pace(attempts, timeout_s, longest_wait_s=30.0, sleep=self.seconds.append, jitter=lambda: 0.5, now=lambda: NOW)


def encoder(
    played: Played,
    waits: Waits | None = None,
    model: str = "some-model",
    api_key: str | None = KEY,
    attempts: int = 4,
    timeout_s: float = 5.0,
) -> Endpoint:
    paced = (waits or Waits()).pace(attempts, timeout_s)
    return Endpoint(f"{played.url}#{model}", api_key, patient=paced, quick=paced)


def unit(text: str) -> np.ndarray:
    vector = np.array(vector_of(text))
    return vector / np.linalg.norm(vector)


def test_vectors_come_back_as_unit_rows_in_the_order_of_the_texts(played: Played) -> None:
    texts = ["one", "", "three 三", " \n"]
    vectors = encoder(played).encode(texts, "passage")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[[0, 2]], [unit("one"), unit("three 三")], rtol=1e-6)
    assert not vectors[[1, 3]].any()
    assert [(asked.path, asked.model, asked.texts) for asked in played.asked] == [("/v1/embeddings", "some-model", ["one", "three 三"])]
    assert played.asked[0].authorization == f"Bearer {KEY}"


def test_an_answer_in_another_order_is_put_right_by_its_index(played: Played) -> None:
    played.answers = [lambda asked: listed([{"index": i, "embedding": vector_of(asked.texts[i])} for i in (2, 0, 1)])]
    np.testing.assert_allclose(encoder(played).encode(["a", "bb", "ccc"], "passage"), [unit("a"), unit("bb"), unit("ccc")], rtol=1e-6)


def test_a_server_that_leaves_the_index_out_keeps_the_order(played: Played) -> None:
    played.answers = [lambda asked: listed([{"embedding": vector_of(text)} for text in asked.texts])]
    np.testing.assert_allclose(encoder(played).encode(["a", "bb"], "passage"), [unit("a"), unit("bb")], rtol=1e-6)


def test_many_texts_go_in_batches_and_none_is_lost(played: Played) -> None:
    texts = [f"text {i}" for i in range(250)]
    np.testing.assert_allclose(encoder(played).encode(texts, "passage"), [unit(text) for text in texts], rtol=1e-6)
    assert [len(asked.texts) for asked in played.asked] == [96, 96, 58]


def test_the_dimension_is_asked_once_and_known_from_then_on(played: Played) -> None:
    opened = encoder(played)
    assert (opened.dimension, opened.dimension) == (3, 3)
    assert len(played.asked) == 1


def test_a_known_dimension_is_not_asked_for_and_another_one_refused(played: Played) -> None:
    """case 7"""
    address = f"openai:{played.url}#some-model"
    opened = open_encoder(address, dimension=3)
    assert opened is not None
    assert opened.dimension == 3
    assert played.asked == []
    assert opened.encode(["a"], "query").shape == (1, 3)
    changed = open_encoder(address, dimension=4)
    assert changed is not None
    with pytest.raises(Unavailable, match="a vector of 3 numbers after vectors of 4"):
        changed.encode(["a"], "query")


def test_its_cosines_are_measured_with_two_requests_and_kept(played: Played, tmp_path: Path) -> None:
    first = open_encoder(f"openai:{played.url}#some-model", cache_dir=tmp_path)
    assert first is not None
    found = first.cosines
    assert [len(asked.texts) for asked in played.asked] == [32, 32]
    again = open_encoder(f"openai:{played.url}#some-model", cache_dir=tmp_path)
    assert again is not None
    assert again.cosines == found
    assert len(played.asked) == 2


def test_without_a_key_no_authorization_is_sent(played: Played) -> None:
    encoder(played, api_key=None).encode(["a"], "query")
    assert played.asked[0].authorization is None


def test_queries_and_passages_get_the_prefixes_that_the_model_wants(played: Played) -> None:
    opened = encoder(played, model="nomic-embed-text:latest")
    opened.encode(["cats"], "query")
    opened.encode(["cats"], "passage")
    assert [asked.texts for asked in played.asked] == [["search_query: cats"], ["search_document: cats"]]


def test_a_long_text_is_cut_and_a_lone_surrogate_replaced(played: Played) -> None:
    encoder(played).encode(["x" * 1_000_000, "bad \ud800 half"], "passage")
    assert [len(text) for text in played.asked[0].texts] == [6_000, 10]
    assert played.asked[0].texts[1] == "bad ? half"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again_with_growing_waits(played: Played, status: int) -> None:
    played.answers = [refused(status, "busy"), refused(status, "busy")]
    waits = Waits()
    encoder(played, waits).encode(["a"], "passage")
    assert waits.seconds == [0.375, 0.75]  # 0.5 and 1 s, of which the jitter takes a quarter away here


def test_tries_are_bounded_and_the_servers_words_are_told(played: Played) -> None:
    """case 8"""
    played.answers = [refused(503, "model is loading") for _ in range(9)]
    with pytest.raises(Unavailable, match=r"HTTP 503: model is loading \(tried 4 times\)"):
        encoder(played).encode(["a"], "passage")
    assert len(played.asked) == 4


@pytest.mark.parametrize(("value", "waited"), [("7", 7.0), ("Thu, 05 Mar 2026 12:00:09 GMT", 9.0), ("0", 0.375), ("soon", 0.375)])
def test_retry_after_is_kept_as_seconds_or_as_a_date(played: Played, value: str, waited: float) -> None:
    played.answers = [refused(429, "slow down", **{"Retry-After": value})]
    waits = Waits()
    encoder(played, waits).encode(["a"], "passage")
    assert waits.seconds == [waited]


def test_a_server_that_asks_for_an_hour_is_not_waited_for(played: Played) -> None:
    played.answers = [refused(429, "slow down", **{"Retry-After": "3600"})]
    waits = Waits()
    with pytest.raises(Unavailable, match="asks to wait 3600 s"):
        encoder(played, waits).encode(["a"], "passage")
    assert waits.seconds == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (refused(401, "Incorrect API key"), "HTTP 401: Incorrect API key"),
        (refused(403, "not yours"), "HTTP 403: not yours"),
        (refused(429, "You exceeded your current quota", "insufficient_quota"), "HTTP 429: You exceeded your current quota"),
        (refused(404, "model not found"), "HTTP 404: model not found"),
        (refused(400, "input too long"), "HTTP 400: input too long"),
        (Answer(413, b"<html>\n too large</html>"), "HTTP 413: <html> too large</html>"),
        (Answer(200, b"<html>hello</html>"), "the answer is not JSON"),
        (Answer(200, b"[" * 100_000), "the answer is not JSON"),
        (Answer(200, b"[1, 2]"), "has no list `data`"),
        (Answer(200, b'{"data": [7]}'), "has no list `data`"),
        (listed([]), "0 vectors for 1 texts"),
        (listed([{"index": 5, "embedding": [1.0]}]), "`index` numbers are not 0 to 0"),
        (listed([{"index": 0, "embedding": "AAAA"}]), "not a list of numbers"),
        (listed([{"index": 0, "embedding": []}]), "not a list of numbers"),
        (listed([{"index": 0, "embedding": [1.0, None]}]), "holds null"),
        (listed([{"index": 0, "embedding": [1.0, float("nan")]}]), "holds NaN"),
    ],
)
def test_what_does_not_mend_itself_ends_at_once(played: Played, answer: Answer, told: str) -> None:
    played.answers = [answer]
    waits = Waits()
    with pytest.raises(Unavailable) as caught:
        encoder(played, waits).encode(["a"], "passage")
    assert told in str(caught.value)
    assert (len(played.asked), waits.seconds) == (1, [])


def test_a_dimension_that_changes_between_batches_is_refused(played: Played) -> None:
    """case 7"""
    opened = encoder(played)
    opened.encode(["a"], "passage")
    played.answers = [listed([{"index": 0, "embedding": [1.0, 2.0]}])]
    with pytest.raises(Unavailable, match="a vector of 2 numbers after vectors of 3"):
        opened.encode(["a"], "passage")


def test_a_dimension_that_differs_within_one_answer_is_refused(played: Played) -> None:
    played.answers = [listed([{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}])]
    with pytest.raises(Unavailable, match="vector of"):
        encoder(played).encode(["a", "b"], "passage")


def test_an_answer_that_breaks_off_is_asked_for_again(played: Played) -> None:
    whole = good(Asked("", None, "", ["a"]))
    played.answers = [Answer(200, whole.body, cut=10), Answer(200, whole.body[:-10], cut=10)]
    np.testing.assert_allclose(encoder(played).encode(["a"], "passage"), [unit("a")], rtol=1e-6)
    assert len(played.asked) == 3


def test_a_silent_server_is_given_up_after_the_timeout(played: Played) -> None:
    played.answers = [Answer(silent=True), Answer(silent=True)]
    with pytest.raises(Unavailable, match=r"no answer within 0.2 s \(tried 2 times\)"):
        encoder(played, timeout_s=0.2, attempts=2).encode(["a"], "query")


def test_a_server_that_is_not_there_is_named_without_waiting(played: Played) -> None:
    waits = Waits()
    opened = encoder(played, waits)
    played.close()
    with pytest.raises(Unavailable, match=r"embeddings at 127\.0\.0\.1:\d+: cannot connect") as caught:
        opened.encode(["a"], "query")
    assert "is the server running" in caught.value.hint
    assert waits.seconds == []


def test_a_redirect_to_another_host_is_not_followed(played: Played) -> None:
    other = Played()
    try:
        played.answers = [Answer(307, headers={"Location": f"{other.url}/embeddings"})]
        with pytest.raises(Unavailable, match="which is not followed"):
            encoder(played).encode(["my secret note"], "passage")
        assert other.asked == []
    finally:
        other.close()


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert encoder(played).encode(["a"], "query").any()


@pytest.mark.parametrize(
    "answer",
    [
        refused(401, f"Incorrect API key provided: {KEY}"),
        Answer(400, b"x" * 290 + KEY.encode() * 5),  # cut in the middle of the key, were it cut first
        Answer(200, b"y" * 70 + KEY.encode()),
        Answer(302, headers={"Location": f"https://elsewhere.example/?key={KEY}"}),
    ],
)
def test_the_key_is_in_no_error_no_log_and_no_name(played: Played, answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    played.answers = [answer]
    opened = encoder(played)
    with pytest.raises(Unavailable) as caught:
        opened.encode(["a"], "passage")
    shown = [str(caught.value), caught.value.hint, repr(caught.value.__context__), caplog.text, opened.name, repr(opened)]
    assert not [text for text in shown if "sk-test" in text]


@pytest.mark.parametrize(
    "address",
    ["", "http://localhost:1/v1", "#model", "ftp://host/v1#m", "http://#m", "http://host:port/v1#m", "http://[::1/v1#m", "http://a b/v1#m",
     "http://user:secret@host/v1#m"],
)  # fmt: skip
def test_an_address_that_cannot_work_is_refused_at_once(address: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_encoder(f"openai:{address}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-line\nbreak", "sk with space", "sk-ключ"])
def test_a_key_that_would_break_the_header_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_encoder("openai:http://localhost:1/v1#m", api_key=key)
    assert key not in str(caught.value)


def test_the_name_holds_server_and_model_and_no_query(played: Played) -> None:
    opened = Endpoint("https://host:8443/openai/v1/?token=abc#text-embedding-3-small")
    assert opened.name == "openai:host:8443/openai/v1#text-embedding-3-small/1"


@given(st.lists(st.integers(min_value=1, max_value=6_000), max_size=300))
def test_batches_hold_every_text_once_and_stay_within_their_bounds(sizes: list[int]) -> None:
    texts = [str(i).ljust(size, "x") for i, size in enumerate(sizes)]
    batches = _batches(texts)
    assert [text for batch in batches for text in batch] == texts
    assert all(0 < len(batch) <= 96 and sum(map(len, batch)) <= 96_000 for batch in batches)


def test_garbage_of_any_kind_is_an_error_of_ours(played: Played) -> None:
    @given(st.binary(max_size=40), st.sampled_from([200, 201, 204, 301, 400, 401, 429, 500, 599]))
    def never_a_traceback(body: bytes, status: int) -> None:
        played.answers = [Answer(status, b"" if status == 204 else body)] * 2
        with suppress(Unavailable):
            encoder(played, attempts=2).encode(["a"], "passage")
        played.answers = []

    never_a_traceback()


def test_an_endpoint_that_comes_up_after_the_first_search_is_used_from_then_on(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every search failed with an AssertionError until a note changed: what was read of the index had been read without vectors."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "MEMORY.md").write_text("# Memory\n\n- the deploy goes out on Tuesday\n")
    monkeypatch.setattr(freshness, "RACY_NS", 0)  # or each look at a file made just now is a change
    name = f"openai:{played.url}#some-model"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    with Memory(tmp_path / "ws", encoder=name) as memory:
        memory.sync()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))  # the model's dimension is not known
    with Memory(tmp_path / "ws", encoder=name) as memory:
        played.answers = [refused(404, "not yet")] * 5
        assert "encoder_unavailable" in memory.search("deploy").degraded
        played.answers = []
        report = memory.search("deploy", min_score=0.0)
        assert report.degraded == ()
        assert "meaning" in report.results[0].why
