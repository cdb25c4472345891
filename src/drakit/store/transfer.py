"""Move the objects of a store to another one, of the same engine or of another.

In:  a store to read from, and a new place.
Out: every key with its value, in the order of its latest write; a check that nothing is missing or different.

Into a SQLite file all revisions are the same as before. etcd gives its own numbers: there the keys have new ones in the
same order, the last of which is the source's revision, so no client sees a resourceVersion go back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from drakit.store.contract import Store
from drakit.store.errors import Corrupt, KeyExists
from drakit.store.journal import Journal
from drakit.store.records import Record, RecordPage, StoreEvent

_TOGETHER = 500
Progress = Callable[[Iterable[Record]], Iterable[Record]]
"""Shows how far it has come with what it hands on."""


def by_revision(page: RecordPage) -> list[Record]:
    """The records in the order in which they were written last."""
    return sorted(page.records, key=lambda record: record.revision)


def write_file(path: Path, page: RecordPage, progress: Progress) -> None:
    """Write all records of a store to a file that is not there yet, as they are. History is left behind."""
    if path.exists():
        raise KeyExists(Record(str(path), b"", 0, 0))
    journal = Journal.open(path)
    try:
        batch: list[StoreEvent] = []
        for record in progress(by_revision(page)):
            batch.append(StoreEvent(record.revision, record.key, record, None))
            if len(batch) == _TOGETHER:
                journal.append(batch)
                batch = []
        if batch:
            journal.append(batch)
        journal.discard(page.revision, ())
    finally:
        journal.close()


async def write_store(target: Store, page: RecordPage, progress: Progress) -> None:
    """Create all records in a store that has none."""
    for record in progress(by_revision(page)):
        await target.create(record.key, record.value)


def differences(source: RecordPage, target: RecordPage) -> Sequence[str]:
    """Keys that are missing, too many, or have another value."""
    ours = {record.key: record.value for record in source.records}
    theirs = {record.key: record.value for record in target.records}
    return sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))


def check_equal(source: RecordPage, target: RecordPage) -> None:
    """Raise Corrupt when the copy is not what was copied."""
    if wrong := differences(source, target):
        raise Corrupt(f"the copy differs in {len(wrong)} keys, the first of them {wrong[0]}")
