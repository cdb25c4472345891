"""One run of the simulator: a cluster, a workload, faults, then quiet; what the judge has to say.

In:  a seed; which faults and user actions may be drawn.
Out: a RunResult. Same seed and code, same trace to the byte.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from drakit.api.objects.plain import Plain
from drakit.apiserver.auth.identities import ADMIN
from drakit.base.errors import DrakitError
from drakit.client import CLAIMS, PODS, SLICES, TEMPLATES, AlreadyExists, Client, Forbidden
from drakit.simulate import workload
from drakit.simulate.faults import ACTIONS, FAULTS, WEATHER, draw, heal
from drakit.simulate.liveness import unfinished
from drakit.simulate.loops import Deadlock
from drakit.simulate.processes import Process, undisturbed
from drakit.simulate.world import World

TROUBLED = 150.0
"""Seconds of faults."""
QUIET = 900.0
"""Seconds after the faults within which everything must be as it should."""
_LOOK = 15.0
_WARM_UP = 12.0


class RunStep(msgspec.Struct, frozen=True):
    """Something that a run does at a time: a fault, or something that a user does."""

    at: float
    name: str
    seed: int

    def __str__(self) -> str:
        return f"{self.at:7.1f} s  {self.name}"


class RunPlan(msgspec.Struct, frozen=True):
    """All that a run is made of. Shrinking leaves steps and weather out."""

    seed: int
    nodes: int
    quota: int | None
    weather: tuple[str, ...]
    steps: tuple[RunStep, ...]
    troubled: float = TROUBLED
    quiet: float = QUIET

    def brief(self) -> RunPlan:
        """The same on one node in a sixth of the time, without the quiet time: enough to compare two runs."""
        steps = tuple(msgspec.structs.replace(each, at=each.at / 6) for each in self.steps[::2])
        return msgspec.structs.replace(self, nodes=1, steps=steps, troubled=self.troubled / 6, quiet=0.0)


class RunResult(msgspec.Struct, frozen=True):
    plan: RunPlan
    violations: tuple[str, ...]
    digest: str
    trace: tuple[str, ...]
    met: dict[tuple[str, str], int]
    seconds: float
    steps: int


def plan_of(seed: int, allowed: Sequence[str] = FAULTS) -> RunPlan:
    """What the seed says."""
    random = Random(f"{seed}/plan")
    chosen = draw(random, allowed)
    actions = [each for each in chosen if each in ACTIONS]
    steps = [RunStep(random.uniform(0.0, TROUBLED), f"fault {name}", random.getrandbits(32))
             for name in actions for _ in range(random.randint(1, 3))]  # fmt: skip
    for _ in range(random.randint(4, 9)):
        kind = random.choice(workload.KINDS)
        steps.append(RunStep(random.uniform(0.0, TROUBLED * 0.9), f"create {kind}", random.getrandbits(32)))
    for _ in range(random.randint(0, 5)):
        what = random.choice(("pods", "pods", "pods", "claims", "slices", "templates"))
        steps.append(RunStep(random.uniform(TROUBLED * 0.2, TROUBLED), f"delete {what}", random.getrandbits(32)))
    return RunPlan(
        seed,
        nodes=random.randint(1, 3),
        quota=random.choice((None, None, 5)),
        weather=tuple(each for each in chosen if each in WEATHER),
        steps=tuple(sorted(steps, key=lambda step: (step.at, step.name))),
    )


def run(plan: RunPlan) -> RunResult:
    """Play the plan."""
    log = logging.getLogger("drakit")
    level = log.level
    # Faults are what a run is about: nobody wants to read of each.
    log.setLevel(logging.CRITICAL + 1)
    try:
        with undisturbed():
            return _run(plan)
    finally:
        log.setLevel(level)


def _run(plan: RunPlan) -> RunResult:
    with tempfile.TemporaryDirectory(prefix="drakit-sim-") as directory:
        world = World(plan.seed, Path(directory))
        world.loop.set_exception_handler(lambda _, context: _unhandled(world, context))
        try:
            world.loop.run_until_complete(_play(world, plan))
        except Deadlock as error:
            world.violate(str(error))
        finally:
            world.over = True
            world.graveyard.bury()
            world.loop.close()
    digest = hashlib.sha256("\n".join(world.trace).encode()).hexdigest()
    return RunResult(
        plan,
        tuple(dict.fromkeys(world.violations)),
        digest,
        tuple(world.trace),
        dict(world.met),
        world.loop.time(),
        world.loop.steps,
    )


def _unhandled(world: World, context: dict[str, Any]) -> None:
    """What asyncio reports: an exception that nobody has seen is a bug, unless it is one of a lost connection."""
    error = context.get("exception")
    if isinstance(error, Exception) and not isinstance(error, DrakitError):
        world.violate(f"nobody handles {type(error).__name__}: {error}")


async def _play(world: World, plan: RunPlan) -> None:
    world.begin(plan.nodes, Random(f"{plan.seed}/nodes"))
    user = Process("user", 1, world.loop)
    world.network.processes[user.id] = user
    hands = Hands(world, world.client(user, ADMIN))
    await user.spawn(hands.prepare(plan.quota))
    world.judge.quota = plan.quota
    begun = world.loop.time()
    for name in plan.weather:
        setattr(world.network.weather, name, WEATHER[name])
    for step in plan.steps:
        await asyncio.sleep(max(begun + step.at - world.loop.time(), 0.0))
        _do(world, hands, user, step)
        if world.violations:
            return
    await asyncio.sleep(max(begun + plan.troubled - world.loop.time(), 0.0))
    if plan.quiet:
        await _calm_down(world, plan.quiet)


def _do(world: World, hands: Hands, user: Process, step: RunStep) -> None:
    world.note(f"-- {step.name}")
    kind, _, what = step.name.partition(" ")
    random = Random(step.seed)
    if kind == "fault":
        world.note_fault(what)
        ACTIONS[what](world, random)
    elif kind == "create":
        user.spawn(hands.create(workload.pod_objects(step.seed % 100_000, what, random)))
    else:
        user.spawn(hands.delete(what, random))


async def _calm_down(world: World, quiet: float) -> None:
    """Faults stop; then everything must come right within bounded time."""
    heal(world)
    world.note("-- quiet")
    end = world.loop.time() + quiet
    left: list[str] = ["nothing was looked at"]
    while left and world.loop.time() < end and not world.violations:
        await asyncio.sleep(_LOOK)
        left = unfinished(world.judge)
    for each in left if not world.violations else ():
        world.violate(f"after {quiet:g} quiet seconds: {each}")


class Hands:
    """What users do. They try again until the server has taken it, as people and their tools do."""

    def __init__(self, world: World, client: Client) -> None:
        self._world = world
        self._client = client

    async def prepare(self, quota: int | None) -> None:
        objects = [*workload.classes(), workload.priority_class("high", 1000)]
        if quota is not None:
            objects.append(workload.quota(quota))
        await asyncio.sleep(0.2)
        await self.create(objects)
        await asyncio.sleep(_WARM_UP)

    async def create(self, objects: Sequence[Plain]) -> None:
        for each in objects:
            for _ in range(100):
                try:
                    await self._client.create(each)
                except AlreadyExists:
                    break
                except Forbidden:
                    if each["kind"] == "ResourceClaim":
                        return
                    await asyncio.sleep(2.0)
                except DrakitError:
                    await asyncio.sleep(2.0)
                else:
                    break

    async def delete(self, what: str, random: Random) -> None:
        kind: Any = {"pods": PODS, "claims": CLAIMS, "slices": SLICES, "templates": TEMPLATES}[what]
        try:
            found = list(await self._client.list(kind))
            if not found:
                return
            chosen = found[random.randrange(len(found))]
            metadata = getattr(chosen, "view", chosen).metadata
            await self._client.delete(kind, metadata.name, namespace=metadata.namespace)
        except DrakitError as error:
            self._world.note(f"user: {error}")
