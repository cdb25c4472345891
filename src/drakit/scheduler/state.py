"""What a scheduler has decided and nobody else knows yet: the part of a snapshot that no API server has.

In:  its cache of nodes, and what its plugins hold in memory.
Out: plain data. `manifests` counts it when it reads a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api.objects.plain import to_plain
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.dynamicresources.state.context import NAME
from drakit.scheduler.framework import Handle


class AssumedPod(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that counts on its node, and is being bound."""

    namespace: str
    name: str
    uid: str
    node_name: str


class AllocationInFlight(msgspec.Struct, frozen=True):
    """Devices that are a claim's in memory, and not yet in its status."""

    namespace: str
    claim: str
    uid: str
    allocation: Mapping[str, Any]


class SchedulerState(msgspec.Struct, frozen=True, rename="camel"):
    assumed_pods: tuple[AssumedPod, ...] = ()
    in_flight: tuple[AllocationInFlight, ...] = ()
    nodes: int = 0
    pods: int = 0
    pending: Mapping[str, int] = {}
    """Pods by the part of the queue that they wait in."""


def state_of(cache: SchedulerCache, handle: Handle, pending: Mapping[str, int]) -> SchedulerState:
    shared = handle.known(NAME)
    flights = shared.claims.flights if shared is not None else ()
    return SchedulerState(
        assumed_pods=tuple(
            AssumedPod(each.metadata.namespace, each.metadata.name, each.metadata.uid, each.spec.node_name)
            for each in cache.assumed
        ),
        in_flight=tuple(
            AllocationInFlight(
                each.claim.metadata.namespace, each.claim.metadata.name, each.uid, to_plain(each.allocation)
            )
            for each in flights
        ),
        nodes=len(cache),
        pods=cache.pod_count,
        pending=dict(pending),
    )
