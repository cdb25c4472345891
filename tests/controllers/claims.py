"""Scenes and objects for the tests of claims, here and elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from drakit.base.gates import FeatureGates
from drakit.base.wellknown import CLAIM_FINALIZER
from drakit.client import CLAIMS, MERGE
from drakit.controllers.claims import ClaimController
from tests.builders.cluster import Cluster, cluster
from tests.builders.manifests import (
    allocation,
    consumer,
)

MAKERS = (ClaimController,)


@asynccontextmanager
async def running(gates: FeatureGates | None = None) -> AsyncIterator[Cluster]:
    async with cluster(gates) as made:
        await made.start(MAKERS)
        yield made


async def allocate(it: Cluster, name: str, *users: Any, node: str = "node-1") -> None:
    """What a scheduler does: finalizer, then allocation and reservations."""
    found = await it.client.get(CLAIMS, name, namespace="default")
    found = await it.client.patch(found, {"metadata": {"finalizers": [CLAIM_FINALIZER]}}, kind=MERGE)
    status = {"allocation": allocation(node=node), "reservedFor": [consumer(user) for user in users]}
    await it.client.patch_status(found, status)
    await it.settle()
