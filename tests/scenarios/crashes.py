"""Controllers that die after any single write of a scenario, and come back.

In:  a scenario, written for a cluster in which nothing goes wrong.
Out: for each write, what the scenario leaves behind when the controllers die right after it and are started again.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from drakit.api.codec.documents import to_wire
from drakit.api.objects.partial import Partial
from drakit.client import EVENTS, Resource
from drakit.controllers.composition import Controllers, Make
from tests.builders.cluster import Cluster, run_stepped, staged

Scenario = Callable[[Cluster], Awaitable[None]]
_GONE = ("resourceVersion", "managedFields")
_VARYING = (
    "uid",
    "creationTimestamp",
    "lastTransitionTime",
    "deletionTimestamp",
    "timeAdded",
    "allocationTimestamp",
    # Of jobs: times, and the labels with their uid.
    "startTime",
    "completionTime",
    "lastProbeTime",
    "finishedAt",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
)
"""That these are there has to be the same, their values are not."""
_GENERATED = re.compile(r'("resourceClaimName": "[a-z0-9-]+-)[a-z0-9]{5}(?=")')
"""The name of a claim that was made of a template, which may be gone."""


class Left(msgspec.Struct, frozen=True):
    """What a scenario leaves: objects, the writes of all lives of the controllers (events apart), reasons of events.

    `created` counts the writes that made an object, by their paths.
    """

    objects: list[str]
    writes: list[tuple[str, str]]
    created: Counter[str]
    events: set[str]
    deaths: int


class Mortal(Cluster):
    """A cluster whose controllers die once, after the write of that number, and are started again."""

    makers: Sequence[Make] = ()
    dies_after: int | None = None
    deaths = 0
    writes: tuple[tuple[str, str], ...] = ()
    created: tuple[str, ...] = ()

    async def begin(self) -> None:
        await self.start(self.makers, dies_after=self.dies_after)

    async def start(self, makers: Sequence[Make], *, dies_after: int | None = None) -> Controllers:
        self.makers = makers
        started = await super().start(makers, dies_after=dies_after)
        await self.settle()
        return started

    async def kill(self) -> None:
        self.writes += tuple(self.transport.writes)
        self.created += tuple(self.transport.created)
        self.transport.writes, self.transport.created = [], []
        await super().kill()

    async def settle(self) -> None:
        await super().settle()
        if self.running is not None and self.transport.died.is_set():
            self.deaths += 1
            await self.kill()
            await super().start(self.makers)
            await super().settle()


Stage = Callable[[], AbstractAsyncContextManager[Mortal]]
"""Where a scenario is played: a cluster whose controllers are not started yet."""


def in_process() -> AbstractAsyncContextManager[Mortal]:
    return staged(Mortal)


async def play(
    scenario: Scenario,
    makers: Sequence[Make],
    kinds: Sequence[Resource[Any]],
    *,
    dies_after: int | None = None,
    rest: float = 60.0,
    stage: Stage = in_process,
) -> Left:
    """What a scenario leaves, `rest` seconds after its end."""
    async with stage() as it:
        it.makers, it.dies_after = makers, dies_after
        try:
            await it.begin()
            await scenario(it)
            await it.run_for(rest)
        finally:
            await it.kill()
        return await left_of(it, kinds)


async def left_of(it: Mortal, kinds: Sequence[Resource[Any]]) -> Left:
    documents = [_document(each) for kind in kinds for each in await it.client.list(kind)]
    made = [each["metadata"] for each in documents if each["metadata"].get("generateName")]
    random = {each["name"]: each["generateName"] + "<random>" for each in made}
    events = await it.client.list(EVENTS)
    writes = sorted((method, _plain(path)) for method, path in it.writes if "/events" not in path)
    return Left(
        sorted(
            _GENERATED.sub(r"\1<random>", _replaced(json.dumps(_bare(each), sort_keys=True), random))
            for each in documents
        ),
        writes,
        # A review is answered and not stored: asking again makes nothing.
        Counter(path for path in it.created if "/events" not in path and "accessreviews" not in path),
        {f"{each.view.involved_object.kind} {each.view.reason}" for each in events},
        it.deaths,
    )


def _plain(path: str) -> str:
    """A path without the random end of a generated name."""
    return re.sub(r"-[a-z0-9]{5}(?=/|$)", "-<random>", path)


def _document(obj: Any) -> dict[str, Any]:
    return dict(obj.document) if type(obj) is Partial else dict(to_wire(obj))


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in _GONE}
        return {key: f"<{key}>" if key in _VARYING and each else _bare(each) for key, each in kept.items()}
    return [_bare(each) for each in value] if isinstance(value, list | tuple) else value


def _replaced(text: str, names: dict[str, str]) -> str:
    for name, general in names.items():
        text = text.replace(name, general)
    return text


def check_every_crash(
    scenario: Scenario,
    makers: Sequence[Make],
    kinds: Sequence[Resource[Any]],
    *,
    apart: Sequence[str] = (),
    stage: Stage = in_process,
    run: Callable[[Coroutine[Any, Any, Left]], Left] = run_stepped,
    exact: bool = True,
    at_most: bool = False,
    lost: int = 0,
) -> int:
    """Play the scenario whole, then once per write with a death after it; how many writes there are.

    `apart` names what is in the paths of writes that may be repeated. Where it is not `exact`, writes may come in
    another order, and so meet conflicts and be tried again: then only those that make something are compared, or, with
    `at_most`, none may be made more often. What people were told of, they must be told of after a crash too, but for
    `lost` reasons of events: those that were not written yet die with the controllers.
    """

    def counted(left: Left) -> list[tuple[str, str]]:
        return [write for write in left.writes if not any(word in write[1] for word in apart)]

    whole = run(play(scenario, makers, kinds, stage=stage))
    deaths = 0
    for number in itertools.count(1):
        crashed = run(play(scenario, makers, kinds, dies_after=number, stage=stage))
        deaths += crashed.deaths
        if not crashed.deaths:
            break
        assert crashed.objects == whole.objects, f"after write {number}"
        assert not exact or counted(crashed) == counted(whole), f"after write {number}"
        more = Counter(counted(crashed)) - Counter(counted(whole))
        assert not at_most or not more, f"after write {number}: {more}"
        assert crashed.created <= whole.created, f"after write {number}"
        untold = whole.events - crashed.events
        assert len(untold) <= lost, f"after write {number}: {sorted(untold)}"
    return deaths
