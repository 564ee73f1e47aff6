"""Generated notes and known edits in; out, one JSON line per kind of edit, how often a history stays with its memory.

Notes in English and Chinese are written from small stocks of phrases; each section gets a count of its own in utility-scores.json. Then an
edit is made to the files, once or several times, with a sync and a recalculation after each (`--at-once`: after the last one only), and
with the index kept or deleted before. `kept`: share of the edited sections whose count is still theirs; `wrong`: share of all sections
that have another's.

    python benchmarks/identity.py                     all kinds of edits, 12 seeds, about two minutes
    python benchmarks/identity.py --kind "move" --seeds 50 --first-seed 1000
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from memory_tools import Memory
from memory_tools.sections import parse

ENGLISH = (
    "The deploy script|A new colleague|The landlord|The weekly report|The staging database|My sister|The vendor|An old job|The bill|"
    "The coffee machine|The best customer|The backup server|Grandma|The checklist|A flaky test|The parser|The bike|Someone from legal",
    "needs to be restarted|was moved to another folder|prefers short answers|fails when the disk is full|asked for a refund|arrives late|"
    "should never run twice|is kept for thirty days|got much faster|depends on an old library|must be signed twice|was painted blue",
    "since the outage in March|because of the new contract|on Tuesdays|before the holidays|after the third attempt|near the station|"
    "with the green label|according to the handbook|unless it rains|when nobody is watching|for the garden|during the night shift",
)
CHINESE = (
    "部署脚本|新来的同事|房东|季度报告|测试数据库|我妹妹|供应商|旧的定时任务|计费页面|咖啡机|最大的客户|备份服务器|外婆|评审清单|不稳定的测试|"
    "解析器|保险单|自行车|法务同事|路由器|小区物业|缓存层|监控面板",
    "需要重新启动|搬到了另一个文件夹|喜欢简短的回答|磁盘满时会失败|要求退款|会晚点到|不能运行两次|保留三十天|变快了很多|依赖一个旧库|"
    "必须两个人签字|刷成了蓝色|经常丢失设置|超出了预算|还没有负责人",
    "因为三月的故障|按照新合同|每逢周二|在节假日之前|第三次尝试之后|就在车站旁边|贴着绿色标签|手册里写得很清楚|除非下雨|没人看的时候|"
    "为了花园|夜班期间|和宝拉商量好了|直到另行通知|下个月再确认",
)
HEADINGS = ("Notes", "Deploy", "Decisions", "Todo", "备份", "偏好", "API", "会议", "Follow up", "环境", "Ideas", "Log")


@dataclass
class Memo:
    count: int  # 0: no memory that was ever used
    heading: str
    lines: list[str]


@dataclass
class File:
    path: str
    memos: list[Memo] = field(default_factory=list)
    newline: str = "\n"

    def text(self) -> str:
        parts = [f"## {m.heading}\n\n" + "".join(f"- {line}\n" for line in m.lines) + "\n" for m in self.memos]
        return (f"# {Path(self.path).stem}\n\n" + "".join(parts)).replace("\n", self.newline)


class World:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        counts = iter(range(1, 100))
        self.files = [
            File(f"memory/2026-03-{day:02}.md", [Memo(next(counts), self.dice.choice(HEADINGS), self.lines()) for _ in range(6)])
            for day in range(1, 5)
        ]

    def line(self) -> str:
        stock, gap, end = (ENGLISH, " ", ".") if self.dice.random() < 0.5 else (CHINESE, "", "。")
        return gap.join(self.dice.choice(part.split("|")) for part in stock) + end

    def lines(self) -> list[str]:
        return [self.line() for _ in range(self.dice.randint(1, 2))]

    def varied(self, line: str, share: float) -> str:
        parts = line.split(" ") if line.isascii() else list(line)
        for i in self.dice.sample(range(len(parts)), max(1, round(share * len(parts)))):
            parts[i] = self.dice.choice(["then", "later", "maybe"] if line.isascii() else ["新", "改", "再"])
        return (" " if line.isascii() else "").join(parts)

    def edit(self, kind: str) -> list[Memo]:
        """Make the edit; returns the memories that it touched."""
        file = self.dice.choice([f for f in self.files if len(f.memos) > 1])
        memo = self.dice.choice(file.memos)
        at = file.memos.index(memo)
        whole_file = False
        for part in kind.split(" + "):
            if part == "rename":
                memo.heading = self.dice.choice([memo.heading + " v2", "Something else", memo.heading + "记录"])
            elif part == "twin above":
                file.memos.insert(at, Memo(0, memo.heading, self.lines()))
            elif part == "reorder":
                self.dice.shuffle(file.memos)
                whole_file = True
            elif part == "move":
                file.memos.remove(memo)
                self.dice.choice([f for f in self.files if f is not file]).memos.append(memo)
            elif part.startswith("body "):
                memo.lines = [self.varied(line, int(part.split()[1]) / 100) for line in memo.lines]
            elif part == "append":
                memo.lines.append(self.line())
            elif part == "split":
                leaves = memo.lines.pop() if len(memo.lines) > 1 and len(memo.lines[-1]) < len("".join(memo.lines[:-1])) else self.line()
                file.memos.insert(at + 1, Memo(0, "Details", [leaves]))
            elif part == "merge":
                other = file.memos[at - 1] if at else file.memos[1]
                file.memos.remove(other)
                memo.lines += other.lines
                memo.count += other.count
            elif part == "rename file":
                file.path = file.path.replace(".md", "-notes.md")
                whole_file = True
            elif part == "white space":
                file.newline = "\r\n" if file.newline == "\n" else "\n"
                whole_file = True
            elif part == "delete":
                file.memos.remove(memo)
                return []
            elif part == "replace":  # a delete, and something else in its place
                file.memos[at] = Memo(0, self.dice.choice([h for h in HEADINGS if h != memo.heading]), self.lines())
                return []
        return list(file.memos) if whole_file else [memo]

    def write(self, root: Path) -> None:
        for old in (root / "memory").glob("*.md"):
            old.unlink()
        for file in self.files:
            (root / file.path).write_bytes(file.text().encode())

    def addressed(self) -> list[tuple[str, Memo]]:
        return [
            (section.address, memo)
            for file in self.files
            for section, memo in zip(parse(file.path, file.text()).sections[1:], file.memos, strict=True)
        ]


SIMPLE = (
    "rename", "twin above", "reorder", "move", "body 10", "body 30", "body 50", "append", "split", "merge", "rename file", "white space",
    "delete", "replace",
)  # fmt: skip
DOUBLE = ("rename + body 30", "move + body 10", "move + rename", "rename file + body 30")
PLANS: dict[str, Callable[[int], list[str]]] = {kind: lambda _seed, kind=kind: [kind] for kind in (*SIMPLE, *DOUBLE)}  # type: ignore[misc]
for several in (2, 5, 10):
    usual = [kind for kind in SIMPLE if kind not in ("body 50", "replace")]
    PLANS[f"mixed {several}"] = lambda seed, n=several, kinds=usual: random.Random(seed + 7).choices(kinds, k=n)  # type: ignore[misc]


def brought_up(root: Path, lose_index: bool) -> None:
    if lose_index:
        shutil.rmtree(root / ".memory-tools", ignore_errors=True)
    with Memory(root, encoder="none") as memory:
        memory.sync()
        memory.recalculate()


def trial(seed: int, edits: list[str], lose_index: bool, at_once: bool) -> tuple[int, int, int, int]:
    """(edited sections that kept their count, edited sections, sections with another's count, sections)."""
    world = World(seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "memory").mkdir()
        world.write(root)
        scores = root / "memory" / "utility-scores.json"
        scores.write_text(json.dumps({a: {"use_count": m.count, "success_count": m.count} for a, m in world.addressed()}), encoding="utf-8")
        brought_up(root, False)
        touched: set[int] = set()
        for n, kind in enumerate(edits):
            touched |= {id(memo) for memo in world.edit(kind)}
            if not at_once or n + 1 == len(edits):
                world.write(root)
                brought_up(root, lose_index)
        now = json.loads(scores.read_text(encoding="utf-8"))
        have = [(memo, now.get(address, {}).get("use_count", 0)) for address, memo in world.addressed()]
        edited = [(memo, count) for memo, count in have if memo.count and id(memo) in touched]
        wrong = sum(count not in (0, memo.count) for memo, count in have)
        return sum(count == memo.count for memo, count in edited), len(edited), wrong, sum(memo.count > 0 for memo, _ in have)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--kind", choices=PLANS)
    parser.add_argument("--at-once", action="store_true")
    args = parser.parse_args()
    for kind in [args.kind] if args.kind else PLANS:
        for lose_index in (False, True):
            sums = [0, 0, 0, 0]
            for seed in range(args.first_seed, args.first_seed + args.seeds):
                sums = [a + b for a, b in zip(sums, trial(seed, PLANS[kind](seed), lose_index, args.at_once), strict=True)]
            kept, edited, wrong, sections = sums
            row = {"edit": kind, "index_lost": lose_index, "kept": round(kept / edited, 4) if edited else None, "edited": edited}
            print(json.dumps(row | {"wrong": round(wrong / sections, 4), "sections": sections}), flush=True)


if __name__ == "__main__":
    main()
