"""One run of the simulator: a cluster, a workload, faults, then quiet; what the judge has to say.

In:  a seed; which faults and user actions may be drawn.
Out: a RunResult. Same seed and code, same trace to the byte.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from drakit.apiserver.auth.identities import ADMIN
from drakit.base.errors import DrakitError
from drakit.simulate import workload
from drakit.simulate.disks.scratch import scratch_directory
from drakit.simulate.faults import ACTIONS, FAULTS, WEATHER, draw, heal
from drakit.simulate.loops import Deadlock
from drakit.simulate.processes import Process, undisturbed
from drakit.simulate.rules.liveness import unfinished
from drakit.simulate.users import Hands
from drakit.simulate.world import World

QUIET = 900.0
"""Seconds after the faults within which everything must be as it should."""
BASES = 100
"""How many different beginnings there are: a cluster starts once for all seeds of the same remainder."""
_LOOK = 5.0
_DELETED = (
    "pods", "pods", "pods", "claims", "slices", "templates", "groups", "leases", "accounts", "nodes", "classes",
    "namespaces",
)  # fmt: skip


_ANNOTATED = ("pods", "pods", "claims", "claims", "groups", "nodes")


class RunSize(msgspec.Struct, frozen=True):
    """How much happens in a run: seconds of faults, the chance of each fault, and how often things are done at most."""

    troubled: float
    chance: float
    repeats: int
    creations: tuple[int, int]
    deletions: tuple[int, int]
    kinds: int
    """How many kinds of pods there are: few, so that those of a small run want the same devices."""
    quota: int
    events: bool
    """Whether the server keeps Event objects, which are a third of all writes."""


SMALL = RunSize(30.0, 0.12, 1, (2, 4), (0, 1), kinds=2, quota=2, events=False)
MIDDLE = RunSize(75.0, 0.25, 2, (3, 6), (0, 3), kinds=4, quota=3, events=False)
LARGE = RunSize(150.0, 0.35, 3, (4, 9), (0, 5), kinds=len(workload.KINDS), quota=5, events=True)
_SIZES = (*[SMALL] * 94, *[MIDDLE] * 5, LARGE)
"""Most bugs need few things to come together: many small runs meet more such than few large ones."""


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
    troubled: float = LARGE.troubled
    quiet: float = QUIET
    events: bool = True

    def brief(self) -> RunPlan:
        """The same on one node in a sixth of the time, without the quiet time: enough to compare two runs."""
        return msgspec.structs.replace(self.without_quiet(), nodes=1)

    def without_quiet(self) -> RunPlan:
        steps = tuple(msgspec.structs.replace(each, at=each.at / 6) for each in self.steps[::2])
        return msgspec.structs.replace(self, steps=steps, troubled=self.troubled / 6, quiet=0.0)


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
    size = random.choice(_SIZES)
    chosen = draw(random, allowed, size.chance)
    actions = [each for each in chosen if each in ACTIONS]
    steps = [RunStep(random.uniform(0.0, size.troubled), f"fault {name}", random.getrandbits(32))
             for name in actions for _ in range(random.randint(1, size.repeats))]  # fmt: skip
    kinds = random.sample(workload.KINDS, size.kinds)
    deletions = [random.choice(_DELETED) for _ in range(random.randint(*size.deletions))]
    in_team = 0.6 if "namespaces" in deletions else 0.15
    for _ in range(random.randint(*size.creations)):
        at = random.uniform(0.0, size.troubled * 0.9)
        where = f" in {workload.TEAM}" if random.random() < in_team else ""
        steps.append(RunStep(at, f"create {random.choice(kinds)}{where}", random.getrandbits(32)))
    for what in deletions:
        at = random.uniform(size.troubled * 0.2, size.troubled)
        steps.append(RunStep(at, f"delete {what}", random.getrandbits(32)))
    for _ in range(random.randint(0, size.repeats)):
        at = random.uniform(size.troubled * 0.1, size.troubled)
        steps.append(RunStep(at, f"annotate {random.choice(_ANNOTATED)}", random.getrandbits(32)))
    return RunPlan(
        seed,
        nodes=nodes_of(seed),
        quota=random.choice((None, None, size.quota)),
        weather=tuple(each for each in chosen if each in WEATHER),
        steps=tuple(sorted(steps, key=lambda step: (step.at, step.name))),
        troubled=size.troubled,
        events=size.events,
    )


def nodes_of(seed: int) -> int:
    return Random(f"{seed % BASES}/size").choice((1, 1, 1, 1, 2, 2, 3))


def run(plan: RunPlan) -> RunResult:
    """Play the plan from the start of its cluster."""
    with quietly(), undisturbed(), scratch_directory() as directory:
        # In a function of its own: nothing refers to the cluster any more when what it left is collected in silence.
        return _run_from_start(plan, Path(directory))


def _run_from_start(plan: RunPlan, directory: Path) -> RunResult:
    beginning = Beginning(plan.seed, plan.nodes, directory)
    try:
        return beginning.play(plan)
    finally:
        beginning.close()


@contextmanager
def quietly() -> Iterator[None]:
    """Faults are what a run is about: nobody wants to read of each."""
    log = logging.getLogger("drakit")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)


class Beginning:
    """A cluster that has started and that nobody has used. A plan is played on it, or one in each fork of the process.

    Seeds of the same remainder and number of nodes have the same beginning, to the byte.
    """

    def __init__(self, seed: int, nodes: int, directory: Path) -> None:
        self.world = world = World(seed % BASES, directory)
        world.loop.set_exception_handler(lambda _, context: _unhandled(world, context))
        world.begin(nodes, Random(f"{world.seed}/nodes"))
        self._user = Process("user", 1, world.loop)
        world.network.processes[self._user.id] = self._user
        self._hands = Hands(world, world.client(self._user, ADMIN), self._user)
        self._go(self._hands.do(self._hands.prepare()))

    def play(self, plan: RunPlan) -> RunResult:
        world = self.world
        world.reseed(plan.seed)
        if not world.violations:
            self._go(self._play(plan))
        return RunResult(
            plan,
            tuple(dict.fromkeys(world.violations)),
            hashlib.sha256("\n".join(world.trace).encode()).hexdigest(),
            tuple(world.trace),
            dict(world.met),
            world.loop.time(),
            world.loop.steps,
        )

    def close(self) -> None:
        self.world.over = True
        self.world.graveyard.bury()
        self.world.loop.close()

    def _go(self, work: Awaitable[None]) -> None:
        try:
            self.world.loop.run_until_complete(work)
        except Deadlock as error:
            self.world.violate(str(error))

    async def _play(self, plan: RunPlan) -> None:
        world = self.world
        begun = world.loop.time()
        if plan.quota is not None:
            await self._hands.do(self._hands.create([workload.quota(plan.quota)]))
            world.judge.quota = plan.quota
        world.network.keeps_events = plan.events
        for name in plan.weather:
            setattr(world.network.weather, name, WEATHER[name])
        for step in plan.steps:
            await asyncio.sleep(max(begun + step.at - world.loop.time(), 0.0))
            _do(world, self._hands, step)
            if world.violations:
                return
        await asyncio.sleep(max(begun + plan.troubled - world.loop.time(), 0.0))
        if plan.quiet:
            await _calm_down(world, self._hands, plan.quiet)


def _unhandled(world: World, context: dict[str, Any]) -> None:
    """What asyncio reports: an exception that nobody has seen is a bug, unless it is one of a lost connection."""
    error = context.get("exception")
    if isinstance(error, Exception) and not isinstance(error, DrakitError):
        world.violate(f"nobody handles {type(error).__name__}: {error}")


def _do(world: World, hands: Hands, step: RunStep) -> None:
    world.note(f"-- {step.name}")
    kind, _, what = step.name.partition(" ")
    random = Random(step.seed)
    if kind == "fault":
        world.note_fault(what)
        ACTIONS[what](world, random)
    elif kind == "create":
        sort, _, where = what.partition(" in ")
        objects = workload.pod_objects(step.seed % 100_000, sort, random, where or "default")
        hands.do(hands.create(objects))
    elif kind == "annotate":
        hands.do(hands.annotate(what, random))
    else:
        hands.do(hands.delete(what, random))


async def _calm_down(world: World, hands: Hands, quiet: float) -> None:
    """Faults stop; then everything must come right within bounded time."""
    heal(world)
    world.judge.gates.calm()
    world.note("-- quiet")
    end = world.loop.time() + quiet
    left: list[str] = ["nothing was looked at"]
    while left and world.loop.time() < end and not world.violations:
        await asyncio.sleep(_LOOK)
        left = [*unfinished(world.judge), *(f"{each} has work left" for each in world.busy())]
        if hands.busy:
            left.append("users have not done what they wanted")
    for each in left if not world.violations else ():
        world.violate(f"after {quiet:g} quiet seconds: {each}")
