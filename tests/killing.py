"""A folder and a number of rounds go in: writers, a watcher, a server and searches on one workspace, killed at random; losses come out.

Each writer has a memory of its own to give feedback on, so that its count says exactly what of its acknowledged feedback is there.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from memory_tools import Memory
from memory_tools.config import Config

WRITERS = ("lib0", "lib1", "http")
NOTE_EVERY = 4  # the day's note is read anew after each entry

# Both writers do the same with the same names after a kill, as a caller does that got no answer, and say what was acknowledged.
_COMMON = """
import itertools, json, os, sys, time
root, who, first, last, acknowledged, port = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6]
told = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def say(what, n):
    os.write(told, f"{what} {n}\\n".encode())
def call(n):
    stamp = f"2026-03-05 {n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}"
    return {"tool_name": f"{who}_{n // 90}", "input": {"n": n}, "output": f"{who}-{n}", "create_time": stamp, "success": n % 3 > 0}
"""
LIBRARY = (
    _COMMON
    + """
from pathlib import Path
from memory_tools import Memory
from memory_tools.config import Config
from memory_tools.errors import Busy
def patient(act):
    while True:
        try:
            return act()
        except Busy:  # told to try again
            time.sleep(0.02)
memory = patient(lambda: Memory(config=Config(Path(root), encoder="none")))
for n in range(first, last):
    patient(lambda: memory.feedback(f"MEMORY.md#{who}", event_id=f"{who}-{n}"))
    say("feedback", n)
    patient(lambda: memory.record_tool_calls([call(n)]))
    say("call", n)
    if n % NOTE_EVERY == 0:
        patient(lambda: memory.remember(f"remembered {who} {n}", f"{who} {n}", f"{who}-{n}"))
        say("note", n)
    time.sleep(0.01)
"""
)
HTTP = (
    _COMMON
    + """
import urllib.request
def post(path, body):
    while True:
        try:
            url = f"http://127.0.0.1:{port}{path}"
            asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return json.load(answer)
        except OSError as e:  # the server was killed, or says that it is busy
            if getattr(e, "code", 503) != 503:
                raise SystemExit(e.read().decode())
            time.sleep(0.05)
        except Exception:  # an answer that was cut off
            time.sleep(0.05)
for n in range(first, last):
    post("/memory_feedback", {"used": [f"MEMORY.md#{who}"], "outcome": "success", "eventId": f"{who}-{n}"})
    say("feedback", n)
    post("/add_tool_call_result", {"tool_call_results": [call(n)]})
    say("call", n)
    if n % NOTE_EVERY == 0:
        post("/memory_remember", {"text": f"remembered {who} {n}", "heading": f"{who} {n}", "eventId": f"{who}-{n}"})
        say("note", n)
    time.sleep(0.01)
"""
)
SEARCHER = """
import os, sys, time
from pathlib import Path
from memory_tools import Memory
from memory_tools.config import Config
told = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
with Memory(config=Config(Path(sys.argv[1]), encoder="none")) as memory:
    while True:
        report = memory.search("which port do the metrics listen on", policy="relevance")
        found = bool(report.results) and report.results[0].address == "MEMORY.md#ports"
        memory.get("MEMORY.md#ports")
        os.write(told, b"search 1\\n" if found else f"miss {report.warnings}\\n".encode())
        time.sleep(0.05)
