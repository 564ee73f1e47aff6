"""One base error and its children. Each says what, where and what to do; `kind` and `status` are the faces' error document."""

from __future__ import annotations


class MemoryToolsError(Exception):
    """Any failure that a caller may meet. `hint` says what to do next."""

    kind = "internal"
    status = 500

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidInput(MemoryToolsError):
    """The request itself is wrong: empty query, unknown key, malformed address."""

    kind, status = "invalid", 422


class NotFound(MemoryToolsError):
    kind, status = "not_found", 404


class Forbidden(MemoryToolsError):
    """Outside the roots, or not Markdown, or not readable by this user."""

    kind, status = "forbidden", 403


class Unauthorized(MemoryToolsError):
    kind, status = "unauthorized", 401


class TooLarge(MemoryToolsError):
    kind, status = "too_large", 413


class Busy(MemoryToolsError):
    """A lock was held longer than the caller may wait, or the disk refused a write."""

    kind, status = "busy", 503


class Damaged(MemoryToolsError):
    """A data-of-record file does not parse; it is left untouched and needs a person."""

    kind, status = "damaged", 409


class Unavailable(MemoryToolsError):
    """A backend (encoder, judge) cannot be used right now."""

    kind, status = "internal", 500
