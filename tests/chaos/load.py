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
from drakit.client import CLAIMS, CONFIG_MAPS, PODS, AlreadyExists, Client, Expired, NotFound, load_kubeconfig
from drakit.client.transport.http import Http
from tests.builders.podmanifests import by_name, claim, device_class, node, pod, resource_slice
from tests.chaos.replicas import ReplicatedCluster

NAMESPACE = "default"
DEVICES = 128
SHORT = 5.0
"""Seconds that a request may take: one that is stuck counts as not answered."""


def client_of(kubeconfig: Path) -> Client:
    return Client(Http(load_kubeconfig([kubeconfig]), timeout=SHORT))


def config_map_of(name: str, value: int) -> dict[str, Any]:
    about = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"value": str(value)}}


class Answers:
    """Requests by what came of them, and the longest time in which none was answered."""

    def __init__(self) -> None:
        self.answered = self.failed = 0
        self.longest = 0.0
        self._latest = time.monotonic()

    def note(self, *, good: bool) -> None:
        now = time.monotonic()
        if good:
            self.longest = max(self.longest, now - self._latest)
            self._latest = now
        self.answered += good
        self.failed += not good


class Load:
    """Writers, watchers and pods, until told to stop."""

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self._cluster = cluster
        self.answers = Answers()
        self.acknowledged: dict[str, dict[int, int]] = defaultdict(dict)
        """Per object the values whose writes were acknowledged, with their revision."""
        self.seen: list[dict[str, list[tuple[int, int]]]] = [defaultdict(list) for _ in cluster.kubeconfigs]
        """Per API server and object: revision and value of each event, in the order in which they came."""
        self.relists = [0] * len(cluster.kubeconfigs)
        self.began = [0] * len(cluster.kubeconfigs)
        """Where each watch began: what was before is not its concern."""
        self.stopping = asyncio.Event()
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
            work = [self._write(shared, f"w{number}") for number in range(writers)]
            await asyncio.gather(*work, self._make_pods(shared))
            await self._settle(shared)
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
        while not self.stopping.is_set() or not self._complete(number):
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
                self.relists[number] += 1
                since = await self._list(number, client) or since
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

    async def _make_pods(self, client: Client) -> None:
        while not self.stopping.is_set() and self.pods < DEVICES:
            name = f"p{self.pods}"
            try:
                for made in (claim(name), pod(name, claims=[by_name(name)])):
                    try:
                        await client.create(made)
                    except AlreadyExists:
                        continue
            except (DrakitError, OSError):
                await asyncio.sleep(0.1)
                continue
            self.pods += 1
            await asyncio.sleep(0.05)

    async def _settle(self, client: Client) -> None:
        """The faults are over: every pod is bound in the end."""
        async with asyncio.timeout(60):
            while True:
                try:
                    found = await client.list(PODS, namespace=NAMESPACE)
                except (DrakitError, OSError):
                    found = None
                if found is not None and len([each for each in found.items if each.view.spec.node_name]) == self.pods:
                    return
                await asyncio.sleep(0.2)

    async def problems(self) -> list[str]:
        """What does not hold; nothing, if all is well."""
        found = [*self._lost(), *self._disordered()]
        async with client_of(self._cluster.both) as client:
            claims = (await client.list(CLAIMS, namespace=NAMESPACE)).items
            holders: dict[str, list[str]] = defaultdict(list)
            for each in claims:
                for result in each.status.allocation.devices.results if each.status.allocation else ():
                    holders[result.device].append(each.metadata.name)
            found += [f"{device} was given to {names}" for device, names in holders.items() if len(names) > 1]
            for name, rows in self.acknowledged.items():
                now = await client.get(CONFIG_MAPS, name, namespace=NAMESPACE)
                if int(now.document["data"]["value"]) < max(rows):
                    found.append(f"{name}: value {max(rows)} was acknowledged, and it is {now.document['data']}")
        return found

    def _lost(self) -> list[str]:
        """Acknowledged writes that a watch which never began anew did not show."""
        return [
            f"watch of server {number}: the write of {value} to {name} at {revision} did not come"
            for number, seen in enumerate(self.seen)
            if not self.relists[number]
            for name, rows in self.acknowledged.items()
            for value, revision in rows.items()
            if revision > self.began[number] and (revision, value) not in set(seen[name])
        ]

    def _disordered(self) -> list[str]:
        return [
            f"watch of server {number}: events of {name} come twice or out of order"
            for number, seen in enumerate(self.seen)
            for name, rows in seen.items()
            if [at for at, _ in rows] != sorted({at for at, _ in rows})
        ]
