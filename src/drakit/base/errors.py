"""Errors, named by what the caller does about them.

DrakitError
  Retryable             try again, with backoff
    Conflict            resourceVersion moved: read again first
    Unavailable         a peer, disk or lock is not there right now
    DeadlineExceeded    the time given was too short
  Terminal              say so to the user, stop
    InvalidObject       the object breaks rules; carries every field error
    NotFound            there is no such object
    AlreadyExists       there is one already
    Forbidden           this user may not
    SelectorInvalid     an expression that can never be evaluated
    DecodeError         bytes that are no object; carries where
    Unsupported         a gate is off, a kind or version is not served
    UsageError          a wrong flag, gate or setting
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drakit.base.fields import FieldError


class DrakitError(Exception):
    """Root of all errors that drakit raises on purpose."""


class Retryable(DrakitError):
    """The same call may succeed later."""


class Conflict(Retryable):
    """Somebody else wrote first."""


class Unavailable(Retryable):
    """Something that is needed does not answer right now."""


class DeadlineExceeded(Retryable):
    """The work did not end within the time that it was given."""


class Terminal(DrakitError):
    """The same call fails again until somebody changes something."""


class InvalidObject(Terminal):
    """An object breaks its rules; `errors` holds every one that it breaks."""

    def __init__(self, kind: str, name: str, errors: Sequence[FieldError]) -> None:
        self.kind = kind
        self.name = name
        self.errors = tuple(errors)
        super().__init__(f'{kind} "{name}" is invalid: ' + summary([str(error) for error in self.errors]))


class NotFound(Terminal):
    """There is no such object."""


class AlreadyExists(Terminal):
    """An object of that name is there already."""


class Forbidden(Terminal):
    """The caller may not do this."""


class SelectorInvalid(Terminal):
    """A selector expression that no device can ever be checked against."""


class DecodeError(Terminal):
    """Bytes that are no object of the expected kind."""


class Unsupported(Terminal):
    """The request needs something that is switched off or not served."""


class UsageError(Terminal):
    """A flag, gate or setting that makes no sense."""


def summary(messages: Sequence[str]) -> str:
    """Several messages as one, each once: `a`, or `[a, b]`."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"
