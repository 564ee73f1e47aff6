"""Names that callers choose, of tools and of workspaces, to names that are safe on every file system. Pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from memory_tools.errors import InvalidInput, TooLarge

# Lower case only: `Search` and `search` must not meet on a file system that ignores case.
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)(?:\..*)?", re.I)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MAX_PLAIN = 64
_MAX_WORDS = 40  # characters that stay readable in a name that had to be changed
OWN = "default"
MAX_NAMES = 1_000  # in one request


def file_stem(tool_name: str) -> str:
    """The file name, without suffix, for a tool: the name itself where that is safe, else its letters and a hash of it."""
    if len(tool_name) <= _MAX_PLAIN and _PLAIN.fullmatch(tool_name) and not _DEVICES.fullmatch(tool_name):
        return tool_name
    words = re.sub(r"[^\w]+", "-", unicodedata.normalize("NFC", tool_name).lower()).strip("-_")
    digest = hashlib.sha256(tool_name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    short = words[:_MAX_WORDS]
    while len(short.encode("utf-8", "replace")) > 120:
        short = short[:-1]
    return f"{short.rstrip('-_') or 'tool'}~{digest}"  # `~` is in no plain name, so the two kinds cannot meet


def split_names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Comma-separated names, trimmed, empty ones dropped, each once, in the order asked."""
    if names is None:
        return ()
    parts = names.split(",") if isinstance(names, str) else names
    if not all(isinstance(p, str) for p in parts):
        raise InvalidInput("tool_names: expected names as text")
    found = tuple(dict.fromkeys(stripped for p in parts if (stripped := p.strip())))
    if len(found) > MAX_NAMES:
        raise TooLarge(f"tool_names: {len(found):,} names, at most {MAX_NAMES:,} in one request")
    return found


def workspace_folder(root: Path, workspace_id: str | None) -> tuple[Path, str]:
    """Where the workspace of an id lies and how it is called: `default`, or none, is the server's own. Raises InvalidInput."""
    if workspace_id is None or workspace_id == OWN:
        return root, OWN
    if not _ID.fullmatch(workspace_id) or workspace_id.lower() in ("memory", "skills") or _DEVICES.fullmatch(workspace_id):
        raise InvalidInput(
            f"workspace_id: {workspace_id[:80]!r} is not allowed",
            "a letter or digit, then up to 63 letters, digits, `.`, `_` or `-`; not memory, skills or a device name",
        )
    return root / "workspaces" / workspace_id, workspace_id
