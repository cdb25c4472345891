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
    SchemaTooNew,
    StoreClosed,
    StoreLocked,
    StoreUnavailable,
    WatcherTooSlow,
)
from drakit.store.history import Retention
from drakit.store.memory import MemoryStore
from drakit.store.records import EventType, Record, RecordPage, Stats, StoreEvent
from drakit.store.sqlite import SQLiteStore

__all__ = [
    "Compacted",
    "Conflict",
    "Corrupt",
    "EventType",
    "FutureRevision",
    "KeyExists",
    "KeyNotFound",
    "MemoryStore",
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
]
