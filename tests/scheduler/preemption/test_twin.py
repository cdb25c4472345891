"""Whole preemptions in small clusters: who goes is what a naive model says, and then the pod fits."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from tests.builders.podmanifests import claim
from tests.builders.schedulercluster import on_loop
from tests.scheduler.preemption.scenes import PRIORITIES, end, leaving, priority_class, scene, user

DEVICES, CPU = 4, 8


class Model:
    """One node: claims with their counts, pods with the claims that they use and the cpu that they take."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.claims = {f"c{number}": random.choice((1, 1, 2)) for number in range(5)}
        self.pods: dict[str, tuple[str, int, list[str]]] = {}
        self.wanted = random.randint(1, DEVICES), random.randint(1, CPU)
        self.priority = random.choice(("middle", "high"))

    def draw(self) -> tuple[str, int, list[str]]:
        used = self.random.sample(sorted(self.claims), self.random.choice((0, 1, 1, 2)))
        return self.random.choice(("low", "middle", "high")), self.random.randint(0, 2), sorted(used)

    def fits(self, gone: set[str]) -> bool:
        stay = [pod for name, pod in self.pods.items() if name not in gone]
        held = {each for _, _, used in stay for each in used}
        devices = DEVICES - sum(self.claims[each] for each in held)
        return devices >= self.wanted[0] and CPU - sum(cpu for _, cpu, _ in stay) >= self.wanted[1]

    def victims(self) -> list[str] | None:
        """Nobody may start, so all of one priority are equal; the order in which they came decides."""
        lower = [name for name in self.pods if PRIORITIES[self.pods[name][0]] < PRIORITIES[self.priority]]
        order = sorted(lower, key=lambda name: -PRIORITIES[self.pods[name][0]])
        for choice in product((False, True), repeat=len(order)):
            gone = {name for name, goes in zip(order, choice, strict=True) if goes}
            if self.fits(gone):
                return sorted(gone)
        return None


@pytest.mark.parametrize("seed", range(25))
def test_who_goes_is_what_a_naive_model_says(seed: int) -> None:
    async def run() -> None:
        model = Model(Random(seed))
        async with scene(*(f"d{number}" for number in range(DEVICES))) as it:
            for name, value in PRIORITIES.items():
                await it.create({**priority_class(f"polite-{name}", value), "preemptionPolicy": "Never"})
            for name, count in model.claims.items():
                made = claim(name)
                made["spec"]["devices"]["requests"][0]["exactly"]["count"] = count
                await it.create(made)
            for number in range(5):
                name = f"p{number}"
                priority, cpu, used = drawn = model.draw()
                await it.create(user(name, f"polite-{priority}", *used, cpu=str(cpu)))
                if await it.node_of(name):
                    model.pods[name] = drawn
                else:
                    await end(it, name)
            expected = model.victims()
            asked = claim("asked")
            asked["spec"]["devices"]["requests"][0]["exactly"]["count"] = model.wanted[0]
            await it.create(asked, user("asking", model.priority, "asked", cpu=str(model.wanted[1])))
            assert await leaving(it) == (expected or [])
            await end(it, *(expected or []))
            await it.run_for(20)
            assert bool(await it.node_of("asking")) == (expected is not None)
            assert await leaving(it) == []

    on_loop(run)()
