"""The table of configuration keys: default, meaning, who may set it, and the check that turns a raw value into a valid one."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from memory_tools.errors import InvalidInput
from memory_tools.files import DEFAULT_INCLUDE
from memory_tools.records import POLICIES

JUDGES = ("rules", "openai", "agent")


def _key(default: object, doc: str, *, workspace: bool = False) -> dict[str, object]:
    return {"default": default, "doc": doc, "workspace": workspace}


# The table of keys: the one place that knows a key's default, meaning, and whether a cloned workspace may set it.
KEYS: Mapping[str, dict[str, object]] = MappingProxyType(
    {
        "workspace": _key(None, "default workspace; `$OPENCLAW_WORKSPACE_DIR` or `~/.openclaw/workspace` without"),
        "include": _key(DEFAULT_INCLUDE, "globs inside the workspace: which files are memory", workspace=True),
        "exclude": _key((), "globs inside the workspace that are left out", workspace=True),
        "extra_roots": _key({}, "`{name: path}`, read only, addressed `@name/...`"),
        "time_zone": _key(None, "of daily notes, e.g. `Asia/Shanghai`; `TZ`, else the system's, without", workspace=True),
        "encoder": _key("default", "`default`, `none`, `sentence-transformers:<path or name>`, `openai:<base_url>#<model>`"),
        "encoder_api_key": _key(None, "for `openai:` encoders"),
        "index_dir": _key(None, "where the index lies; `<workspace>/.memory-tools` without"),
        "policy": _key("balanced", "order of results: balanced, seed, memrl, relevance", workspace=True),
        "pool": _key(20, "how many passages of stage 1 the policy re-orders", workspace=True),
        "weights": _key({"recency": 0.3, "success_rate": 0.4, "relevance": 0.3}, "of the utility formula", workspace=True),
        "feedback_bonus": _key(0.1, "added for positive feedback", workspace=True),
        "utility_threshold": _key(0.5, "utility below it is low", workspace=True),
        "min_score": _key(0.5, "least calibrated relevance of a result", workspace=True),
        "max_results": _key(10, "results of a search", workspace=True),
        "use_half_life_days": _key(14.0, "of the recency that is shown, in days since the last use", workspace=True),
        "edit_half_life_days": _key(1095.0, "of the recency that `balanced` orders by, in days since the last edit", workspace=True),
        "success_prior": _key(0.5, "success expected of a memory that was never judged", workspace=True),
        "prior_strength": _key(2.0, "how many judged uses the prior is worth", workspace=True),
        "min_judged": _key(3, "judged uses before a memory may be dropped or archived", workspace=True),
        "memrl_lambda": _key(0.5, "weight of Q in policy `memrl`", workspace=True),
        "memrl_alpha": _key(0.3, "learning rate of Q in policy `memrl`", workspace=True),
        "archive_after_days": _key(90, "not edited and not used for so long, before `archive` moves a section", workspace=True),
        "judge": _key("rules", "of tool calls: rules, openai, agent"),
        "llm": _key({}, "`{base_url, model, api_key}` of judge `openai`"),
        "max_history_tool_call_cnt": _key(100, "calls kept for each tool", workspace=True),
        "recent_call_count": _key(30, "newest calls that a summary looks at", workspace=True),
        "evaluation_sleep_interval": _key(1.0, "seconds from start to start of evaluations that use the network"),
        "summary_sleep_interval": _key(1.0, "seconds from start to start of summaries that use the network"),
        "host": _key("127.0.0.1", "of the HTTP server"),
        "port": _key(8002, "of the HTTP server"),
        "token": _key(None, "bearer token of the HTTP server; needed on any address but loopback"),
    }
)

# Names under which the upstream tool-memory service knew its parameters.
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "op.parse_tool_call_result_op.params.max_history_tool_call_cnt": "max_history_tool_call_cnt",
        "op.parse_tool_call_result_op.params.evaluation_sleep_interval": "evaluation_sleep_interval",
        "op.summary_tool_memory_op.params.recent_call_count": "recent_call_count",
        "op.summary_tool_memory_op.params.summary_sleep_interval": "summary_sleep_interval",
    }
)

WEIGHT_KEYS = ("recency", "success_rate", "relevance")
LLM_KEYS = ("base_url", "model", "api_key")
NESTED: Mapping[str, tuple[str, ...]] = MappingProxyType({"weights": WEIGHT_KEYS, "llm": LLM_KEYS})


# --- one check for each kind of value: (key, raw) -> value, or InvalidInput ----------------------


def _number(low: float, high: float, *, whole: bool = False, above: bool = False) -> Callable[[str, object], float]:
    def check(key: str, raw: object) -> float:
        try:
            if isinstance(raw, bool) or not isinstance(raw, int | float | str):
                raise ValueError
            value = float(raw)
            if not math.isfinite(value) or (whole and value != int(value)):
                raise ValueError
        except (ValueError, OverflowError):
            raise InvalidInput(f"{key}: expected a {'whole ' if whole else ''}number, not {raw!r}") from None
        if not low <= value <= high or (above and value == low):
            raise InvalidInput(f"{key}: {raw} is not {'above' if above else 'from'} {low:g} {'and at most' if above else 'to'} {high:g}")
        return int(value) if whole else value

    return check


def _text(key: str, raw: object) -> str:
    if not isinstance(raw, str | Path) or not str(raw).strip() or "\0" in str(raw):
        raise InvalidInput(f"{key}: expected text, not {raw!r}")
    return str(raw)


def _secret(key: str, raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidInput(f"{key}: expected text")  # the value itself is never repeated
    return raw.strip()


def _choice(options: tuple[str, ...]) -> Callable[[str, object], str]:
    def check(key: str, raw: object) -> str:
        if raw not in options:
            near = difflib.get_close_matches(str(raw), options, n=1, cutoff=0.0)
            raise InvalidInput(f"{key}: {raw!r} is not one of {', '.join(options)}", f"the nearest one is {near[0]!r}")
        return str(raw)

    return check


def globs(key: str, raw: object) -> tuple[str, ...]:
    items = [g.strip() for g in raw.split(",")] if isinstance(raw, str) else raw
    if not isinstance(items, list | tuple) or not all(isinstance(g, str) and g for g in items):
        raise InvalidInput(f"{key}: expected a list of globs, not {raw!r}")
    return tuple(items)


def _path(key: str, raw: object) -> Path:
    return Path(_text(key, raw)).expanduser().absolute()


def _roots(key: str, raw: object) -> dict[str, Path]:
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"{key}: expected `name: path` lines")
    for name in raw:
        if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
            raise InvalidInput(f"{key}: {name!r} is not a plain name")
    return {str(name): _path(f"{key}.{name}", path) for name, path in raw.items()}


def _weights(key: str, raw: object) -> dict[str, float]:
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"{key}: expected recency, success_rate and relevance")
    unknown = [str(k) for k in raw if k not in WEIGHT_KEYS]
    if unknown:
        near = difflib.get_close_matches(unknown[0], WEIGHT_KEYS, n=1, cutoff=0.0)
        raise InvalidInput(f"{key}: unknown key {unknown[0]!r}", f"the nearest one is {near[0]!r}")
    defaults = {"recency": 0.3, "success_rate": 0.4, "relevance": 0.3}
    weights = defaults | {k: _number(0, 1)(f"{key}.{k}", v) for k, v in raw.items()}
    if sum(weights.values()) <= 0:
        raise InvalidInput(f"{key}: all three are 0", "at least one must count")
    return weights


def _llm(key: str, raw: object) -> dict[str, str]:
    if not isinstance(raw, Mapping) or any(k not in LLM_KEYS for k in raw):
        raise InvalidInput(f"{key}: expected {', '.join(LLM_KEYS)}")
    return {str(k): (_secret if k == "api_key" else _text)(f"{key}.{k}", v) for k, v in raw.items()}


def _zone(key: str, raw: object) -> str:
    from zoneinfo import ZoneInfo

    name = _text(key, raw)
    try:
        ZoneInfo(name)
    except (OSError, ValueError) as e:  # ZoneInfoNotFoundError is a KeyError
        raise InvalidInput(f"{key}: no time zone {name!r} ({e})") from e
    except KeyError:
        raise InvalidInput(f"{key}: no time zone {name!r}", "a name like Europe/Berlin or Asia/Shanghai") from None
    return name


_fraction, _days, _seconds = _number(0, 1), _number(0, 1e6, above=True), _number(0, 3600)
CHECKS: Mapping[str, Callable[[str, object], object]] = MappingProxyType(
    {
        "workspace": _path,
        "include": globs,
        "exclude": globs,
        "extra_roots": _roots,
        "time_zone": _zone,
        "encoder": _text,
        "encoder_api_key": _secret,
        "index_dir": _path,
        "policy": _choice(POLICIES),
        "pool": _number(1, 1000, whole=True),
        "weights": _weights,
        "feedback_bonus": _fraction,
        "utility_threshold": _fraction,
        "min_score": _fraction,
        "max_results": _number(1, 1000, whole=True),
        "use_half_life_days": _days,
        "edit_half_life_days": _days,
        "success_prior": _fraction,
        "prior_strength": _number(0, 1e6),
        "min_judged": _number(1, 1e6, whole=True),
        "memrl_lambda": _fraction,
        "memrl_alpha": _fraction,
        "archive_after_days": _number(0, 1e6),
        "judge": _choice(JUDGES),
        "llm": _llm,
        "max_history_tool_call_cnt": _number(1, 100_000, whole=True),
        "recent_call_count": _number(1, 100_000, whole=True),
        "evaluation_sleep_interval": _seconds,
        "summary_sleep_interval": _seconds,
        "host": _text,
        "port": _number(0, 65535, whole=True),
        "token": _secret,
    }
)
assert set(CHECKS) == set(KEYS)
