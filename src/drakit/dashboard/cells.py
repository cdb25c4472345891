"""The device map: one small cell per device, so that thousands fit into one answer. Pure.

In:  the objects of a cluster.
Out: a cell per device, by its key, and the totals for the top of the page. `device_details` has the rest of a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from drakit.api import DeviceClass, Node, Pod, ResourceClaim
from drakit.api.podclaims import claim_names
from drakit.base.quantity import Quantity
from drakit.explain import ClusterObjects, DeviceRow, DeviceState, Totals, device_rows, totals

_HELD = (DeviceState.USED, DeviceState.SHARED)
ZONE = "topology.kubernetes.io/zone"
_MODELS = ("productName", "model", "type", "kind")
"""Attributes by which people tell kinds of devices apart, the most telling first."""


class MapCell(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    driver: str
    pool: str
    device: str
    state: str
    """A state of `explain`; or `unhealthy`; or `preparing` while it is allocated and none of its pods runs yet."""
    node: str = ""
    zone: str = ""
    model: str = ""
    card: str = ""
    classes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    """As namespace/name."""
    marked: bool = False
    """In use, and tainted."""
    share: float = 0.0
    """Of a shared device, the used fraction of the capacity that is used most."""


class MapSummary(msgspec.Struct, frozen=True):
    totals: Totals
    nodes: int
    pods: int
    pending: int
    classes: tuple[str, ...]
    namespaces: tuple[str, ...]


class MapCells(msgspec.Struct, frozen=True):
    cells: Mapping[str, MapCell]
    summary: MapSummary
    rows: tuple[DeviceRow, ...] = ()


def map_cells(cluster: ClusterObjects) -> MapCells:
    rows = device_rows(cluster)
    zones = {node.metadata.name: node.metadata.labels.get(ZONE, "") for node in cluster.all(Node)}
    preparing = _preparing(cluster)
    cells = {device_key(row): _cell(row, zones.get(row.node, ""), preparing) for row in rows}
    return MapCells(cells, _summary(cluster, rows), tuple(rows))


def device_key(row: DeviceRow) -> str:
    """The key of a device on the page. No name has a blank, so the parts can be told apart."""
    return f"{row.driver} {row.pool} {row.device}"


def pending_pods(cluster: ClusterObjects) -> Iterator[Pod]:
    """Pods that have no node and have not ended."""
    for pod in cluster.all(Pod):
        if not pod.spec.node_name and not pod.is_terminal:
            yield pod


def _cell(row: DeviceRow, zone: str, preparing: frozenset[str]) -> MapCell:
    claims = tuple(dict.fromkeys(f"{each.namespace}/{each.claim}" for each in row.holders))
    return MapCell(
        key=device_key(row),
        driver=row.driver,
        pool=row.pool,
        device=row.device,
        state=_state(row, claims, preparing),
        node=row.node,
        zone=zone,
        model=_model(row),
        card=row.card if row.card != row.device else "",
        classes=row.classes,
        claims=claims,
        marked=bool(row.taints) and row.state in _HELD,
        share=_share(row) if row.state is DeviceState.SHARED else 0.0,
    )


def _state(row: DeviceRow, claims: tuple[str, ...], preparing: frozenset[str]) -> str:
    if not row.healthy:
        return "unhealthy"
    if row.state in _HELD and claims and all(each in preparing for each in claims):
        return "preparing"
    return row.state.value


def _model(row: DeviceRow) -> str:
    short = {name.rpartition("/")[2]: value for name, value in row.attributes.items()}
    return next((short[name] for name in _MODELS if name in short), row.driver)


def _share(row: DeviceRow) -> float:
    parts = (
        1 - Quantity.parse(each.left).nanos / total
        for each in row.capacity.values()
        if (total := Quantity.parse(each.total).nanos)
    )
    return round(max(parts, default=0.0), 3)


def _preparing(cluster: ClusterObjects) -> frozenset[str]:
    """Claims of pods that have a node but do not run yet, without those that a running pod shares."""
    waits: set[str] = set()
    runs: set[str] = set()
    for pod in cluster.all(Pod):
        if pod.spec.node_name and pod.spec.resource_claims and not pod.is_terminal:
            names = {f"{pod.metadata.namespace}/{name}" for name in claim_names(pod).values() if name}
            (waits if pod.status.phase in ("", "Pending") else runs).update(names)
    return frozenset(waits - runs)


def _summary(cluster: ClusterObjects, rows: list[DeviceRow]) -> MapSummary:
    pods = list(cluster.all(Pod))
    spaces = {pod.metadata.namespace for pod in pods}
    spaces |= {claim.metadata.namespace for claim in cluster.all(ResourceClaim)}
    return MapSummary(
        totals=totals(rows),
        nodes=sum(1 for _ in cluster.all(Node)),
        pods=len(pods),
        pending=sum(1 for _ in pending_pods(cluster)),
        classes=tuple(sorted(each.metadata.name for each in cluster.all(DeviceClass))),
        namespaces=tuple(sorted(spaces)),
    )


def device_details(cluster: ClusterObjects, rows: tuple[DeviceRow, ...], key: str) -> dict[str, Any] | None:
    """Everything about one device, and since when its holders have it."""
    row = next((each for each in rows if device_key(each) == key), None)
    if row is None:
        return None
    found: dict[str, Any] = msgspec.to_builtins(row)
    for holder in found["holders"]:
        claim = cluster.find(ResourceClaim, holder["claim"], holder["namespace"])
        allocation = claim.status.allocation if claim is not None else None
        holder["since"] = (allocation.allocation_timestamp if allocation is not None else None) or ""
    return found
