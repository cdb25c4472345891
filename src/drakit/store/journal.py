"""The SQLite file: an append-only log of writes, from which compaction takes what nothing refers to any more.

In:  events to append, revisions to discard; all calls block, and come from one thread at a time.
Out: the rows of the log in revision order, at start.

The latest row of a key is its state, so there is one table and no index but the revision: an append touches the end
of one tree. The connection holds the file exclusively; WAL with `synchronous=FULL` flushes each commit to disk.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Self

from drakit.base.errors import DrakitError
from drakit.store.contract import EMPTY_REVISION
from drakit.store.errors import Corrupt, SchemaTooNew, StoreLocked, StoreUnavailable
from drakit.store.records import StoreEvent
from drakit.store.replay import Row

SCHEMA_VERSION = 2
APPLICATION_ID = 0x44524B54  # "DRKT": a file that says anything else is not ours to touch

_LARGEST_WAL = 4 * 1024 * 1024
"""Bytes that the write-ahead log keeps after a checkpoint; a burst may make it larger for a while."""
_INCREMENTAL = 2

_SCHEMA = f"""
BEGIN;
CREATE TABLE log (
    revision INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB, created INTEGER NOT NULL, checksum INTEGER
);
CREATE TABLE compaction (only INTEGER PRIMARY KEY CHECK (only = 1), revision INTEGER NOT NULL);
INSERT INTO compaction VALUES (1, {EMPTY_REVISION});
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""  # noqa: S608 -- its numbers are constants of this file


_ADD_CHECKSUMS = f"""
BEGIN;
ALTER TABLE log ADD COLUMN checksum INTEGER;
UPDATE log SET checksum = row_checksum(revision, key, value, created);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""  # noqa: S608 -- its number is a constant of this file

CheckedRow = tuple[int, str, bytes | None, int, int | None]
"""A row and its checksum."""


class Journal:
    """Invariant: after any call, whether it raised or not, the file holds all of what earlier calls were told to
    append, and all or nothing of this one's.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._garbage: list[int] = []

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a file, or make it, readable by its owner alone: secrets are kept in it.

        Raises StoreLocked, SchemaTooNew, Corrupt, StoreUnavailable; the file is then as it was.
        """
        made = _make(path)
        try:
            journal = cls(path, _connect(path, made=made))
        except DrakitError:
            if made:
                _unmake(path)
            raise
        return journal

    def compacted(self) -> int:
        try:
            rows = self._connection.execute("SELECT revision FROM compaction").fetchall()
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise Corrupt(f"{self._path} is damaged: it does not say up to where it was compacted")
        return int(rows[0][0])

    def rows(self) -> Generator[Row, None, None]:
        """Every row of the log, in revision order. Raise Corrupt for one that is not what was written."""
        for row in self.checked_rows():
            revision, key, value, created, _ = row
            if not is_sound(row):
                raise Corrupt(
                    f"{self._path} is damaged: the value of {key} (revision {revision}) is not what was written; "
                    "`drakit store verify` finds all such values, `drakit store remove` takes one out"
                )
            yield revision, key, value, created

    def checked_rows(self) -> Generator[CheckedRow, None, None]:
        """Every row of the log with its checksum, in revision order."""
        try:
            yield from self._connection.execute(
                "SELECT revision, key, value, created, checksum FROM log ORDER BY revision"
            )
        except sqlite3.Error as error:
            if _primary_code(error) is None:  # from the sqlite3 module, not from SQLite: a text that is not UTF-8
                raise Corrupt(f"{self._path} is damaged: {error}") from error
            raise translate(error, self._path) from error

    def last_revision(self) -> int:
        """Of the newest write, whether its row is still there or was compacted."""
        try:
            [(last,)] = self._connection.execute("SELECT max(revision) FROM log").fetchall()
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        return max(int(last or 0), self.compacted())

    def append(self, events: Sequence[StoreEvent]) -> None:
        """Write all events, or none; they are on disk when this returns."""
        self.append_rows([row_of(each) for each in events])

    def append_rows(self, rows: Sequence[Row]) -> None:
        """Write all rows, or none; they are on disk when this returns.

        One statement, which is its own transaction: the thread gives up the interpreter lock once per call into
        SQLite, and waits a whole switch interval to get it back from a busy event loop. With a statement per row a
        busy loop makes this ten times slower.
        """
        parameters: list[int | str | bytes | None] = []
        for row in rows:
            parameters += (*row, _checksum(*row))
        try:
            self._connection.execute(_insert(len(rows)), parameters)
        except sqlite3.Error as error:
            self._recover(error)
            raise translate(error, self._path) from error

    def discard(self, compacted: int, revisions: Sequence[int]) -> None:
        """Note that history up to `compacted` is gone, and delete the rows that only it had a use for.

        Rows that an earlier call failed to delete are deleted too.
        """
        self._garbage += revisions
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("UPDATE compaction SET revision = ?", (compacted,))
            self._connection.execute(
                "DELETE FROM log WHERE revision IN (SELECT value FROM json_each(?))", (json.dumps(self._garbage),)
            )
            self._connection.execute("COMMIT")
            # A script, because a statement without columns is stepped once by `execute`: one page and no more.
            self._connection.executescript("PRAGMA incremental_vacuum")
        except sqlite3.Error as error:
            self._recover(error)
            raise translate(error, self._path) from error
        self._garbage.clear()

    def remove(self, key: str) -> int:
        """Take a key out with all its history, which ends here for all keys. Return how many rows of it there were."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            [(last,)] = self._connection.execute("SELECT max(revision) FROM log").fetchall()
            found = self._connection.execute("DELETE FROM log WHERE key = ?", (key,)).rowcount
            if found:
                # Without the key's rows history has gaps: only the latest state of the others can be kept.
                self._connection.execute(
                    "DELETE FROM log WHERE value IS NULL "
                    "OR revision NOT IN (SELECT max(revision) FROM log GROUP BY key)"
                )
                self._connection.execute("UPDATE compaction SET revision = max(revision, ?)", (last,))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._recover(error)
            raise translate(error, self._path) from error
        return found

    def faults(self) -> Iterator[str]:
        """What SQLite finds wrong with the file itself."""
        try:
            found = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check").fetchall()]
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
        yield from (each for each in found if each != "ok")

    def close(self) -> None:
        self._connection.close()

    def _recover(self, error: sqlite3.Error) -> None:
        """Leave nothing of a failed transaction behind.

        When the flush itself failed, its frames may be in the write-ahead log although it was rolled back, and would
        come to life again after a crash: moving the log's good part into the file empties it.
        """
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if _primary_code(error) == sqlite3.SQLITE_IOERR:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def row_of(event: StoreEvent) -> Row:
    return event.revision, event.key, event.value, event.record.created if event.record is not None else 0


