"""Whatever is done to a store, in whatever order, it answers as a list of all writes would."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from drakit.store import Compacted, Conflict, KeyExists, KeyNotFound, Record, RecordPage, Store, StoreEvent, StoreWatch
from tests.store.engines import UNBOUNDED, Engine, read

T = TypeVar("T")

KEYS = st.sampled_from(["/a", "/a/x", "/ab", "/b/x", "/b/y"])
PREFIXES = st.sampled_from(["", "/", "/a", "/a/", "/b/", "/b/x", "/none/"])
VALUES = st.binary(max_size=3)


class Model:
    """All writes there ever were; each answer is worked out from them anew."""

    def __init__(self) -> None:
        self.log: list[StoreEvent] = []
        self.compacted = 1

    @property
    def revision(self) -> int:
        return 1 + len(self.log)

    def state(self, revision: int) -> dict[str, Record]:
        records: dict[str, Record] = {}
        for event in self.log[: revision - 1]:
            if event.record is None:
                del records[event.key]
            else:
                records[event.key] = event.record
        return dict(sorted(records.items()))

    def now(self) -> dict[str, Record]:
        return self.state(self.revision)

    def write(self, key: str, value: bytes | None) -> StoreEvent:
        previous, revision = self.now().get(key), self.revision + 1
        created = revision if previous is None else previous.created
        record = None if value is None else Record(key, value, created, revision)
        self.log.append(StoreEvent(revision, key, record, previous))
        return self.log[-1]

    def page(self, prefix: str, revision: int, limit: int, after: str) -> RecordPage:
        found = [r for key, r in self.state(revision).items() if key.startswith(prefix) and key > after]
        shown = found[:limit] if limit else found
        return RecordPage(shown, revision, len(found) - len(shown))

    def since(self, prefix: str, revision: int) -> list[StoreEvent]:
        return [event for event in self.log[revision - 1 :] if event.key.startswith(prefix)]


class StoreMachine(RuleBasedStateMachine):
    engine_name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.engine = Engine(self.engine_name, self.directory / "store.db")
        self.model = Model()
        self.watches: list[tuple[StoreWatch, str, int]] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        self.store: Store = self.run(self.engine.open(retention=UNBOUNDED))

    def teardown(self) -> None:
        with suppress(AttributeError):
            self.run(self.store.close())
        self.runner.close()
        shutil.rmtree(self.directory)

    def revision(self, data: st.DataObject) -> int:
        """One that can be read, mostly."""
        return data.draw(st.integers(max(self.model.compacted - 1, 0), self.model.revision))

    @rule(key=KEYS, value=VALUES)
    def create(self, key: str, value: bytes) -> None:
        there = self.model.now().get(key)
        if there is None:
            assert self.run(self.store.create(key, value)) == self.model.write(key, value).record
            return
        with pytest.raises(KeyExists) as caught:
            self.run(self.store.create(key, value))
        assert caught.value.current == there

    @rule(key=KEYS, value=st.none() | VALUES, data=st.data())
    def update_or_delete(self, key: str, value: bytes | None, data: st.DataObject) -> None:
        there = self.model.now().get(key)
        expected = there.revision if there and data.draw(st.integers(0, 3)) else self.revision(data)
        call = self.store.delete(key, expected=expected)
        if value is not None:
            call.close()
            call = self.store.update(key, value, expected=expected)
        if there is not None and there.revision == expected:
            done = self.model.write(key, value)
            assert self.run(call) == (done.record or Record(key, there.value, there.created, done.revision))
            return
        with pytest.raises(KeyNotFound if there is None else Conflict) as caught:
            self.run(call)
        assert getattr(caught.value, "current", None) == there

    @rule(keys=st.lists(KEYS, min_size=2, unique=True))
    def create_together(self, keys: list[str]) -> None:
        async def together() -> list[Record | BaseException]:
            return await asyncio.gather(*(self.store.create(key, b"") for key in keys), return_exceptions=True)

        for key, outcome in zip(keys, self.run(together()), strict=True):
            if isinstance(outcome, KeyExists):
                assert outcome.current == self.model.now()[key]
            else:
                assert outcome == self.model.write(key, b"").record

    @rule(key=KEYS, data=st.data())
    def get_at(self, key: str, data: st.DataObject) -> None:
        revision = self.revision(data)
        expected = self.model.state(revision).get(key) if revision else None
        if revision < self.model.compacted:
            with pytest.raises(Compacted):
                self.run(self.store.get(key, revision=revision))
        elif expected is None:
            with pytest.raises(KeyNotFound):
                self.run(self.store.get(key, revision=revision))
        else:
            assert self.run(self.store.get(key, revision=revision)) == expected

    @rule(prefix=PREFIXES, limit=st.integers(0, 3), after=st.just("") | KEYS, data=st.data())
    def list_at(self, prefix: str, limit: int, after: str, data: st.DataObject) -> None:
        revision = self.revision(data)
        call = self.store.list(prefix, revision=revision, limit=limit, after=after)
        if revision < self.model.compacted:
            with pytest.raises(Compacted):
                self.run(call)
        else:
            assert self.run(call) == self.model.page(prefix, revision, limit, after)

    @rule(prefix=PREFIXES, data=st.data())
    def watch(self, prefix: str, data: st.DataObject) -> None:
        after = self.revision(data)
        if after < self.model.compacted:
            with pytest.raises(Compacted):
                self.run(self.store.watch(prefix, after=after))
        else:
            self.watches.append((self.run(self.store.watch(prefix, after=after)), prefix, after))

    @precondition(lambda self: self.watches)
    @rule(data=st.data())
    def read_watch(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.watches) - 1))
        watch, prefix, after = self.watches[place]
        expected = self.model.since(prefix, after)
        count = data.draw(st.integers(0, len(expected)))
        assert self.run(read(watch, count)) == expected[:count]
        if count:
            self.watches[place] = (watch, prefix, expected[count - 1].revision)

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        furthest = min(self.model.compacted + 3, self.model.revision)  # leave some history to be asked about
        self.model.compacted = data.draw(st.integers(self.model.compacted, furthest))
        self.run(self.store.compact(self.model.compacted))

    @precondition(lambda self: self.engine_name != "memory")
    @rule()
    def reopen(self) -> None:
        self.run(self.store.close())
        self.watches.clear()
        self.open()

    @invariant()
    def current_state_agrees(self) -> None:
        model = self.model
        assert self.run(self.store.list("")) == model.page("", model.revision, 0, "")
        stats = self.run(self.store.stats())
        assert (stats.revision, stats.compacted, stats.keys) == (model.revision, model.compacted, len(model.now()))

    @invariant()
    def bookmarks_are_true(self) -> None:
        for watch, prefix, after in self.watches:
            unread = self.model.since(prefix, after)
            assert watch.progress == (unread[0].revision - 1 if unread else self.model.revision)


class MemoryMachine(StoreMachine):
    engine_name = "memory"


class SQLiteMachine(StoreMachine):
    engine_name = "sqlite"


QUIET = [HealthCheck.too_slow]
MemoryMachine.TestCase.settings = settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
SQLiteMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=QUIET
)
TestMemory = MemoryMachine.TestCase
TestSQLite = SQLiteMachine.TestCase
