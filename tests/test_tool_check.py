"""Tool files in every state of disrepair in; what `check` says and heals out."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from memory_tools.tool_check import findings
from memory_tools.tool_memory import ToolMemoryStore

NOW = datetime(2026, 3, 5, 12, 0)


def recorded(workspace: Path) -> ToolMemoryStore:
    tools = ToolMemoryStore(workspace)
    tools.record([{"tool_name": "a", "input": {}, "output": f"o{n}", "create_time": f"2025-10-15 14:00:0{n}"} for n in range(3)])
    return tools


def codes(tools: ToolMemoryStore, fix: bool = False) -> list[tuple[str, bool]]:
    return [(f.code, f.fixed) for f in findings(tools.folder, fix, NOW)]


def test_what_was_recorded_is_clean(tmp_path: Path) -> None:
    tools = recorded(tmp_path)
    assert codes(tools) == []
    tools.summarize("a")
    assert codes(tools) == []
    assert codes(ToolMemoryStore(tmp_path / "none")) == []


def test_what_a_crash_leaves_is_healed(tmp_path: Path) -> None:
    tools = recorded(tmp_path)
    page, calls = tmp_path / "memory/tools/a.md", tmp_path / "memory/tools/a.calls.jsonl"
    page.unlink()
    calls.write_bytes(calls.read_bytes() + b'{"tool_name": "a", "inp')
    assert codes(tools) == [("tool_calls_cut_off", False), ("tool_page_stale", False)]
    assert codes(tools, fix=True) == [("tool_calls_cut_off", True), ("tool_page_stale", True)]
    assert codes(tools) == []
    assert len(tools.retrieve("a").memories[0].calls) == 3


def test_a_page_behind_its_calls_is_brought_up(tmp_path: Path) -> None:
    tools = recorded(tmp_path)
    calls = tmp_path / "memory/tools/a.calls.jsonl"
    calls.write_text(calls.read_text(encoding="utf-8").split("\n")[0] + "\n", encoding="utf-8")
    assert codes(tools, fix=True) == [("tool_page_stale", True)]
    assert tools.success_rate("memory/tools/a.md") == (1.0, 1)


def test_what_a_person_broke_is_told_and_left_alone(tmp_path: Path) -> None:
    tools = recorded(tmp_path)
    page, calls = tmp_path / "memory/tools/a.md", tmp_path / "memory/tools/a.calls.jsonl"
    page.write_text("---\na: [\n---\n", encoding="utf-8")
    calls.write_text("<<<<<<< ours\n" + calls.read_text(encoding="utf-8"), encoding="utf-8")
    assert codes(tools, fix=True) == [("tool_page_damaged", False)]
    assert page.read_text(encoding="utf-8") == "---\na: [\n---\n"
    page.unlink()
    assert codes(tools, fix=True) == [("tool_calls_unreadable", False), ("tool_page_stale", True)]
    assert calls.read_text(encoding="utf-8").startswith("<<<<<<< ours\n")


def test_a_page_that_a_person_wrote_alone_is_fine(tmp_path: Path) -> None:
    (tmp_path / "memory/tools").mkdir(parents=True)
    (tmp_path / "memory/tools/b.md").write_text("# b\n\nUse it.\n", encoding="utf-8")
    assert codes(ToolMemoryStore(tmp_path)) == []


def test_check_of_the_whole_memory_tells_what_is_wrong_with_tool_files(tmp_path: Path) -> None:
    from memory_tools import Memory

    with Memory(tmp_path, encoder="none") as memory:
        memory.record_tool_calls([{"tool_name": "web_search", "input": {"query": "x"}, "output": "Found 3"}])
        assert memory.check().ok
        (tmp_path / "memory/tools/web_search.calls.jsonl").write_bytes(b'{"no": "call"\n{"tool_name": broken\n')
        assert any((f.path or "").startswith("memory/tools") for f in memory.check().findings)
