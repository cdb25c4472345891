"""Which of several nodes a pod gets."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from drakit.scheduler.cycles.choice import choose
from drakit.scheduler.framework import CycleState
from tests.scheduler.cycles.profile import POD, nodes, profile, scores


def chosen(*scores: tuple[str, Any, int], count: int = 3, seed: int = 0, skipped: str = "") -> str:
    state = CycleState(POD)
    state.skip_score.add(skipped)
    return choose(profile(scores=scores), state, POD, nodes(count), Random(seed)).name


def test_weights_decide_between_plugins() -> None:
    assert chosen(("A", scores(n0=100), 1), ("B", scores(n1=60), 1)) == "n0"
    assert chosen(("A", scores(n0=100), 1), ("B", scores(n1=60), 2)) == "n1"


def test_a_plugin_that_has_nothing_to_say_does_not_count() -> None:
    assert chosen(("A", scores(n0=100), 1), ("B", scores(n1=10), 1), skipped="A") == "n1"


def test_chance_decides_between_equals_and_all_have_the_same() -> None:
    picked = Counter(chosen(("A", scores(n0=5, n2=5), 1), seed=seed) for seed in range(400))
    assert set(picked) == {"n0", "n2"}
    assert min(picked.values()) > 150


def test_a_plugin_that_scores_too_few_nodes_is_named() -> None:
    with pytest.raises(ValueError, match='plugin "A" failed with: 1 scores for 3 nodes'):
        chosen(("A", lambda *_: [1], 1))
