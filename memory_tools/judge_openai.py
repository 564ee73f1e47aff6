"""Calls to an OpenAI-compatible chat endpoint and back to evaluations and guidelines, at a bounded pace and with bounded retries."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from memory_tools.errors import InvalidInput, Unavailable
from memory_tools.judge_answers import read_evaluation, read_guideline
from memory_tools.judge_prompts import SYSTEM, evaluation_prompt, summary_prompt
from memory_tools.judge_values import Evaluation, Failure, Guideline, SummaryRequest
from memory_tools.masking import mask
from memory_tools.tool_records import ToolCall
from memory_tools.tool_settings import ToolSettings

if TYPE_CHECKING:
    from openai import OpenAI

log = logging.getLogger("memory_tools.judge")

T = TypeVar("T", Evaluation, Guideline)
MAX_AT_ONCE = 8  # requests under way
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 8.0
GIVE_UP_AFTER = 3  # calls in a row without any answer: the endpoint is down, and the rest waits for the next run
_REFUSED = (401, 403, 404, 405)  # statuses that mean every request
_REPEATED = (408, 409, 425, 429)  # statuses below 500 that another attempt can change


class Pace:
    """Starts lie at least `interval_s` apart, over all threads of the process that share it."""

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self._interval_s, self._clock, self._sleep = interval_s, clock, sleep
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self) -> None:
        with self._lock:
            now = self._clock()
            start = max(now, self._next)
            self._next = start + self._interval_s
        self._sleep(max(0.0, start - now))


class _Down(Exception):
    """No attempt can help: the endpoint does not answer, or refuses this client. The text is the reason."""


class OpenAIJudge:
    """`instant` is False: it is never asked while a file is locked. Raises Unavailable where the client is not installed."""

    instant = False

    def __init__(self, settings: ToolSettings) -> None:
        try:
            import openai
        except ModuleNotFoundError as e:
            raise Unavailable(f"judge openai needs the openai client ({e})", "pip install 'markdown-memory-tools[openai]'") from e
        assert settings.llm_model is not None
        self.name = settings.llm_model
        self._settings = settings
        self._openai = openai
        # A key from the environment is for OpenAI itself and is not sent to another endpoint.
        key = settings.llm_api_key or ("none" if settings.llm_base_url else None)
        try:
            # Attempts are counted here: the client does not repeat an answer that it cannot read.
            self._client: OpenAI = openai.OpenAI(
                api_key=key, base_url=settings.llm_base_url, timeout=settings.judge_timeout_s, max_retries=0
            )
        except openai.OpenAIError as e:
            raise Unavailable(f"judge openai: {e}", "set MEMORY_TOOLS_LLM_API_KEY") from e
        self._evaluations = Pace(settings.evaluation_interval_s)
        self._summaries = Pace(settings.summary_interval_s)

    def evaluate(self, calls: Sequence[ToolCall], earlier: Sequence[ToolCall]) -> list[Evaluation | Failure]:
        return self._all([evaluation_prompt(c) for c in calls], self._evaluations, read_evaluation)

    def summarize(self, requests: Sequence[SummaryRequest]) -> list[Guideline | Failure]:
        return self._all([summary_prompt(r) for r in requests], self._summaries, read_guideline)

    def _all(self, prompts: list[str], pace: Pace, read: Callable[[str], T]) -> list[T | Failure]:
        if not prompts:
            return []
        state = _Run()
        with ThreadPoolExecutor(min(MAX_AT_ONCE, len(prompts)), thread_name_prefix="judge") as pool:
            return list(pool.map(lambda prompt: self._one(prompt, pace, read, state), prompts))

    def _one(self, prompt: str, pace: Pace, read: Callable[[str], T], state: _Run) -> T | Failure:
        reason = ""
        for attempt in range(self._settings.judge_attempts):
            if state.down:
                return Failure(state.down)
            if attempt:
                time.sleep(min(MAX_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempt - 1)))
            pace.wait()
            if state.down:
                return Failure(state.down)
            try:
                answer = self._ask(prompt)
                state.answered()
                return read(answer)
            except InvalidInput as e:
                reason = f"{self.name}: {e.message}"
            except _Down as e:
                state.down = f"{self.name}: {e}"
                return Failure(state.down)
            except _Useless as e:
                return Failure(f"{self.name}: {e}")
            except _NoAnswer as e:
                reason = f"{self.name}: {e}"
        if state.unanswered(reason):
            log.warning("judge gives up for now: %s", reason)
        return Failure(reason)

    def _ask(self, prompt: str) -> str:
        openai = self._openai
        try:
            reply = self._client.chat.completions.create(
                model=self.name,
                messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}],
            )
            content = reply.choices[0].message.content
        except openai.APITimeoutError as e:
            raise _NoAnswer(f"no answer within {self._settings.judge_timeout_s:g} s") from e
        except openai.APIConnectionError as e:
            raise _NoAnswer(f"cannot be reached ({e.__cause__ or e})") from e
        except openai.APIStatusError as e:
            what = f"answered {e.status_code} ({_brief(e.message)})"
            kind = _Down if e.status_code in _REFUSED else _NoAnswer
            raise (kind if kind is _Down or e.status_code >= 500 or e.status_code in _REPEATED else _Useless)(what) from e
        except openai.APIError as e:
            raise _NoAnswer(f"answered what is not a chat completion ({_brief(str(e))})") from e
        except Exception as e:  # the client passes bodies of another form through: HTML, half a document, a list
            raise _NoAnswer(f"answered what is not a chat completion ({type(e).__name__}: {_brief(str(e))})") from e
        if not isinstance(content, str) or not content.strip():
            raise InvalidInput("the answer is empty")
        return content


class _Useless(Exception):
    """Another attempt with the same question cannot help. The text is the reason."""


class _NoAnswer(Exception):
    """This attempt failed, another may not. The text is the reason."""


class _Run:
    """What the requests of one batch share: whether the endpoint seems to be down."""

    def __init__(self) -> None:
        self.down = ""
        self._in_a_row = 0
        self._lock = threading.Lock()

    def answered(self) -> None:
        with self._lock:
            self._in_a_row = 0

    def unanswered(self, reason: str) -> bool:
        """True once, when so many went unanswered that the rest is not tried."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row >= GIVE_UP_AFTER and not self.down:
                self.down = reason
                return True
            return False


def _brief(text: str) -> str:
    text = mask(" ".join(text[:2_000].split())).text  # endpoints repeat the key that they refuse
    return text if len(text) <= 160 else text[:159] + "…"
