"""Which section is which after an edit: by hand in English and Chinese, with the places known and from the sidecar's fields alone."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shelf import traces_of

from memory_tools import identity, sketches
from memory_tools.records import Trace

ENGLISH = {
    "Deploy": "- The deploy script needs to be restarted after the disk was full, because it keeps a lock file in the old folder.",
    "Preferences": "- She prefers short answers in the morning and wants every number with its source and its unit.",
    "Backup": "- The backup server copies the staging database to the north office at three in the morning, thirty days back.",
    "Follow up": "- Ask the vendor about the refund for the broken coffee machine before the contract ends in August.",
}
CHINESE = {
    "部署": "- 部署脚本在磁盘写满之后要重新启动,因为旧目录里会留下一个锁文件。",
    "偏好": "- 她喜欢早上收到简短的回答,每个数字都要注明来源和单位。",
    "备份": "- 备份服务器每天凌晨三点把测试数据库复制到北边的办公室,保留三十天。",
    "跟进": "- 在八月合同到期之前,向供应商询问坏掉的咖啡机能不能退款。",
}
LANGUAGES = pytest.mark.parametrize("notes", [ENGLISH, CHINESE], ids=["english", "chinese"])
FROM_SIDECAR = pytest.mark.parametrize("from_sidecar", [False, True], ids=["places known", "from the sidecar"])
A, B = "memory/2026-03-01.md", "memory/2026-03-02.md"


def note(notes: dict[str, str], newline: str = "\n") -> str:
    return ("# Day\n\n" + "".join(f"## {heading}\n\n{body}\n\n" for heading, body in notes.items())).replace("\n", newline)


def blind(trace: Trace) -> Trace:
    """What the sidecar knows of a section: address, body and sketch."""
    path, _, slug = trace.address.partition("#")
    return Trace(trace.id, trace.address, path, slug, slug, -1, trace.body, trace.sketch, trace.size)


def follow(old: dict[str, str], new: dict[str, str], from_sidecar: bool) -> dict[str, str]:
    """Address before -> address after, of the sections with text; merged ones after a `+`."""
    before = [t for path, text in old.items() for t in traces_of(path, text)]
    after = [t for path, text in new.items() for t in traces_of(path, text)]
    if from_sidecar:
        before = [blind(t) for t in before if t.body]
    found = identity.match(before, after)
    moved = {before[i].address: after[j].address for i, j in found.pairs.items() if before[i].body}
    return moved | {before[i].address: "+" + after[j].address for i, j in found.merges.items()}


def vary(text: str, share: float, dice: random.Random) -> str:
    parts = text.split(" ") if text.count(" ") > 3 else list(text)
    for i in dice.sample(range(1, len(parts)), round(share * len(parts))):
        parts[i] = dice.choice(["then", "later", "maybe", "新", "改"])
    return (" " if text.count(" ") > 3 else "").join(parts)


def slugs(notes: dict[str, str]) -> list[str]:
    return [heading.lower().replace(" ", "-") for heading in notes]


# --- body and sketch --------------------------------------------------------------


def test_white_space_line_breaks_and_full_width_forms_are_no_edit() -> None:
    one = identity.trace_parts("- 备份在凌晨三点  \n- ABC 123\n")
    assert identity.trace_parts("\r\n- 备份在凌晨三点\r\n\r\n-\u3000ＡＢＣ １２３") == one
    assert identity.trace_parts("- 备份在凌晨四点\n- ABC 123\n")[0] != one[0]


def test_a_section_without_text_has_no_hash() -> None:
    assert identity.trace_parts(" \n\t\r\n") == ("", b"", 0)


def test_a_heading_is_no_part_of_the_body() -> None:
    plain, renamed, setext = (traces_of(A, f"{heading}\nSome text.\n")[0] for heading in ("## One", "## Two", "Three\n---"))
    assert plain.body == renamed.body == setext.body


def test_a_short_body_is_sketched_whole_and_a_long_one_is_not_longer() -> None:
    short, long = (
        sketches.unpack(identity.trace_parts("abcdef")[1]),
        sketches.unpack(identity.trace_parts("x y z " + "word " * 9 + "q" * 5000)[1]),
    )
    assert len(short.hashes) == 4
    assert short.size == 6
    many = sketches.unpack(identity.trace_parts(" ".join(str(n) for n in range(2000)))[1])
    assert len(many.hashes) == sketches.K
    assert list(many.hashes) == sorted(set(many.hashes))
    assert long.size > 5000


def test_the_sketch_of_a_text_is_a_format_and_never_changes() -> None:
    body, sketch, size = identity.trace_parts("- 部署脚本 v2 restarts at 03:00\n")
    assert (body, size) == ("cea3d9bd650ebb68", 27)
    assert sketch.hex() == (
        "1b000026185208d4421b6a2c1de6061eb6db246f822973813e46194a85814eb1dc51ff9066b5a668a7fb6c5097727d278880678ac90898dfb89c76dea5"
        "6449b1a47fba3122c1a26bec29afef8cf7f2"
    )


@pytest.mark.parametrize("text", ["\u0301\u0316" * 100_000, "\ufdfa" * 20_000, "#" * 300_000, "\ud800 x", "a\x0bb\x1cc\u2028d"])
def test_hostile_text_is_sketched_without_a_hang(text: str) -> None:
    body, sketch, size = identity.trace_parts(text)
    assert body
    assert sketches.unpack(sketch).size == size


def test_a_sketch_that_somebody_edited_is_read_as_none() -> None:
    assert sketches.unpack(b"abc") == sketches.Sketch()
    assert sketches.unpack(b"") == sketches.Sketch()
    assert sketches.size_of(b"\x01") == 0


# --- edits ------------------------------------------------------------------------


@LANGUAGES
@FROM_SIDECAR
def test_a_renamed_heading_keeps_its_section(notes: dict[str, str], from_sidecar: bool) -> None:
    first = next(iter(notes))
    renamed = {("Something else" if h == first else h): b for h, b in notes.items()}
    assert follow({A: note(notes)}, {A: note(renamed)}, from_sidecar)[f"{A}#{slugs(notes)[0]}"] == f"{A}#something-else"


@LANGUAGES
@FROM_SIDECAR
def test_a_twin_heading_inserted_above_does_not_take_the_history(notes: dict[str, str], from_sidecar: bool) -> None:
    heading, slug = list(notes)[1], slugs(notes)[1]
    text = note(notes).replace(f"## {heading}\n", f"## {heading}\n\n- quite another thing, 另一件事\n\n## {heading}\n")
    assert follow({A: note(notes)}, {A: text}, from_sidecar)[f"{A}#{slug}"] == f"{A}#{slug}-1"


@LANGUAGES
@FROM_SIDECAR
def test_reordered_sections_stay_themselves(notes: dict[str, str], from_sidecar: bool) -> None:
    turned = dict(reversed(notes.items()))
    assert follow({A: note(notes)}, {A: note(turned)}, from_sidecar) == {f"{A}#{s}": f"{A}#{s}" for s in slugs(notes)}


@LANGUAGES
@FROM_SIDECAR
def test_a_section_moved_to_another_file_is_found_there(notes: dict[str, str], from_sidecar: bool) -> None:
    other = {"Else": "- nothing of the kind"}
    first, slug = next(iter(notes)), slugs(notes)[0]
    rest = {h: b for h, b in notes.items() if h != first}
    moved = follow({A: note(notes), B: note(other)}, {A: note(rest), B: note(other | {first: notes[first]})}, from_sidecar)
    assert moved[f"{A}#{slug}"] == f"{B}#{slug}"
    assert len(moved) == len(notes) + 1


@LANGUAGES
@FROM_SIDECAR
def test_a_renamed_file_keeps_all_its_sections(notes: dict[str, str], from_sidecar: bool) -> None:
    moved = follow({A: note(notes)}, {"memory/topics.md": note(notes)}, from_sidecar)
    assert moved == {f"{A}#{s}": f"memory/topics.md#{s}" for s in slugs(notes)}


@LANGUAGES
@FROM_SIDECAR
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_a_changed_body_is_the_same_memory(notes: dict[str, str], from_sidecar: bool, share: float) -> None:
    for seed in range(5):
        dice = random.Random(seed)
        changed = {h: vary(b, share, dice) for h, b in notes.items()}
        assert follow({A: note(notes)}, {A: note(changed)}, from_sidecar) == {f"{A}#{s}": f"{A}#{s}" for s in slugs(notes)}


@LANGUAGES
@FROM_SIDECAR
def test_a_renamed_heading_with_a_tenth_of_the_body_changed_in_a_renamed_file(notes: dict[str, str], from_sidecar: bool) -> None:
    changed = {f"{h} v2": vary(b, 0.1, random.Random(3)) for h, b in notes.items()}
    moved = follow({A: note(notes)}, {B: note(changed)}, from_sidecar)
    assert moved == {f"{A}#{s}": f"{B}#{s}-v2" for s in slugs(notes)}


@LANGUAGES
@FROM_SIDECAR
def test_line_endings_are_no_edit(notes: dict[str, str], from_sidecar: bool) -> None:
    found = identity.match(traces_of(A, note(notes)), traces_of(A, note(notes, "\r\n")))
    assert set(found.kinds.values()) == {"address"}
    assert follow({A: note(notes)}, {A: note(notes, "\r\n")}, from_sidecar) == {f"{A}#{s}": f"{A}#{s}" for s in slugs(notes)}


@LANGUAGES
@FROM_SIDECAR
def test_of_a_split_the_larger_part_keeps_the_history(notes: dict[str, str], from_sidecar: bool) -> None:
    bodies, slug = list(notes.values()), slugs(notes)[0]
    whole = {next(iter(notes)): f"{bodies[0]}\n{bodies[1]}\n{bodies[2]}", "Other": bodies[3]}
    parts = {next(iter(notes)): f"{bodies[0]}\n{bodies[1]}", "Details": bodies[2], "Other": bodies[3]}
    assert follow({A: note(whole)}, {A: note(parts)}, from_sidecar)[f"{A}#{slug}"] == f"{A}#{slug}"


@LANGUAGES
@FROM_SIDECAR
def test_merged_sections_both_go_into_the_one(notes: dict[str, str], from_sidecar: bool) -> None:
    (_first, one), (second, two), *rest = notes.items()
    merged = {second: f"{two}\n{one}", **dict(rest)}
    moved = follow({A: note(notes)}, {A: note(merged)}, from_sidecar)
    assert moved[f"{A}#{slugs(notes)[1]}"] == f"{A}#{slugs(notes)[1]}"
    assert moved[f"{A}#{slugs(notes)[0]}"] == f"+{A}#{slugs(notes)[1]}"


def test_a_merged_section_is_not_the_new_one_that_has_its_name_now() -> None:
    (first, one), (second, two), *rest = ENGLISH.items()
    merged = {second: f"{two}\n{one}", first: "- Never talk about prices on the phone.", **dict(rest)}
    assert follow({A: note(ENGLISH)}, {A: note(merged)}, False)[f"{A}#deploy"] == f"+{A}#preferences"


@LANGUAGES
@FROM_SIDECAR
def test_a_section_that_is_gone_is_told_and_nobody_inherits(notes: dict[str, str], from_sidecar: bool) -> None:
    first = next(iter(notes))
    rest = {h: b for h, b in notes.items() if h != first}
    moved = follow({A: note(notes)}, {A: note(rest)}, from_sidecar)
    assert f"{A}#{slugs(notes)[0]}" not in moved
    assert len(moved) == len(notes) - 1


@LANGUAGES
@FROM_SIDECAR
def test_another_section_in_the_same_place_does_not_inherit(notes: dict[str, str], from_sidecar: bool) -> None:
    fresh = "- Grandma painted the garden door blue." if notes is ENGLISH else "- 外婆把花园的门刷成了蓝色。"
    replaced = {("Colours" if n == 1 else h): (fresh if n == 1 else b) for n, (h, b) in enumerate(notes.items())}
    assert f"{A}#{slugs(notes)[1]}" not in follow({A: note(notes)}, {A: note(replaced)}, from_sidecar)


def test_in_a_log_that_loses_its_oldest_entries_the_new_ones_start_anew() -> None:
    def log(first: int, last: int) -> str:
        return "".join(
            f"## Heartbeat\n\n- checked the queue at {n // 60:02}:{n % 60:02}, {n * 7919 % 1000} jobs\n\n" for n in range(first, last)
        )

    old, new = traces_of(A, log(0, 60)), traces_of(A, log(10, 70))
    found = identity.match(old, new)
    assert found.pairs == {i: i - 10 for i in range(10, 60)}
    assert found.unmatched == tuple(range(10))


def test_equal_sections_are_paired_in_order() -> None:
    text = "## Todo\n\n- nothing to do today\n\n" * 4
    found = identity.match(traces_of(A, text), traces_of(A, "## First\n\n- new and different\n\n" + text))
    assert [found.pairs[i] for i in range(4)] == [1, 2, 3, 4]


def test_a_heading_without_text_moves_by_its_name() -> None:
    found = follow(
        {A: "## Ideas\n\n## Rest\n\ntext that stays where it is\n", B: "## X\n"},
        {A: "## Rest\n\ntext that stays where it is\n", B: "## X\n\n## Ideas\n"},
        False,
    )
    assert found == {f"{A}#rest": f"{A}#rest"}
    old = [*traces_of(A, "## Ideas\n"), *traces_of(B, "## X\n")]
    assert identity.match(old, traces_of(B, "## X\n\n## Ideas\n")).pairs == {0: 1, 1: 0}


def test_a_thousand_changed_sections_find_each_other() -> None:
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(3, 8))) for _ in range(400)]
    bodies = [" ".join(dice.choices(words, k=25)) for _ in range(1000)]
    old = [t for n in range(50) for t in traces_of(f"memory/{n}.md", "".join(f"## H{m % 5}\n\n{bodies[20 * n + m]}\n" for m in range(20)))]
    new = [
        t
        for n in range(50)
        for t in traces_of(f"notes/{n}.md", "".join(f"## H{m % 5}\n\n{vary(bodies[20 * n + m], 0.2, dice)}\n" for m in range(20)))
    ]
    pairs = identity.match(old, new).pairs
    assert sum(pairs.get(i) == i for i in range(1000)) >= 990


# --- ids --------------------------------------------------------------------------


def test_two_clones_that_meet_a_section_give_it_the_same_id() -> None:
    trace = traces_of(A, note(ENGLISH))[1]
    assert identity.new_id(trace) == identity.new_id(replace(trace, id="x", edited=None))
    assert identity.new_id(trace, {identity.new_id(trace)}) != identity.new_id(trace)
    assert identity.new_id() != identity.new_id()


# --- properties -------------------------------------------------------------------

headings = st.sampled_from(["Notes", "备份", "Todo", "API v2", ""])
bodies = st.text(st.sampled_from("abc 部署脚\n新-1"), max_size=40)
files = st.dictionaries(st.sampled_from([A, B, "MEMORY.md"]), st.lists(st.tuples(headings, bodies), max_size=5), max_size=3)


def traces(made: dict[str, list[tuple[str, str]]]) -> list[Trace]:
    return [t for path, parts in sorted(made.items()) for t in traces_of(path, "".join(f"## {h}\n\n{b}\n\n" for h, b in parts))]


@settings(max_examples=150, deadline=None)
@given(files, files, st.booleans())
def test_a_matching_is_one_to_one_and_complete(
    one: dict[str, list[tuple[str, str]]], two: dict[str, list[tuple[str, str]]], from_sidecar: bool
) -> None:
    old, new = traces(one), traces(two)
    if from_sidecar:
        old = [blind(t) for t in old]
    found = identity.match(old, new)
    assert len(set(found.pairs.values())) == len(found.pairs)
    assert sorted([*found.pairs, *found.merges, *found.unmatched]) == list(range(len(old)))
    assert all(0 <= j < len(new) for j in (*found.pairs.values(), *found.merges.values()))
    assert set(found.merges.values()) <= set(found.pairs.values())


@settings(max_examples=80, deadline=None)
@given(files)
def test_without_an_edit_every_section_is_itself(made: dict[str, list[tuple[str, str]]]) -> None:
    same = traces(made)
    assert identity.match(same, same).pairs == {i: i for i in range(len(same))}


@settings(max_examples=60, deadline=None)
@given(files, files, st.randoms(use_true_random=False))
def test_the_order_in_which_files_are_given_does_not_matter(
    one: dict[str, list[tuple[str, str]]], two: dict[str, list[tuple[str, str]]], dice: random.Random
) -> None:
    old, new = traces(one), traces(two)
    shuffled = list(range(len(new)))
    dice.shuffle(shuffled)
    found = identity.match(old, new).pairs
    again = identity.match(old, [new[j] for j in shuffled]).pairs
    assert {i: new[j].address for i, j in found.items()} == {i: new[shuffled[j]].address for i, j in again.items()}


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_has_a_stable_trace(text: str) -> None:
    body, sketch, size = identity.trace_parts(text)
    assert identity.trace_parts(text.replace(" ", "  ")) == (body, sketch, size)
    assert sketches.pack(sketches.unpack(sketch)) == sketch or not sketch
    assert identity.trace_parts(identity.normalised(text))[0] == body
