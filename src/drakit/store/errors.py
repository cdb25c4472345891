"""Errors of the store, named by what the caller does about them.

Retryable
  base.Conflict
    Conflict            the key was written since: look at `current`, decide again
  base.Unavailable
    StoreUnavailable    disk full, read-only or failing: nothing was applied; a later try may succeed
      WriteInDoubt      the answer to a write was lost: it may have been applied, look what is there
    StoreLocked         another process, or another store of this one, has the file open
  Overtaken             another guarded write came first: judge again what is there at `revision`, and write again
  WatcherTooSlow        the watch was dropped: watch again after `progress`
Terminal
  base.AlreadyExists
    KeyExists           the key is there already: see `current`
  base.NotFound
    KeyNotFound         there is no such key (at that revision)
  Compacted             the revision is too old: list again, and watch from there
  FutureRevision        no write has had that revision yet
  StoreClosed           the store was closed
  SchemaTooNew          the file was written by a newer drakit: use that one
  Corrupt               the file is damaged, or is no store
"""

from __future__ import annotations

from drakit.base import errors as base
from drakit.store.records import Record


class Conflict(base.Conflict):
    """The key is not at the expected revision; `current` is what it is now."""

    def __init__(self, current: Record, expected: int) -> None:
        self.current = current
        self.expected = expected
        super().__init__(f"{current.key}: expected revision {expected}, but it is at {current.revision}")


class StoreUnavailable(base.Unavailable):
    """The store cannot do this now. A write that met this is not applied; reads go on."""


class WriteInDoubt(StoreUnavailable):
    """The write may or may not have been applied."""


class StoreLocked(base.Unavailable):
    """Somebody else has the file open."""


class Overtaken(base.Retryable):
    """Another write under the same guard was applied at `revision`; this one was not."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        super().__init__(f"another write under the same guard came first, at revision {revision}")


class WatcherTooSlow(base.Retryable):
    """More events came than the watch may buffer. All events up to `progress` had been handed out."""

    def __init__(self, prefix: str, progress: int, buffer: int) -> None:
        self.prefix = prefix
        self.progress = progress
        super().__init__(
            f"watch of {prefix!r} was dropped: its reader is more than {buffer} events behind (at revision {progress})"
        )


class KeyExists(base.AlreadyExists):
    """`current` is what stands under the key."""

    def __init__(self, current: Record) -> None:
        self.current = current
        super().__init__(f"{current.key} already exists")


class KeyNotFound(base.NotFound):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"{key} not found")


class Compacted(base.Terminal):
    """History before `compacted` is gone."""

    def __init__(self, revision: int, compacted: int) -> None:
        self.revision = revision
        self.compacted = compacted
        super().__init__(f"revision {revision} is too old: history was compacted up to {compacted}")


class FutureRevision(base.Terminal):
    def __init__(self, revision: int, current: int) -> None:
        self.revision = revision
        self.current = current
        super().__init__(f"revision {revision} is too large: the store is at {current}")


class StoreClosed(base.Terminal):
    def __init__(self) -> None:
        super().__init__("the store is closed")


class SchemaTooNew(base.Terminal):
    """Nothing in the file was changed."""

    def __init__(self, path: str, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(f"{path} has schema version {found}, written by a newer drakit; this one knows {supported}")


class Corrupt(base.Terminal):
    """Nothing in the file was changed."""
