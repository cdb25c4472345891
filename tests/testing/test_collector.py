"""While clusters run, the collector looks rarely; afterwards it is as it was."""

from __future__ import annotations

import gc

from drakit.testing.collector import rare_collections


def test_the_collector_is_given_back_as_it_was() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold()[0] > before[0]
        assert gc.get_freeze_count() > 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_the_last_cluster_to_end_gives_it_back() -> None:
    before = gc.get_threshold()
    first, second = rare_collections(), rare_collections()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] > before[0]
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_a_test_that_fails_gives_it_back() -> None:
    before = gc.get_threshold()
    try:
        with rare_collections():
            raise ZeroDivisionError
    except ZeroDivisionError:
        assert gc.get_threshold() == before
