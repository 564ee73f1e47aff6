"""Configuration: who may set what, which source wins, and errors that teach."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_tools.config import load
from memory_tools.config_keys import KEYS
from memory_tools.errors import InvalidInput


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home/.config/memory-tools").mkdir(parents=True)
    (tmp_path / "ws").mkdir()
    return tmp_path / "home"


def _load(home: Path, arguments: dict[str, object] | None = None, **environ: str):
    return load(home.parent / "ws", arguments, environ={"HOME": str(home), **environ})


def _user(home: Path, text: str) -> None:
    (home / ".config/memory-tools/config.yaml").write_text(text, encoding="utf-8")


def _workspace(home: Path, text: str) -> None:
    (home.parent / "ws/memory-tools.yaml").write_text(text, encoding="utf-8")


def test_defaults_are_the_documented_ones(home: Path) -> None:
    config = _load(home)
    assert (config.policy, config.pool, config.min_score, config.utility_threshold, config.max_results) == ("balanced", 20, 0.5, 0.5, 10)
    assert config.weights == {"recency": 0.3, "success_rate": 0.4, "relevance": 0.3}
    assert (config.use_half_life_days, config.edit_half_life_days, config.min_judged) == (14, 1095, 3)
    assert (config.max_history_tool_call_cnt, config.recent_call_count) == (100, 30)
    assert (config.evaluation_sleep_interval, config.summary_sleep_interval) == (1.0, 1.0)
    assert (config.host, config.port, config.token) == ("127.0.0.1", 8002, None)


def test_argument_beats_environment_beats_user_file_beats_workspace_file(home: Path) -> None:
    _workspace(home, "pool: 11\nmin_judged: 4\nmax_results: 7\nmin_score: 0.4\n")
    assert _load(home).pool == 11
    _user(home, "pool: 12\nmin_judged: 5\nmax_results: 8\n")
    assert _load(home).pool == 12
    config = _load(home, {"max_results": 3}, MEMORY_TOOLS_MIN_JUDGED="6", MEMORY_TOOLS_MAX_RESULTS="9")
    assert (config.min_score, config.pool, config.min_judged, config.max_results) == (0.4, 12, 6, 3)


def test_single_weights_are_merged_from_all_sources(home: Path) -> None:
    _workspace(home, "weights: {recency: 0.1}\n")
    _user(home, "weights: {success_rate: 0.2}\n")
    assert _load(home, MEMORY_TOOLS_WEIGHTS_RELEVANCE="0.7").weights == {"recency": 0.1, "success_rate": 0.2, "relevance": 0.7}


@pytest.mark.parametrize("key", [k for k, v in KEYS.items() if not v["workspace"]])
def test_a_cloned_workspace_cannot_set_what_reaches_outside(home: Path, key: str) -> None:
    """case 35"""
    _workspace(home, f"{key}: x\n")
    with pytest.raises(InvalidInput, match=rf"memory-tools.yaml: a workspace cannot set '{key}'"):
        _load(home)


@pytest.mark.parametrize("glob", ["../other/**/*.md", "/etc/*.md", "~/x.md", "a/../../b.md", "C:/x.md"])
def test_a_cloned_workspace_cannot_include_files_outside(home: Path, glob: str) -> None:
    _workspace(home, f"include: ['{glob}']\n")
    with pytest.raises(InvalidInput, match="leads out of the workspace"):
        _load(home)


def test_workspace_configuration_is_never_executed(home: Path) -> None:
    """case 35"""
    _workspace(home, "pool: !!python/object/apply:os.system ['touch /tmp/never']\n")
    with pytest.raises(InvalidInput, match="not valid YAML"):
        _load(home)


def test_an_unknown_key_names_the_nearest_one(home: Path) -> None:
    _user(home, "polcy: seed\n")
    with pytest.raises(InvalidInput, match="unknown key 'polcy'") as caught:
        _load(home)
    assert "'policy'" in caught.value.hint
    _user(home, "")
    with pytest.raises(InvalidInput, match="MEMORY_TOOLS_POLCY"):
        _load(home, MEMORY_TOOLS_POLCY="seed")
    with pytest.raises(InvalidInput, match="MEMORY_TOOLS_WEIGHTS_RELEVANZ"):
        _load(home, MEMORY_TOOLS_WEIGHTS_RELEVANZ="1")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pool: 0", "pool: 0 is not from 1"),
        ("pool: 2.5", "expected a whole number"),
        ("min_score: 1.5", "min_score: 1.5 is not from 0 to 1"),
        ("min_score: .nan", "expected a number"),
        ("policy: best", "'best' is not one of balanced"),
        ("weights: {recency: -1}", "weights.recency"),
        ("weights: {recency: 0, success_rate: 0, relevance: 0}", "all three are 0"),
        ("use_half_life_days: 0", "above 0"),
        ("time_zone: Mars/Olympus", "no time zone 'Mars/Olympus'"),
        ("- a list", "expected `key: value` lines"),
        ("pool: [", "not valid YAML"),
        ("pool: true", "expected a whole number"),
    ],
)
def test_a_wrong_value_is_told_with_file_and_key(home: Path, line: str, said: str) -> None:
    _user(home, line + "\n")
    with pytest.raises(InvalidInput) as caught:
        _load(home)
    assert said in caught.value.message
    assert "config.yaml" in caught.value.message


def test_a_secret_is_not_repeated_in_errors_or_in_the_representation(home: Path) -> None:
    _user(home, "token: hunter2hunter2\nencoder_api_key: sk-very-secret\nllm: {api_key: sk-other-secret}\n")
    config = _load(home)
    assert config.token == "hunter2hunter2"
    assert "hunter2" not in repr(config)
    assert "-secret" not in repr(config)
    _user(home, "token: [hunter2hunter2]\n")
    with pytest.raises(InvalidInput) as caught:
        _load(home)
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_names_of_the_upstream_service_are_accepted(home: Path) -> None:
    _user(
        home,
        "op.parse_tool_call_result_op.params.max_history_tool_call_cnt: 50\n"
        "op.parse_tool_call_result_op.params.evaluation_sleep_interval: 0.5\n"
        "op:\n  summary_tool_memory_op:\n    params:\n      recent_call_count: 10\n      summary_sleep_interval: 0.25\n",
    )
    config = _load(home)
    assert (config.max_history_tool_call_cnt, config.recent_call_count) == (50, 10)
    assert (config.evaluation_sleep_interval, config.summary_sleep_interval) == (0.5, 0.25)


def test_aliases_that_multiply_are_refused_and_not_expanded(home: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{c}: &{c} [{', '.join('*' + p for _ in range(9))}]\n" for p, c in zip("abcdefg", "bcdefgh", strict=True)
    )
    _user(home, bomb)
    with pytest.raises(InvalidInput, match="aliases"):
        _load(home)


def test_the_default_workspace_is_found_as_openclaw_finds_it(home: Path) -> None:
    environ = {"HOME": str(home)}
    assert load(environ=environ).workspace == home / ".openclaw/workspace"
    assert load(environ=environ | {"OPENCLAW_WORKSPACE_DIR": "/srv/a"}).workspace == Path("/srv/a")
    assert load(environ=environ | {"OPENCLAW_WORKSPACE_DIR": "/srv/a", "MEMORY_TOOLS_WORKSPACE": "/srv/b"}).workspace == Path("/srv/b")
    assert load("/srv/c", environ=environ | {"MEMORY_TOOLS_WORKSPACE": "/srv/b"}).workspace == Path("/srv/c")
