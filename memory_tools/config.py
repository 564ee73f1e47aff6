"""Arguments, environment and YAML files to one frozen Config, read once at a face.

Argument > environment > the user's file > the workspace's file > default.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, tzinfo
from pathlib import Path

from memory_tools import plain_files
from memory_tools.config_keys import ALIASES, CHECKS, KEYS, NESTED, globs
from memory_tools.errors import InvalidInput, MemoryToolsError
from memory_tools.files import DEFAULT_INCLUDE

WORKSPACE_FILE = "memory-tools.yaml"
MAX_CONFIG_BYTES = 256_000  # a hand-written file; anything larger is not one


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, validated. Paths are absolute; `workspace_keys` of the user's documents are in KEYS."""

    workspace: Path
    include: tuple[str, ...] = DEFAULT_INCLUDE
    exclude: tuple[str, ...] = ()
    extra_roots: Mapping[str, Path] = field(default_factory=dict)
    time_zone: str | None = None
    encoder: str = "default"
    encoder_api_key: str | None = field(default=None, repr=False)
    index_dir: Path | None = None
    policy: str = "balanced"
    pool: int = 20
    weights: Mapping[str, float] = field(default_factory=lambda: {"recency": 0.3, "success_rate": 0.4, "relevance": 0.3})
    feedback_bonus: float = 0.1
    utility_threshold: float = 0.5
    min_score: float = 0.5
    max_results: int = 10
    use_half_life_days: float = 14.0
    edit_half_life_days: float = 1095.0
    success_prior: float = 0.5
    prior_strength: float = 2.0
    min_judged: int = 3
    memrl_lambda: float = 0.5
    memrl_alpha: float = 0.3
    archive_after_days: float = 90
    judge: str = "rules"
    llm: Mapping[str, str] = field(default_factory=dict, repr=False)
    max_history_tool_call_cnt: int = 100
    recent_call_count: int = 30
    evaluation_sleep_interval: float = 1.0
    summary_sleep_interval: float = 1.0
    host: str = "127.0.0.1"
    port: int = 8002
    token: str | None = field(default=None, repr=False)

    def zone(self) -> tzinfo:
        """The user's time zone: the configured one, else TZ or the system's."""
        if self.time_zone:
            from zoneinfo import ZoneInfo

            return ZoneInfo(self.time_zone)
        zone = datetime.now().astimezone().tzinfo
        assert zone is not None  # astimezone always sets one
        return zone


def default_workspace(environ: Mapping[str, str], home: Path) -> Path:
    named = environ.get("MEMORY_TOOLS_WORKSPACE") or environ.get("OPENCLAW_WORKSPACE_DIR")
    return Path(named).expanduser() if named else home / ".openclaw" / "workspace"