"""


@dataclass(slots=True)
class Figures:
    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    doubled: Counter[str] = field(default_factory=Counter)
    searches: int = 0
    missed: int = 0
    died: list[str] = field(default_factory=list)  # what a process said that ended by itself
    leftovers: int = 0  # temporary files of killed writers

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.kills.total()} kills ({_words(self.kills)}); acknowledged: {_words(self.acknowledged)}; "
            f"lost {self.lost.total()}, doubled {self.doubled.total()}; {self.searches} searches, {self.missed} without the answer; "
            f"{self.leftovers} temporary files left"
        )


def _words(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


class KillLoop:
    def __init__(self, folder: Path, seed: int = 7) -> None:
        self.root, self.folder = folder / "ws", folder
        self.chance = random.Random(seed)
        self.figures = Figures()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._before: dict[str, int] = {}  # bytes of acknowledgements when it was started
        (self.root / "memory").mkdir(parents=True)
        about = dict(zip(WRITERS, ("roof", "cellar", "garden"), strict=True))
        sections = "".join(f"## {who}\n\n- what {who} was told about the {word} of the house\n\n" for who, word in about.items())
        ports = "## Ports\n\nThe metrics endpoint listens on port 9464.\n"
        (self.root / "MEMORY.md").write_text(f"# Memory\n\n{sections}{ports}", encoding="utf-8")
        with Memory(config=Config(self.root, encoder="none")) as memory:
            memory.sync()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    # --- processes -----------------------------------------------------------------

    def run(self, rounds: int) -> Figures:
        names = (*WRITERS, "searcher", "watch", "serve")
        try:
            for name in names:
                self._start(name)
            for _ in range(rounds):
                chosen = self.chance.sample(names, self.chance.randint(1, len(names)))
                if self.chance.random() < 0.8:  # else some are killed while they start
                    self._wait_until_at_work(chosen)
                time.sleep(self.chance.uniform(0, 0.4))
                for name in chosen:
                    self._kill(name)
                    self.figures.kills[name] += 1
                    self._check_writer(name)
                    self._start(name)
                self.figures.rounds += 1
            for name in (*WRITERS, "searcher", "watch"):
                self._kill(name)
            # What was under way when the last kill came is tried again, as its caller would.
            for name in WRITERS:
                self._start(name, self._acknowledged(name, "feedback") + 1)
            for name in WRITERS:
                assert self.running[name].wait(120) == 0
        finally:
            for name in list(self.running):
                self._kill(name)
        self._count()
        return self.figures

    def _start(self, name: str, last: int = 10**9) -> None:
        command = [sys.executable, "-m", "memory_tools", "--workspace", str(self.root)]
        if name in WRITERS:
            first = self._first_open(name)
            code = f"NOTE_EVERY = {NOTE_EVERY}\n" + (HTTP if name == "http" else LIBRARY)
            numbers = [str(first), str(max(last, first + 1))]
            command = [sys.executable, "-c", code, str(self.root), name, *numbers, str(self._told(name)), str(self.port)]
        elif name == "searcher":
            command = [sys.executable, "-c", SEARCHER, str(self.root), str(self._told(name))]
        elif name == "watch":
            command.append("watch")
        else:
            command += ["serve", "--port", str(self.port)]
        if name in (*WRITERS, "searcher"):
            self._before[name] = self._size(name)
        path = os.pathsep.join(filter(None, (str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", ""))))
        environment = {**os.environ, "PYTHONPATH": path, "MEMORY_TOOLS_ENCODER": "none"}
        with (self.folder / f"{name}.err").open("wb") as errors:
            self.running[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)

    def _wait_until_at_work(self, names: list[str]) -> None:
        """Those of them that acknowledge something have done so since they were started."""
        limit = time.monotonic() + 20
        while time.monotonic() < limit and any(self._size(name) == self._before.get(name, 0) for name in names if name in self._before):
            time.sleep(0.02)

    def _size(self, name: str) -> int:
        path = self._told(name)
        return path.stat().st_size if path.exists() else 0

    def _kill(self, name: str) -> None:
        process = self.running.pop(name)
        if process.poll() not in (None, 0):
            said = (self.folder / f"{name}.err").read_text(encoding="utf-8", errors="replace")
            self.figures.died.append(f"{name}: {said[-1500:]}")
        process.send_signal(signal.SIGKILL)
        process.wait()

    # --- what was acknowledged, and what is there ------------------------------------------

    def _told(self, name: str) -> Path:
        return self.folder / f"{name}.acknowledged"

    def _lines(self, name: str) -> list[list[str]]:
        path = self._told(name)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [line.split(" ", 1) for line in text.split("\n")[:-1]]

    def _acknowledged(self, name: str, what: str) -> int:
        """How many different ones."""
        return len({n for kind, n in self._lines(name) if kind == what})

    def _first_open(self, name: str) -> int:
        """The first number of which something is not acknowledged."""
        done = {(kind, int(n)) for kind, n in self._lines(name)}
        n = 0
        while ("feedback", n) in done and ("call", n) in done and (n % NOTE_EVERY or ("note", n) in done):
            n += 1
        return n

    def _counted(self, name: str) -> float:
        path = self.root / "memory" / "utility-scores.json"
        scores = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return float(scores.get(f"MEMORY.md#{name}", {}).get("success_count", 0))

    def _check_writer(self, name: str) -> None:
        """Of a writer that is dead, the count is what was acknowledged, or that and the one that was under way."""
        if name in WRITERS:
            wanted = self._acknowledged(name, "feedback")
            counted = self._counted(name)
            self.figures.lost["feedback"] += max(0, int(wanted - counted))
            self.figures.doubled["feedback"] += max(0, int(counted - wanted - 1))

    def _count(self) -> None:
        figures = self.figures
        calls: Counter[str] = Counter()
        for path in (self.root / "memory" / "tools").glob("*.calls.jsonl"):
            calls.update(json.loads(line)["output"] for line in path.read_text(encoding="utf-8").split("\n")[:-1])
        notes: Counter[str] = Counter()
        for path in (self.root / "memory").glob("????-??-??.md"):
            notes.update(re.findall(r"^remembered (\w+ \d+)$", path.read_text(encoding="utf-8"), re.M))
        for name in WRITERS:
            wanted, counted = self._acknowledged(name, "feedback"), self._counted(name)
            figures.acknowledged["feedback"] += wanted
            figures.lost["feedback"] += max(0, int(wanted - counted))
            figures.doubled["feedback"] += max(0, int(counted - wanted))
            for what, there, joint in (("call", calls, "-"), ("note", notes, " ")):
                asked = {f"{name}{joint}{n}" for kind, n in self._lines(name) if kind == what}
                figures.acknowledged[what] += len(asked)
                figures.lost[what] += sum(there[one] == 0 for one in asked)
                figures.doubled[what] += sum(there[one] > 1 for one in asked)
        said = self._lines("searcher")
        figures.searches = len(said)
        figures.missed = sum(kind == "miss" for kind, _ in said)
        figures.leftovers = sum(1 for _ in self.root.rglob(".*.tmp"))
