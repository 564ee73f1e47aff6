"""Two branches' utility-scores.json in, one with what each side added out: by hand, by git itself, and by properties."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_tools import durable, entries
from memory_tools.errors import Damaged, NotFound
from memory_tools.scores_merge import merge, merge_files

A, B = "MEMORY.md#主动汇报约定", "memory/2026-03-05.md#api"
Value = dict[str, object]


def encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def merged(base: object, ours: object, theirs: object) -> dict[str, Value]:
    made: dict[str, Value] = json.loads(merge(encoded(base), encoded(ours), encoded(theirs)))
    return made


def used(uses: float, success: float, **more: object) -> Value:
    return {"use_count": uses, "success_count": success, "last_used": "2026-03-05T11:00:00Z", "utility": 0.5, **more}


def test_counts_are_what_each_side_added() -> None:
    made = merged({A: used(5, 4)}, {A: used(7, 6, last_used="2026-03-08T11:00:00Z", utility=0.9)}, {A: used(6, 4)})
    assert made == {A: used(8, 6, last_used="2026-03-08T11:00:00Z", utility=0.9)}


def test_entries_of_one_side_are_kept_as_they_are() -> None:
    odd = {"use_count": 1, "success_count": 9, "note": "错的,但是我写的"}
    assert merged({}, {A: odd}, {B: used(1, 1)}) == {A: odd, B: used(1, 1)}


def test_failures_that_one_side_alone_writes_down_add_up() -> None:
    made = merged({A: used(5, 4)}, {A: used(6, 5)}, {A: used(7, 4, fail_count=1)})
    assert (made[A]["use_count"], made[A]["success_count"], made[A]["fail_count"]) == (8, 5, 1)


def test_a_memory_that_moved_on_one_side_and_was_used_on_the_other_is_one() -> None:
    base = {A: used(1, 1, id="x", body="b1", edited="2026-03-01T00:00:00Z")}
    ours = {B: used(1, 1, id="x", body="b2", edited="2026-03-09T00:00:00Z")}
    theirs = {A: used(2, 1, id="x", body="b1", edited="2026-03-01T00:00:00Z", fail_count=1)}
    assert merged(base, ours, theirs) == {B: used(2, 1, id="x", body="b2", edited="2026-03-09T00:00:00Z", fail_count=1)}
    assert merged(base, theirs, ours) == merged(base, ours, theirs)


def test_two_memories_that_end_at_one_address_are_both_kept() -> None:
    base = {A: used(3, 3, id="x", body="bx")}
    ours = {B: used(3, 3, id="x", body="bx")}
    theirs = {A: used(3, 3, id="x", body="bx"), B: used(1, 0, id="y", body="by")}
    made = merged(base, ours, theirs)
    assert made[B]["id"] == "x"
    assert made["~orphans"][B] == used(1, 0, id="y", body="by"), "its text tells at the next write where it belongs"


def test_both_sides_met_the_same_new_section() -> None:
    made = merged({}, {A: used(1, 1, id="p")}, {A: used(2, 0, id="q")})
    assert made == {A: used(3, 1, id="p")}


def test_a_persons_yes_and_unknown_fields_survive() -> None:
    base = {A: used(1, 1, mine={"a": 1, "b": 1}), "~mine": 1}
    ours = {A: used(1, 1, mine={"a": 2, "b": 1}, pinned=True), "~mine": 1}
    theirs = {A: used(2, 2, mine={"a": 1, "b": 3}, positive_feedback=True), "~mine": 1, "$schema": "s"}
    made = merged(base, ours, theirs)
    assert made["$schema"] == "s"
    assert (made[A]["mine"], made[A]["pinned"], made[A]["positive_feedback"], made[A]["use_count"]) == ({"a": 2, "b": 3}, True, True, 2)


def test_what_a_person_took_out_is_gone_unless_it_was_used_since() -> None:
    assert merged({A: used(3, 3), B: used(1, 1)}, {A: used(3, 3)}, {A: used(3, 3), B: used(1, 1)}) == {A: used(3, 3)}
    assert merged({A: used(3, 3)}, {}, {A: used(5, 4)})[A]["use_count"] == 2
    assert merged({A: used(3, 3)}, {}, {}) == {}


def test_an_orphan_of_one_side_and_a_use_on_the_other_add_up() -> None:
    base = {A: used(1, 1, id="x")}
    ours = {"~orphans": {A: used(1, 1, id="x", orphaned="2026-04-01T00:00:00Z")}}
    made = merged(base, ours, {A: used(2, 2, id="x")})
    assert made["~orphans"][A]["use_count"] == 2


def test_the_last_outcomes_of_both_sides_are_kept() -> None:
    base = {A: used(2, 1, recent="+-", fail_count=1)}
    ours = {A: used(3, 2, recent="+-+", fail_count=1, last_used="2026-03-09T00:00:00Z")}
    theirs = {A: used(4, 1, recent="+---", fail_count=3, last_used="2026-03-07T00:00:00Z")}
    assert merged(base, ours, theirs)[A]["recent"] == "+---+"
    assert merged(base, theirs, ours)[A]["recent"] == "+---+"


def test_without_a_common_ancestor_both_histories_add_up() -> None:
    for base in (None, b"", b"\n"):
        assert json.loads(merge(base, encoded({A: used(1, 1)}), encoded({A: used(2, 1)})))[A]["use_count"] == 3


@pytest.mark.parametrize("side", [0, 1, 2])
def test_broken_json_is_told_with_the_name_of_its_side_line_and_column(side: int) -> None:
    sides = [encoded({A: used(1, 1)})] * 3
    sides[side] = b'{\n  "a": 1,\n<<<<<<< HEAD\n}'
    with pytest.raises(Damaged, match=rf"{('base', 'ours', 'theirs')[side]}:3:1: "):
        merge(*sides)


def test_an_empty_file_is_broken_on_the_two_sides() -> None:
    with pytest.raises(Damaged, match="theirs:1:1"):
        merge(None, b"{}", b"")


def test_a_key_twice_is_told() -> None:
    with pytest.raises(Damaged, match="more than once"):
        merge(b"{}", b'{"a#b": {"use_count": 1}, "a#b": {"use_count": 2}}', b"{}")


# --- files and git ------------------------------------------------------------------


def test_files_are_merged_into_ours_and_a_broken_one_touches_nothing(tmp_path: Path) -> None:
    base, ours, theirs = (tmp_path / n for n in ("base.json", "ours.json", "theirs.json"))
    for path, uses in ((base, 1), (ours, 2), (theirs, 3)):
        path.write_bytes(encoded({A: used(uses, uses)}))
    done = merge_files(base, ours, theirs)
    assert (done.entries, done.both) == (1, (A,))
    assert json.loads(ours.read_bytes())[A]["use_count"] == 4
    theirs.write_text("{")
    before = ours.read_bytes()
    with pytest.raises(Damaged, match=r"theirs\.json:1:2"):
        merge_files(base, ours, theirs)
    with pytest.raises(NotFound):
        merge_files(base, ours, tmp_path / "none.json")
    assert ours.read_bytes() == before


DRIVER = """
import sys
sys.path.insert(0, {package!r})
from pathlib import Path
from memory_tools.scores_merge import merge_files
merge_files(*(Path(p) for p in sys.argv[1:]))
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_merges_two_branches_that_both_learned(tmp_path: Path) -> None:
    def git(*args: str) -> None:
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *args], cwd=tmp_path, check=True, capture_output=True)

    scores = tmp_path / "memory" / "utility-scores.json"
    (tmp_path / "driver.py").write_text(DRIVER.format(package=str(Path(__file__).parent.parent)))
    git("init", "-b", "main")
    git("config", "merge.memory-scores.driver", f'"{sys.executable}" driver.py %O %A %B')
    (tmp_path / ".gitattributes").write_text("memory/utility-scores.json merge=memory-scores\n")
    durable.replace(scores, entries.formatted(entries.parse(encoded({A: used(5, 4)}), "x")))
    git("add", ".")
    git("commit", "-m", "base")
    git("checkout", "-b", "other")
    durable.replace(scores, entries.formatted(entries.parse(encoded({A: used(6, 5), B: used(1, 1)}), "x")))
    git("commit", "-am", "theirs")
    git("checkout", "main")
    durable.replace(scores, entries.formatted(entries.parse(encoded({A: used(7, 4)}), "x")))
    git("commit", "-am", "ours")
    git("merge", "other", "-m", "both")
    assert json.loads(scores.read_bytes()) == {A: used(8, 5), B: used(1, 1)}