def translate(error: sqlite3.Error, path: Path) -> DrakitError:
    """What SQLite said, in our errors."""
    match _primary_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreLocked(f"{path} is locked: another process or store has it open")
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:  # the last: a table is not there
            return Corrupt(f"{path} is damaged, or no SQLite file: {error}")
        case sqlite3.SQLITE_FULL:
            return StoreUnavailable(f"{path}: no space left: {error}")
        case sqlite3.SQLITE_READONLY:
            return StoreUnavailable(f"{path} is read-only: {error}")
        case _:
            return StoreUnavailable(f"{path}: {error}")


def _primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def is_sound(row: CheckedRow) -> bool:
    """Whether a row is what was written."""
    *written, checksum = row
    return checksum == _checksum(*written)


def _checksum(revision: object, key: object, value: object, created: object) -> int | None:
    """The CRC of a whole row. None for types that no row can have: whoever reads the rows reports them."""
    if not isinstance(key, str) or not isinstance(value, bytes | None):
        return None
    head = f"{revision} {created} {'-' if value is None else len(value)} {key}"
    return zlib.crc32(value or b"", zlib.crc32(head.encode()))


@cache
def _insert(rows: int) -> str:
    return "INSERT INTO log VALUES " + ",".join(["(?,?,?,?,?)"] * rows)  # noqa: S608 -- placeholders only


def _make(path: Path) -> bool:
    """Create an empty file if there is none; whether it was created.

    An existing one must not be opened and closed here: closing any descriptor of a file drops the locks that this
    process holds on it, which are what tells a second store that the first is at work.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        _check_writable(path)
        return False
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be created: {error.strerror}") from error
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return True


def _check_writable(path: Path) -> None:
    """Raise StoreUnavailable with the reason: SQLite would only say "disk I/O error"."""
    for place in (path, path.parent):
        if not os.access(place, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise StoreUnavailable(f"{path} cannot be opened: {place} is read-only")


def _unmake(path: Path) -> None:
    for suffix in ("", "-wal", "-journal"):
        with suppress(OSError):
            path.with_name(path.name + suffix).unlink()


def _connect(path: Path, *, made: bool) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise translate(error, path) from error
    try:
        _prepare(connection, path, made=made)
    except sqlite3.Error as error:
        connection.close()
        raise translate(error, path) from error
    except DrakitError:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, *, made: bool) -> None:
    """Take the file for ourselves, look what it is, and only then write to it."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    found, application = _number(connection, "user_version"), _number(connection, "application_id")
    empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if empty and not made:
        raise Corrupt(f"{path} is damaged: it is empty, and a store never is; remove it to begin anew")
    if not (empty and found == 0 and application == 0):
        if application != APPLICATION_ID:
            raise Corrupt(f"{path} is a SQLite file, but no drakit store")
        if found > SCHEMA_VERSION:
            raise SchemaTooNew(str(path), found, SCHEMA_VERSION)
    if empty:
        connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise StoreUnavailable(f"{path}: this file system cannot hold a write-ahead log")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_WAL}").fetchall()
    if empty:
        connection.executescript(_SCHEMA)
    else:
        if _number(connection, "auto_vacuum") != _INCREMENTAL:
            # A file from before pages were given back: it is written anew, once.
            connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
            connection.execute("VACUUM")
        if found < SCHEMA_VERSION:
            _upgrade(connection)
    connection.execute("BEGIN IMMEDIATE")  # fails here, not on the first write, if the file is read-only
    connection.execute("ROLLBACK")


def _upgrade(connection: sqlite3.Connection) -> None:
    """From version 1, which had no checksums: what is there now is what counts as written."""
    connection.create_function("row_checksum", 4, _checksum, deterministic=True)
    connection.executescript(_ADD_CHECKSUMS)


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])
