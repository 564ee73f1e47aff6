"""A folder and a length go in; a real server under many clients, or a watcher under many edits, runs there; its figures come out.

Memory and file descriptors are read from /proc, so this is for Linux.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
WORDS = ("roof", "cellar", "garden", "boiler", "ticket", "invoice", "meeting", "printer", "window", "ladder", "bicycle", "passport")


@dataclass(slots=True)
class Growth:
    """Samples of one process over time."""

    resident_mb: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    index_mb: list[float] = field(default_factory=list)

    def sample(self, pid: int, index: Path) -> None:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split(" ")[1])
        self.resident_mb.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
        self.descriptors.append(len(os.listdir(f"/proc/{pid}/fd")))  # noqa: PTH208  # many times a second
        self.threads.append(len(os.listdir(f"/proc/{pid}/task")))  # noqa: PTH208
        self.index_mb.append(sum(p.stat().st_size for p in index.iterdir() if p.is_file()) / 1e6)

    def settled(self, of: list[float] | list[int]) -> tuple[float, float]:
        """The most in the second fifth and in the last one: the first fifth warms up."""
        fifth = max(1, len(of) // 5)
        return max(of[fifth : 2 * fifth]), max(of[-fifth:])

    def __str__(self) -> str:
        parts = (
            ("resident MB", self.resident_mb),
            ("descriptors", self.descriptors),
            ("threads", self.threads),
            ("index MB", self.index_mb),
        )
        return ", ".join("{} {:.1f} -> {:.1f}".format(name, *self.settled(of)) for name, of in parts)


@dataclass(slots=True)
class Load:
    clients: int
    took_s: float = 0.0
    latencies_ms: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    growth: Growth = field(default_factory=Growth)

    @property
    def requests(self) -> int:
        return sum(map(len, self.latencies_ms.values()))

    def __str__(self) -> str:
        rows = [
            f"{what} {len(all)}: p50 {sorted(all)[len(all) // 2]:.0f} ms, p99 {sorted(all)[len(all) * 99 // 100]:.0f} ms"
            for what, all in sorted(self.latencies_ms.items())
            if all
        ]
        head = f"{self.clients} clients, {self.took_s:.0f} s, {self.requests} requests, {len(self.errors)} errors"
        return "; ".join((head, *rows, str(self.growth)))


def notes(root: Path, files: int, seed: int = 3) -> None:
    chance = random.Random(seed)
    (root / "memory").mkdir(parents=True, exist_ok=True)
    for n in range(files):
        sections = (f"## Topic {n}-{s}\n\n- {' '.join(chance.choices(WORDS, k=12))} {n}-{s}\n" for s in range(5))
        (root / "memory" / f"note-{n}.md").write_text(f"# Note {n}\n\n" + "\n".join(sections), encoding="utf-8")
    (root / "MEMORY.md").write_text("# Memory\n\n## Ports\n\nThe metrics endpoint listens on port 9464.\n", encoding="utf-8")


def environment(encoder: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE.parent), "MEMORY_TOOLS_ENCODER": encoder, "OPENBLAS_NUM_THREADS": "1"}


def serve(folder: Path, seconds: float, clients: int = 50, encoder: str = "none") -> Load:
    """Searches, feedback and records of many clients at once against `memory-tools serve` on loopback."""
    root = folder / "ws"
    notes(root, 60)
    command = [sys.executable, "-m", "memory_tools", "--workspace", str(root), "serve", "--port", "0"]
    with (folder / "serve.err").open("w+", encoding="utf-8") as said:
        server = subprocess.Popen(command, stderr=said, stdout=subprocess.DEVNULL, env=environment(encoder))
        try:
            port = _port(folder / "serve.err", server)
            load = Load(clients)
            _run(load, port, seconds, server.pid, root / ".memory-tools")
        finally:
            server.terminate()
            server.wait(20)
    trouble = (folder / "serve.err").read_text(encoding="utf-8").split("\n", 1)[1].strip()
    if trouble:
        load.errors.append(trouble[-2000:])
    return load


def _port(said: Path, server: subprocess.Popen[bytes]) -> int:
    for _ in range(600):
        text = said.read_text(encoding="utf-8")
        if "listening on" in text and text.endswith("\n"):
            return int(text.split("\n", 1)[0].rsplit(":", 1)[1])
        assert server.poll() is None, text
        time.sleep(0.1)
    raise AssertionError("the server does not listen")


def _ask(connection: http.client.HTTPConnection, path: str, body: dict[str, object]) -> None:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise OSError(f"{path}: {answer.status} {text[:300]!r}")


def _run(load: Load, port: int, seconds: float, pid: int, index: Path) -> None:
    end = time.monotonic() + seconds
    together = threading.Lock()

    def client(number: int) -> None:
        chance = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        n = 0
        while time.monotonic() < end:
            n += 1
            what = chance.choices(("search", "feedback", "record"), (70, 15, 15))[0]
            note, section = chance.randrange(60), chance.randrange(5)
            path, body = {
                "search": ("/memory_search", {"query": " ".join(chance.choices(WORDS, k=3)), "maxResults": 5}),
                "feedback": (
                    "/memory_feedback",
                    {"used": [f"memory/note-{note}.md#topic-{note}-{section}"], "outcome": "success", "eventId": f"{number}-{n}"},
                ),
                "record": (
                    "/add_tool_call_result",
                    {"tool_call_results": [{"tool_name": f"tool{number % 5}", "input": {"n": n}, "output": f"{number}-{n}"}]},
                ),
            }[what]
            started = time.perf_counter()
            try:
                _ask(connection, path, body)
            except (OSError, http.client.HTTPException) as e:
                with together:
                    load.errors.append(f"{what}: {e}")
                connection.close()
            with together:
                load.latencies_ms.setdefault(what, []).append(1000 * (time.perf_counter() - started))
        connection.close()

    threads = [threading.Thread(target=client, args=(n,)) for n in range(load.clients)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if time.monotonic() < end:
            load.growth.sample(pid, index)
        time.sleep(0.25)
    load.took_s = time.monotonic() - started


# A day and a night of a watcher in a few minutes: its own waits are divided by as much as the edits come faster.
WATCH = """
import json, random, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[4])
import loading
from memory_tools import watch
from memory_tools.config import Config
from memory_tools.memory import Memory
root, edits, encoder = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
HOURS = 24
faster = HOURS * 3600 / edits / 0.03
watch.DEBOUNCE_S, watch.RESCAN_S, watch.DAY_S = watch.DEBOUNCE_S / faster, watch.RESCAN_S / faster, watch.DAY_S / faster
chance, seen = random.Random(5), threading.Event()
growth, unseen = loading.Growth(), 0
with Memory(config=Config(root, encoder=encoder)) as memory:
    memory.sync()
    for n in range(20):
        memory.feedback(f"memory/note-{n}.md#topic-{n}-0")
    watcher = watch.Watcher(memory, lambda change: seen.set(), debounce_s=watch.DEBOUNCE_S).start()
    watcher.wait_until_looked(60)
    import os
    for n in range(edits):
        assert not watcher.died, watcher.problem
        seen.clear()
        note = root / "memory" / f"note-{chance.randrange(20)}.md"
        lines = note.read_text(encoding="utf-8").split("\\n")
        # Another text each time, of words that came before: new ones fill the cache of words, up to its bound, and would hide a leak.
        lines[chance.choice([4, 8, 12])] = f"- {' '.join(chance.choices(loading.WORDS, k=12))} {n // 100} {n % 100}"
        note.write_text("\\n".join(lines), encoding="utf-8")
        limit = time.monotonic() + 20
        # A look that carries the scores along may take an edit in without telling of it.
        while not seen.wait(0.05) and memory.status().pending_files and time.monotonic() < limit:
            pass
        unseen += not seen.is_set() and memory.status().pending_files > 0
        if n % max(1, edits // 200) == 0:
            growth.sample(os.getpid(), root / ".memory-tools")
    watcher.stop()
    assert not watcher.died and not watcher.polling, watcher.problem
    ok = memory.check().ok
print(json.dumps([growth.resident_mb, growth.descriptors, growth.threads, growth.index_mb, unseen, ok]))
"""


@dataclass(slots=True)
class Watched:
    edits: int
    took_s: float
    unseen: int
    clean: bool
    growth: Growth

    def __str__(self) -> str:
        check = "check clean" if self.clean else "check NOT clean"
        return f"24 simulated hours, {self.edits} edits in {self.took_s:.0f} s, {self.unseen} unseen, {check}; {self.growth}"


def watch(folder: Path, edits: int, encoder: str = "none") -> Watched:
    """A watcher over 20 notes that are edited one after the other, each edit waited for."""
    root = folder / "ws"
    notes(root, 20)
    command = [sys.executable, "-c", WATCH, str(root), str(edits), encoder, str(HERE)]
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=environment(encoder), timeout=3000)
    assert done.returncode == 0, done.stderr
    *samples, unseen, clean = json.loads(done.stdout)
    return Watched(edits, time.monotonic() - started, unseen, clean, Growth(*samples))