# --- properties -----------------------------------------------------------------------

counts = st.integers(0, 20)


@st.composite
def entry(draw: st.DrawFn) -> Value:
    success, fail, unknown = draw(counts), draw(counts), draw(counts)
    made: Value = {"use_count": success + fail + unknown, "success_count": success, "fail_count": fail}
    if draw(st.booleans()):
        made["last_used"] = f"2026-03-{draw(st.integers(1, 28)):02}T00:00:00Z"
    if draw(st.booleans()):
        made["mine"] = draw(st.integers(0, 3))
    return made


files = st.dictionaries(st.sampled_from([A, B, "x.md#y"]), entry(), max_size=3)
outcomes = st.lists(st.tuples(st.sampled_from([A, B]), st.booleans()), max_size=8)


def formatted(value: object) -> bytes:
    return entries.formatted(entries.parse(encoded(value), "x"))


@settings(max_examples=150, deadline=None)
@given(files, files)
def test_a_side_that_did_nothing_changes_nothing(base: dict[str, Value], other: dict[str, Value]) -> None:
    assert merge(encoded(base), encoded(base), encoded(other)) == formatted(other)
    assert merge(encoded(base), encoded(other), encoded(base)) == formatted(other)
    assert merge(encoded(base), encoded(other), encoded(other))


@settings(max_examples=150, deadline=None)
@given(files, files, files)
def test_counts_do_not_depend_on_whose_side_is_ours_and_can_always_be_true(
    base: dict[str, Value], ours: dict[str, Value], theirs: dict[str, Value]
) -> None:
    one, two = merged(base, ours, theirs), merged(base, theirs, ours)
    names = ("use_count", "success_count", "fail_count", "last_used")
    assert {k: [e.get(n) for n in names] for k, e in one.items()} == {k: [e.get(n) for n in names] for k, e in two.items()}
    assert entries.parse(encoded(one), "x").problems == ()


@settings(max_examples=150, deadline=None)
@given(files, outcomes, outcomes)
def test_a_merge_equals_all_outcomes_in_one_file(
    base: dict[str, Value], ours: list[tuple[str, bool]], theirs: list[tuple[str, bool]]
) -> None:
    def with_outcomes(came: list[tuple[str, bool]]) -> dict[str, Value]:
        made = json.loads(json.dumps(base))
        for address, success in came:
            e = made.setdefault(address, {"use_count": 0, "success_count": 0, "fail_count": 0})
            e["use_count"] += 1
            e["success_count" if success else "fail_count"] += 1
        return dict(made)

    all_in_one = with_outcomes([*ours, *theirs])
    made = merged(base, with_outcomes(ours), with_outcomes(theirs))
    names = ("use_count", "success_count", "fail_count")
    assert {k: [e.get(n, 0) for n in names] for k, e in made.items()} == {k: [e.get(n, 0) for n in names] for k, e in all_in_one.items()}
