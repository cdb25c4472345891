"""Planted bugs: the simulator finds each, by the seed that is written down here and in the document."""

from __future__ import annotations

from pathlib import Path

import pytest

from drakit.simulate.runs import plan_of, run
from tests.simulate.plants import PLANTS, Plant

DOCUMENT = Path(__file__).parents[2] / "docs" / "simulation.md"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.patch(monkeypatch)
    # Another order of events may need another seed: some more are tried before it counts as missed.
    tried = (run(plan_of(seed)) for seed in range(plant.seed, plant.seed + 4))
    assert any(plant.said in each for result in tried for each in result.violations)


def test_the_document_has_every_planted_bug_with_its_seed() -> None:
    text = DOCUMENT.read_text()
    section = text.partition("## Planted bugs\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "| `" in line]
    assert {row[0].strip("`"): int(row[2]) for row in rows} == {each.name: each.seed for each in PLANTS}
