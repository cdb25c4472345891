"""Load on a replicated control plane, and what must hold of it whatever fails.

In:  clients of both API servers.
Out: acknowledged writes, events as watches of each server gave them, requests that were answered and that were not.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from drakit.base.errors import DrakitError
from drakit.client import CLAIMS, CONFIG_MAPS, PODS, AlreadyExists, Client, Expired, NotFound, Resource, load_kubeconfig
from drakit.client.transport.http import Http
from tests.builders.podmanifests import by_name, claim, device_class, node, pod, resource_slice
from tests.chaos.ownership import HeldDevices
from tests.chaos.replicas import ReplicatedCluster

NAMESPACE = "default"
DEVICES = 64
PODS_AT_ONCE = 40
"""Pods that are there at a time: the oldest goes for each new one, so devices are given and taken back all the time."""
_PATIENCE = 400.0
SHORT = 5.0
"""Seconds that a request may take: one that is stuck counts as not answered."""


def client_of(kubeconfig: Path, *, timeout: float = SHORT) -> Client:
    return Client(Http(load_kubeconfig([kubeconfig]), timeout=timeout))


def config_map_of(name: str, value: int) -> dict[str, Any]:
    about = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"value": str(value)}}


class Answers:
    """Requests by what came of them, and the longest time in which none was answered."""

    def __init__(self, began: float | None = None) -> None:
        self.answered = self.failed = 0
        self.longest = 0.0
        self._latest = time.monotonic() if began is None else began

    def note(self, *, good: bool) -> None:
        now = time.monotonic()
        self.longest = max(self.longest, now - self._latest)
        if good:
            self._latest = now
        self.answered += good
        self.failed += not good

    def add(self, other: Answers) -> None:
        self.answered += other.answered
        self.failed += other.failed
        self.longest = max(self.longest, other.longest)

    def following(self) -> Answers:
        """For what comes next: a gap that has begun goes on."""
        return Answers(self._latest)

    def __str__(self) -> str:
        share = self.answered / max(self.answered + self.failed, 1)
        return f"{self.answered} | {self.failed} | {share:.2%} | {self.longest:.1f} s"


class Load:
    """Writers, watchers and pods, until told to stop."""

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self._cluster = cluster
        self.answers = Answers()
        self.acknowledged: dict[str, dict[int, int]] = defaultdict(dict)
        """Per object the values whose writes were acknowledged, with their revision."""
        self.seen: list[dict[str, list[tuple[int, int]]]] = [defaultdict(list) for _ in cluster.kubeconfigs]
        """Per API server and object: revision and value of each event, in the order in which they came."""
        self.gaps: list[list[tuple[int, int]]] = [[] for _ in cluster.kubeconfigs]
        """Per API server: after which revision a watch had to list, as a server that starts has no history, and where
        it began anew. What lies between came with the list, or was replaced since."""
        self.began = [0] * len(cluster.kubeconfigs)
        """Where each watch began: what was before is not its concern."""
        self.held = [HeldDevices() for _ in cluster.kubeconfigs]
        """Per API server: who holds which device."""
        self.stopping = asyncio.Event()
        self._settled = asyncio.Event()
        self.pods = 0

    async def prepare(self) -> None:
        async with client_of(self._cluster.both) as client:
            for each in (node("node-1"), device_class(), resource_slice("slice", *(f"d{n}" for n in range(DEVICES)))):
                await client.create(each)

    async def run(self, writers: int = 4) -> None:
        async with AsyncExitStack() as stack:
            watched = [await stack.enter_async_context(client_of(each)) for each in self._cluster.kubeconfigs]
            shared = await stack.enter_async_context(client_of(self._cluster.both))
            watching = [asyncio.create_task(self._watch(number, each)) for number, each in enumerate(watched)]
            watching += [asyncio.create_task(self._watch_claims(number, each)) for number, each in enumerate(watched)]
            work = [self._write(shared, f"w{number}") for number in range(writers)]
            await asyncio.gather(*work, self._make_pods(shared))
            await self._settle(shared)
            self._settled.set()
            await asyncio.gather(*watching)

    async def _write(self, client: Client, name: str) -> None:
        """Count up in one object. A write without an answer may have been done, so it is looked for."""
        value = 0
        while not self.stopping.is_set():
            value += 1
            try:
                if value == 1:
                    made = await client.create(config_map_of(name, value))
                else:
                    made = await client.update(config_map_of(name, value))
            except (DrakitError, OSError):
                self.answers.note(good=False)
                await asyncio.sleep(0.1)
                value = await self._found(client, name, value)
            else:
                self.answers.note(good=True)
                self.acknowledged[name][value] = int(made.view.metadata.resource_version)
            await asyncio.sleep(0.01)

    async def _found(self, client: Client, name: str, value: int) -> int:
        """The value that an object has after a write without an answer."""
        while True:
            try:
                found = await client.get(CONFIG_MAPS, name, namespace=NAMESPACE)
            except NotFound:
                return 0
            except (DrakitError, OSError):
                await asyncio.sleep(0.1)
            else:
                # It may still be on its way: values are never used twice, so the next one is beyond both.
                return max(int(found.document["data"]["value"]), value)

    async def _watch(self, number: int, client: Client) -> None:
        """Follow one server; after a break go on behind the last event."""
        while not (since := await self._list(number, client)):  # noqa: ASYNC110 - the server is another process
            await asyncio.sleep(0.2)
        self.began[number] = int(since)
        # Not before the writers are through: their last writes may take longer than a watch.
        while not self._settled.is_set() or not self._complete(number):
            try:
                async with client.watch(CONFIG_MAPS, namespace=NAMESPACE, since=since, seconds=5) as changes:
                    async for change in changes:
                        since = change.resource_version
                        if change.object is not None and "value" in change.object.document.get("data", {}):
                            value = int(change.object.document["data"]["value"])
                            name = change.object.view.metadata.name
                            self.seen[number][name].append((int(since), value))
            except Expired:
                # The server began anew: what it had forgotten was seen by the watch before, or is in the list.
                again = await self._list(number, client)
                if again:
                    self.gaps[number].append((int(since), int(again)))
                    since = again
            except (DrakitError, OSError):
                await asyncio.sleep(0.2)

    async def _list(self, number: int, client: Client) -> str:
        try:
            found = await client.list(CONFIG_MAPS, namespace=NAMESPACE)
        except (DrakitError, OSError):
            return ""
        for each in found.items:
            if "value" in each.document.get("data", {}):
                row = (int(each.view.metadata.resource_version), int(each.document["data"]["value"]))
                if row not in self.seen[number][each.view.metadata.name]:
                    self.seen[number][each.view.metadata.name].append(row)
        return found.resource_version

    def _complete(self, number: int) -> bool:
        """Whether a watch has come to the last acknowledged write of every object."""
        last = {name: max(rows.values()) for name, rows in self.acknowledged.items()}
        return all(self.seen[number][name] and self.seen[number][name][-1][0] >= at for name, at in last.items())

    async def _watch_claims(self, number: int, client: Client) -> None:
        """Follow the allocations as one server tells them."""
        since, held = "", self.held[number]
        while not self._settled.is_set():
            try:
                if not since:
                    found = await client.list(CLAIMS, namespace=NAMESPACE)
                    held.begin(found.items)
                    since = found.resource_version
                async with client.watch(CLAIMS, namespace=NAMESPACE, since=since, seconds=5) as changes:
                    async for change in changes:
                        since = change.resource_version
                        if change.object is not None:
                            (held.remove if change.type == "DELETED" else held.put)(change.object)
            except Expired:
                since = ""
            except (DrakitError, OSError):
                await asyncio.sleep(0.2)

    async def _make_pods(self, client: Client) -> None:
        while not self.stopping.is_set():
            name = f"p{self.pods}"
            try:
                for made in (claim(name), pod(name, claims=[by_name(name)])):
                    try:
                        await client.create(made)
                    except AlreadyExists:
                        continue
                self.pods += 1
                if self.pods > PODS_AT_ONCE:
                    await self._remove(client, f"p{self.pods - PODS_AT_ONCE - 1}")
            except (DrakitError, OSError):
                await asyncio.sleep(0.1)
                continue
            await asyncio.sleep(0.05)

    async def _remove(self, client: Client, name: str) -> None:
        """The pod at once, as no node looks after it; the claim goes when controllers have taken its devices back."""
        kinds: tuple[tuple[Resource[Any], int | None], ...] = ((PODS, 0), (CLAIMS, None))
        for kind, grace in kinds:
            try:
                await client.delete(kind, name, namespace=NAMESPACE, grace=grace)
            except NotFound:
                continue

    async def _settle(self, client: Client) -> None:
        """The faults are over: every pod is bound in the end, and of claims only theirs are left."""
        async with asyncio.timeout(_PATIENCE):
            while not await self._is_settled(client):  # noqa: ASYNC110 - other processes settle it
                await asyncio.sleep(0.2)

    async def _is_settled(self, client: Client) -> bool:
        try:
            found = await client.list(PODS, namespace=NAMESPACE)
            claims = await client.list(CLAIMS, namespace=NAMESPACE)
            for each in claims.items:
                # A removal that was not answered left the claim behind.
                if each.metadata.name not in {pod.view.metadata.name for pod in found.items}:
                    await self._remove(client, each.metadata.name)
        except (DrakitError, OSError):
            return False
        return all(each.view.spec.node_name for each in found.items) and len(claims.items) == len(found.items)

    async def problems(self) -> list[str]:
        """What does not hold; nothing, if all is well."""
        found = [*self._lost(), *self._disordered(), *(text for each in self.held for text in each.doubled)]
        async with client_of(self._cluster.both) as client:
            last = HeldDevices()
            last.begin((await client.list(CLAIMS, namespace=NAMESPACE)).items)
            found += last.doubled
            for name, rows in self.acknowledged.items():
                now = await client.get(CONFIG_MAPS, name, namespace=NAMESPACE)
                if int(now.document["data"]["value"]) < max(rows):
                    found.append(f"{name}: value {max(rows)} was acknowledged, and it is {now.document['data']}")
        return found

    def _lost(self) -> list[str]:
        """Acknowledged writes that a watch did not show, though it was there."""
        known = [{name: set(rows) for name, rows in seen.items()} for seen in self.seen]
        return [
            f"watch of server {number}: the write of {value} to {name} at {revision} did not come"
            for number, seen in enumerate(known)
            for name, rows in self.acknowledged.items()
            for value, revision in rows.items()
            if revision > self.began[number]
            and not any(begin < revision <= end for begin, end in self.gaps[number])
            and (revision, value) not in seen.get(name, ())
        ]

    def _disordered(self) -> list[str]:
        return [
            f"watch of server {number}: events of {name} come twice or out of order"
            for number, seen in enumerate(self.seen)
            for name, rows in seen.items()
            if [at for at, _ in rows] != sorted({at for at, _ in rows})
        ]
