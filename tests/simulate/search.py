"""`python -m tests.simulate.search [FIRST LAST]`: the first seed that finds each planted bug.

In:  plants, seeds.
Out: a line per plant. This takes minutes; the suite plays what was found.
"""

from __future__ import annotations

import sys

import pytest

from drakit.simulate.runs import plan_of
from drakit.simulate.workers import played
from tests.simulate.plants import PLANTS, Plant


def first_seed(plant: Plant, seeds: range) -> int | None:
    patch = pytest.MonkeyPatch()
    plant.patch(patch)
    try:
        with played(seeds, 1, plan_of) as results:
            for result in results:
                if any(plant.said in each for each in result.violations):
                    return result.plan.seed
    finally:
        patch.undo()
    return None


def main(first: str = "0", last: str = "30") -> None:
    for plant in PLANTS:
        print(f"{plant.name}: {first_seed(plant, range(int(first), int(last) + 1))}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
