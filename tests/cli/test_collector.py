"""The garbage collector of a process that starts, and then serves."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from drakit.cli.processes.collector import load_without_collector, spare_the_collector


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_a_start_is_not_interrupted_by_the_collector() -> None:
    load_without_collector()
    gc.collect()
    collections = gc.get_stats()[0]["collections"]
    loaded = [[number] for number in range(200_000)]
    assert gc.get_stats()[0]["collections"] == collections
    assert len(loaded) == 200_000


def test_what_was_loaded_is_kept_from_the_collector_without_a_look_at_it() -> None:
    load_without_collector()
    loaded = [[number] for number in range(50_000)]
    collections = [each["collections"] for each in gc.get_stats()]
    spare_the_collector()
    assert [each["collections"] for each in gc.get_stats()] == collections
    assert gc.get_freeze_count() > len(loaded)
    assert gc.get_threshold() == (10_000, 1, 1_700)
