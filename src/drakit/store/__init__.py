"""Revisions, compare-and-swap, watch history and compaction, behind one contract with several engines.

`Store` and `StoreWatch` say what holds; `MemoryStore` and `SQLiteStore` hold it.
`errors` has the tree of what can go wrong.
"""

from drakit.store.contract import Store, StoreWatch
from drakit.store.errors import (
    Compacted,
    Conflict,
    Corrupt,
    FutureRevision,
    KeyExists,
    KeyNotFound,
    Overtaken,
    SchemaTooNew,
    StoreClosed,
    StoreLocked,
    StoreUnavailable,
    WatcherTooSlow,
    WriteInDoubt,
)
from drakit.store.history import Retention
from drakit.store.memory import MemoryStore
from drakit.store.records import PLAIN, EventType, Guard, Record, RecordPage, Stats, StoreEvent, WriteTerms
from drakit.store.sqlite import SQLiteStore

__all__ = [
    "PLAIN",
    "Compacted",
    "Conflict",
    "Corrupt",
    "EventType",
    "FutureRevision",
    "Guard",
    "KeyExists",
    "KeyNotFound",
    "MemoryStore",
    "Overtaken",
    "Record",
    "RecordPage",
    "Retention",
    "SQLiteStore",
    "SchemaTooNew",
    "Stats",
    "Store",
    "StoreClosed",
    "StoreEvent",
    "StoreLocked",
    "StoreUnavailable",
    "StoreWatch",
    "WatcherTooSlow",
    "WriteInDoubt",
    "WriteTerms",
]
