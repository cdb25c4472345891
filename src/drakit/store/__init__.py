"""Revisions, compare-and-swap, watch history and compaction, behind one contract with several engines.

`Store` and `Watch` say what holds; `MemoryStore` and `SQLiteStore` hold it. `errors` has the tree of what can go wrong.
"""

from drakit.store.contract import Store, Watch
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
from drakit.store.records import Event, EventType, Page, Record, Stats
from drakit.store.sqlite import SQLiteStore

__all__ = [
    "Compacted",
    "Conflict",
    "Corrupt",
    "Event",
    "EventType",
    "FutureRevision",
    "KeyExists",
    "KeyNotFound",
    "MemoryStore",
    "Page",
    "Record",
    "Retention",
    "SQLiteStore",
    "SchemaTooNew",
    "Stats",
    "Store",
    "StoreClosed",
    "StoreLocked",
    "StoreUnavailable",
    "Watch",
    "WatcherTooSlow",
]