def index_folder(config: Config) -> Path:
    """`<workspace>/.memory-tools`, or a folder of this workspace's own inside the configured place: several workspaces may share that.

    Raises Forbidden where the workspace's own is a link that leads out: the index would be written elsewhere.
    """
    if config.index_dir is None:
        folder = config.workspace / ".memory-tools"
        if folder.is_symlink():
            plain_files.check_inside(config.workspace, folder)
        return folder
    import hashlib

    real = str(config.workspace.resolve())
    digest = hashlib.blake2b(real.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return config.index_dir / f"{config.workspace.name}-{digest}"


def user_file(environ: Mapping[str, str], home: Path) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "memory-tools" / "config.yaml"


def load(
    workspace: str | Path | None = None,
    arguments: Mapping[str, object] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    config_file: Path | None = None,
) -> Config:
    """Read the configuration. `arguments`: values given at the face, None where not given. Raises InvalidInput naming the file and key."""
    environ = os.environ if environ is None else environ
    home = Path(environ.get("HOME") or Path.home())
    layers = [_environment(environ), _file(config_file or user_file(environ, home), required=config_file is not None)]
    given = {k: v for k, v in (arguments or {}).items() if v is not None}
    if workspace is not None:
        given["workspace"] = workspace
    chosen = given.get("workspace") or layers[0].get("workspace") or environ.get("OPENCLAW_WORKSPACE_DIR") or layers[1].get("workspace")
    text = str(chosen or default_workspace(environ, home))
    if "\0" in text:
        raise InvalidInput("workspace: a path cannot hold a NUL character")
    root = Path(text).expanduser().absolute()
    layers.append(_file(root / WORKSPACE_FILE, from_workspace=True) if root.is_dir() else {})
    values: dict[str, object] = {}
    for layer in reversed([given, *layers]):
        for key, value in layer.items():
            merge = key in NESTED and isinstance(value, Mapping) and isinstance(values.get(key), Mapping)
            values[key] = {**values[key], **value} if merge else value  # type: ignore[dict-item]
    values["workspace"] = root
    return build(values)


def build(values: Mapping[str, object]) -> Config:
    """Validate one value for each key and make the Config. Raises InvalidInput."""
    checked = {name: CHECKS[name](name, value) for name, value in values.items() if name in _known(name, "argument")}
    return Config(**checked)  # type: ignore[arg-type]


def _known(name: str, where: str) -> Mapping[str, dict[str, object]]:
    if name not in KEYS:
        near = difflib.get_close_matches(name, KEYS, n=1, cutoff=0.0)
        raise InvalidInput(f"{where}: unknown key {name!r}", f"the nearest one is {near[0]!r}")
    return KEYS


def _file(path: Path, *, required: bool = False, from_workspace: bool = False) -> dict[str, object]:
    """The keys of one YAML file, {} where there is none. A workspace's file may hold only the keys that a stranger may set."""
    try:
        if from_workspace:
            found = plain_files.read_bytes(path, MAX_CONFIG_BYTES)
            if found is None:
                return {}
            content = found
        else:  # the user's own, which may be a link or come through a pipe
            with path.open("rb") as stream:
                content = stream.read(MAX_CONFIG_BYTES + 1)
    except FileNotFoundError:
        if required:
            raise InvalidInput(f"{path}: no such configuration file") from None
        return {}
    except MemoryToolsError as e:
        raise InvalidInput(e.message, e.hint) from e
    except OSError as e:
        raise InvalidInput(f"{path}: cannot be read ({e.strerror or e})") from e
    if len(content) > MAX_CONFIG_BYTES:
        raise InvalidInput(f"{path}: larger than {MAX_CONFIG_BYTES} bytes")
    parsed = _parse_yaml(path, content)
    out: dict[str, object] = {}
    for name, value in _undotted(parsed).items():
        key = ALIASES.get(name, name)
        _known(key, str(path))
        if from_workspace and not KEYS[key]["workspace"]:
            hint = "put it into ~/.config/memory-tools/config.yaml or the environment"
            raise InvalidInput(f"{path}: a workspace cannot set {key!r}", hint)
        if from_workspace and key in ("include", "exclude"):
            for glob in globs(key, value):
                if glob.startswith(("/", "~", "\\")) or ".." in Path(glob).parts or ":" in glob[:2]:
                    raise InvalidInput(f"{path}: {key}: {glob!r} leads out of the workspace")
        try:
            out[key] = CHECKS[key](key, value)
        except MemoryToolsError as e:
            raise InvalidInput(f"{path}: {e.message}", e.hint) from e
        if key in NESTED and isinstance(value, Mapping):
            out[key] = dict(value)  # merged key by key with the other layers
    return out


def _parse_yaml(path: Path, content: bytes) -> Mapping[str, object]:
    from memory_tools.plain_yaml import parse

    try:
        parsed = parse(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, InvalidInput) as e:
        raise InvalidInput(f"{path}: {e}") from e
    if parsed is None:
        return {}
    if not isinstance(parsed, dict) or not all(isinstance(k, str) for k in parsed):
        raise InvalidInput(f"{path}: expected `key: value` lines")
    return parsed


def _undotted(values: Mapping[str, object]) -> dict[str, object]:
    """The nested form of the upstream names (`op: {summary_tool_memory_op: {params: …}}`) as dotted ones."""
    out: dict[str, object] = {}

    def walk(prefix: str, value: object) -> None:
        if isinstance(value, dict) and not prefix.endswith(".params"):
            for k, v in value.items():
                walk(f"{prefix}.{k}", v)
        elif isinstance(value, dict):
            out.update({f"{prefix}.{k}": v for k, v in value.items()})
        else:
            out[prefix] = value

    for key, value in values.items():
        walk("op", value) if key == "op" else out.update({key: value})
    return out


_ENVIRONMENT_ONLY = {"MEMORY_TOOLS_CACHE_DIR"}  # where derived tables are kept; not a setting of search


def _environment(environ: Mapping[str, str]) -> dict[str, object]:
    out: dict[str, object] = {}
    for name, value in environ.items():
        if not name.startswith("MEMORY_TOOLS_") or name in _ENVIRONMENT_ONLY or not value:
            continue
        key = name.removeprefix("MEMORY_TOOLS_").lower()
        parent = next((p for p in ("weights", "llm", "extra_roots") if key.startswith(p + "_")), None)
        if parent is not None:
            nested = out.setdefault(parent, {})
            assert isinstance(nested, dict)
            child = key.removeprefix(parent + "_")
            if parent in NESTED and child not in NESTED[parent]:
                raise InvalidInput(f"environment: unknown key {name}", f"one of {', '.join(NESTED[parent])}")
            nested[child] = value
            continue
        _known(key, f"environment ({name})")
        try:
            out[key] = CHECKS[key](key, value)
        except MemoryToolsError as e:
            raise InvalidInput(f"environment ({name}): {e.message}", e.hint) from e
    return out


assert set(KEYS) == {f.name for f in fields(Config)}
