"""What users of a simulated cluster do: they create and delete things, and try again when that fails.

In:  a client; what to create, or which kind of thing to delete.
Out: requests. Users do not give up early, as people and their tools do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.base.errors import DrakitError
from drakit.client import (
    CLAIMS,
    CLASSES,
    LEASES,
    NODES,
    POD_GROUPS,
    PODS,
    SERVICE_ACCOUNTS,
    SLICES,
    TEMPLATES,
    AlreadyExists,
    Client,
    Forbidden,
    Resource,
)
from drakit.simulate import workload
from drakit.simulate.world import World

_WARM_UP = 12.0
_KINDS: dict[str, Resource[Any]] = {
    "pods": PODS, "claims": CLAIMS, "slices": SLICES, "templates": TEMPLATES, "groups": POD_GROUPS, "leases": LEASES,
    "accounts": SERVICE_ACCOUNTS, "nodes": NODES, "classes": CLASSES,
}  # fmt: skip


class Hands:
    """The hands of all users: one process of the world."""

    def __init__(self, world: World, client: Client) -> None:
        self._world = world
        self._client = client

    async def prepare(self) -> None:
        """What a cluster has before anybody uses it."""
        await asyncio.sleep(0.2)
        await self.create([*workload.classes(), workload.priority_class("high", 1000)])
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
        """One of the things of that kind. Who deletes a class understands what it was for, and makes it again."""
        kind, name = _KINDS[what], ""
        try:
            found = list(await self._client.list(kind))
            if not found:
                return
            chosen = found[random.randrange(len(found))]
            metadata = getattr(chosen, "view", chosen).metadata
            name = metadata.name
            await self._client.delete(kind, name, namespace=metadata.namespace)
        except DrakitError as error:  # of which nobody knows whether it was done
            self._world.note(f"user: {error}")
        if what == "classes" and name:
            await asyncio.sleep(random.choice((1.0, 10.0, 30.0)))
            await self.create([each for each in workload.classes() if each["metadata"]["name"] == name])
