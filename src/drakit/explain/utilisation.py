"""How much of a cluster is in use, and how scattered the rest is. Pure.

In:  a cluster.
Out: numbers. Cards count, not their partitions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from drakit.api import Node, Pod
from drakit.explain.cluster import ClusterObjects
from drakit.explain.devices import DeviceRow, DeviceState, device_rows, totals
from drakit.scheduler.framework.nodes import requests_of, units


class Utilisation(msgspec.Struct, frozen=True, rename="camel"):
    """`used` and `free` count cards; `drivers` has used/all by driver. `largest` is the most free cards on one node.

    `fragmentation` is the share of free cards on nodes that are partly used: 0 if every node is all free or all used.
    `requested` is the share of allocatable cpu, memory and pods that pods request.
    """

    nodes: int
    devices: int
    used: int
    free: int
    largest: int
    fragmentation: float
    drivers: Mapping[str, str]
    requested: Mapping[str, float]


def utilisation(cluster: ClusterObjects, rows: Sequence[DeviceRow] | None = None) -> Utilisation:
    """`rows` are those of the cluster, where they are known already."""
    rows = device_rows(cluster) if rows is None else rows
    sums = totals(rows)
    free, partly = _by_node(rows)
    scattered = sum(number for node, number in free.items() if node in partly)
    return Utilisation(
        nodes=sum(1 for _ in cluster.all(Node)),
        devices=sums.cards,
        used=sums.used,
        free=sums.free,
        largest=max(free.values(), default=0),
        fragmentation=round(scattered / sum(free.values()), 3) if free else 0.0,
        drivers=dict(_drivers(rows)),
        requested=_requested(cluster),
    )


def _by_node(rows: Iterable[DeviceRow]) -> tuple[Counter[str], set[str]]:
    """Free cards by node, and the nodes on which a card is used. Devices that several nodes reach do not count."""
    cards: dict[tuple[str, str, str, str], list[DeviceRow]] = defaultdict(list)
    for row in rows:
        if row.node:
            cards[row.node, row.driver, row.pool, row.card].append(row)
    free: Counter[str] = Counter()
    partly: set[str] = set()
    for (node, *_), parts in cards.items():
        if any(each.state in (DeviceState.USED, DeviceState.SHARED) for each in parts):
            partly.add(node)
        elif any(each.state is DeviceState.FREE for each in parts):
            free[node] += 1
    return free, partly


def _drivers(rows: Iterable[DeviceRow]) -> Iterable[tuple[str, str]]:
    by_driver: dict[str, list[DeviceRow]] = defaultdict(list)
    for row in rows:
        by_driver[row.driver].append(row)
    for driver in sorted(by_driver):
        sums = totals(by_driver[driver])
        yield driver, f"{sums.used}/{sums.cards}"


def _requested(cluster: ClusterObjects) -> Mapping[str, float]:
    there: Counter[str] = Counter()
    for node in cluster.all(Node):
        there.update(units(node.status.allocatable))
    taken: Counter[str] = Counter()
    for pod in cluster.all(Pod):
        if pod.spec.node_name and not pod.is_terminal:
            taken.update({**requests_of(pod), "pods": 1})
    return {name: round(taken[name] / there[name], 3) for name in ("cpu", "memory", "pods") if there[name]}
