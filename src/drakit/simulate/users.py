"""What users of a simulated cluster do: they create, change and delete things, and try again when that fails.

In:  a client; what to create, or which kind of thing to change or delete.
Out: requests. Users do not give up early, as people and their tools do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any

import msgspec

from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain
from drakit.base.errors import DrakitError
from drakit.client import (
    CLAIMS,
    CLASSES,
    LEASES,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    SERVICE_ACCOUNTS,
    SLICES,
    TEMPLATES,
    AlreadyExists,
    Client,
    Conflict,
    Forbidden,
    NotFound,
    Resource,
    metadata_of,
)
from drakit.simulate import workload
from drakit.simulate.processes import Process
from drakit.simulate.world import World

_WARM_UP = 12.0
_TRIES = 100
_PAUSE = 2.0
_KINDS: dict[str, Resource[Any]] = {
    "pods": PODS, "claims": CLAIMS, "slices": SLICES, "templates": TEMPLATES, "groups": POD_GROUPS, "leases": LEASES,
    "accounts": SERVICE_ACCOUNTS, "nodes": NODES, "classes": CLASSES, "namespaces": NAMESPACES,
}  # fmt: skip
_AUTHORS = 2
"""How many write notes to the same object at the same time."""
_NOTES = 2


class Hands:
    """The hands of all users: one process of the world."""

    def __init__(self, world: World, client: Client, process: Process) -> None:
        self._world = world
        self._client = client
        self._process = process
        self._notes = 0
        self.busy = 0
        """How many things are begun and not done."""

    def do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin something; what is done meanwhile is other users' work."""
        self.busy += 1
        return self._process.spawn(self._do(work))

    async def _do(self, work: Coroutine[Any, Any, None]) -> None:
        await work
        self.busy -= 1

    async def prepare(self) -> None:
        """What a cluster has before anybody uses it."""
        await asyncio.sleep(0.2)
        high = workload.priority_class("high", 1000)
        await self.create([workload.namespace(workload.TEAM), *workload.classes(), high])
        await asyncio.sleep(_WARM_UP)

    async def create(self, objects: Sequence[Plain]) -> None:
        for each in objects:
            if wait := each["metadata"].get("annotations", {}).get(workload.AFTER):
                await asyncio.sleep(float(wait))
            for _ in range(_TRIES):
                try:
                    await self._client.create(each)
                except AlreadyExists:
                    break
                except Forbidden:
                    if each["kind"] == "ResourceClaim" and each["metadata"]["namespace"] != workload.TEAM:
                        return  # the quota
                    await asyncio.sleep(_PAUSE)
                except DrakitError:
                    await asyncio.sleep(_PAUSE)
                else:
                    break

    async def delete(self, what: str, random: Random) -> None:
        """One of the things of that kind. Who deletes a class understands what it was for, and makes it again."""
        if what == "namespaces":
            await self._replace_namespace(random)
            return
        name = ""
        try:
            chosen = await self._choose(what, random)
            if chosen is None:
                return
            metadata = metadata_of(chosen)
            name = metadata.name
            await self._client.delete(_KINDS[what], name, namespace=metadata.namespace)
        except DrakitError as error:  # of which nobody knows whether it was done
            self._world.note(f"user: {error}")
        if what == "classes" and name:
            await asyncio.sleep(random.choice((1.0, 10.0, 30.0)))
            await self.create([each for each in workload.classes() if each["metadata"]["name"] == name])

    async def _choose(self, what: str, random: Random) -> Any:
        found = list(await self._client.list(_KINDS[what]))
        return found[random.randrange(len(found))] if found else None

    async def _replace_namespace(self, random: Random) -> None:
        """Delete it, also when the answer is lost; then wait until its name is free, and make another."""
        uid = await self._end_namespace()
        await asyncio.sleep(random.choice((0.0, 1.0, 10.0)))
        while uid:
            try:
                await self._client.create(workload.namespace(workload.TEAM))
                return
            except AlreadyExists:
                uid = await self._still(uid)
                await asyncio.sleep(_PAUSE)
            except DrakitError:
                await asyncio.sleep(_PAUSE)

    async def _end_namespace(self) -> str:
        """The uid of the namespace, which is being deleted now."""
        uid = ""
        while True:
            try:
                uid = uid or metadata_of(await self._client.get(NAMESPACES, workload.TEAM)).uid
                await self._client.delete(NAMESPACES, workload.TEAM, uid=uid)
            except NotFound:
                return uid
            except DrakitError:
                if uid and await self._still(uid) != uid:
                    return uid
                await asyncio.sleep(_PAUSE)
            else:
                return uid

    async def _still(self, uid: str) -> str:
        """The uid as long as nobody knows that another namespace has the name; none then."""
        try:
            found = await self._client.find(NAMESPACES, workload.TEAM)
        except DrakitError:
            return uid
        return "" if found is not None and metadata_of(found).uid != uid else uid

    # Notes: whoever is told that one was taken expects it to stay

    async def annotate(self, what: str, random: Random) -> None:
        """Some users add notes to the same object at the same time, by reading and writing it."""
        try:
            chosen = await self._choose(what, random)
        except DrakitError:
            return
        if chosen is not None:
            for _ in range(_AUTHORS):
                self._notes += 1
                self.do(self._write_notes(_KINDS[what], chosen, self._notes))

    async def _write_notes(self, kind: Resource[Any], chosen: Any, author: int) -> None:
        for number in range(_NOTES):
            await self._write_note(kind, chosen, f"{workload.NOTES}{author}-{number}")

    async def _write_note(self, kind: Resource[Any], chosen: Any, note: str) -> None:
        meant = metadata_of(chosen)
        for _ in range(_TRIES):
            try:
                found = await self._client.get(kind, meant.name, namespace=meant.namespace)
                if metadata_of(found).uid != meant.uid:
                    return
                await self._client.update(_with_note(found, note))
            except NotFound:
                return
            except Conflict:  # somebody was faster
                await asyncio.sleep(0.1)
            except DrakitError:  # nobody knows whether it was done
                await asyncio.sleep(_PAUSE)
            else:
                self._world.judge.note_taken(meant.uid, note)
                return


def _with_note(found: Any, note: str) -> Any:
    if isinstance(found, Partial):
        metadata = {**found.document["metadata"]}
        metadata["annotations"] = {**metadata.get("annotations", {}), note: ""}
        return {**found.document, "metadata": metadata}
    annotations = {**found.metadata.annotations, note: ""}
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, annotations=annotations))
