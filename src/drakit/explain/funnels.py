"""How many devices are left for a request after each check, over all nodes. Pure.

In:  claims to allocate, and the reasons of the allocator per node.
Out: per request the devices that each check leaves, the reasons with counts, and who holds devices that match.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from drakit.allocator import Cause, Inventory, Reasons, RequestReasons
from drakit.api import ResourceClaim
from drakit.api.requests import sub_request_name
from drakit.explain.answers import FunnelStage, MissingDevice, RefusedDevices, RequestFunnel
from drakit.explain.cluster import ClusterObjects

STAGES = (
    "devices", "class", "selectors", "free", "taints", "constraints", "counters", "capacity", "node resources",
)  # fmt: skip
"""What a device has to pass, in this order."""
_STAGE_OF = {
    Cause.BINDING: "selectors",
    Cause.SELECTOR: "selectors",
    Cause.SELECTOR_ERROR: "selectors",
    Cause.NODE: "selectors",
    Cause.IN_USE: "free",
    Cause.TAINT: "taints",
    Cause.CONSTRAINT: "constraints",
    Cause.GATE: "counters",
    Cause.COUNTER: "counters",
    Cause.CAPACITY: "capacity",
}
_EXAMPLES = 3
_MAX_MISSING = 64


class _Fate(msgspec.Struct, frozen=True):
    """The check at which a device failed, on the node where it passed the most checks."""

    stage: int
    """The index of the check that refused it; the number of checks if it passed all."""
    reason: str
    node: str


class Funnels:
    """Collects the reasons of all nodes. `refused` has, by node, why another scheduler plugin refuses it."""

    def __init__(self, inventory: Inventory, refused: Mapping[str, str]) -> None:
        self._inventory = inventory
        self._refused = refused
        self._fates: dict[tuple[str, str], dict[str, _Fate]] = defaultdict(dict)
        self._wanted: dict[tuple[str, str], int | None] = {}
        self._best: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, reasons: Reasons) -> None:
        """Add what the allocator says about one node."""
        for claim in reasons.claims:
            for request in claim.requests:
                self._add(claim.claim, request, reasons.node)

    def _add(self, claim: str, request: RequestReasons, node: str) -> None:
        key = claim, request.request
        self._wanted[key] = request.wanted
        usable = (*request.taken, *request.usable)
        stage, reason = len(STAGES), ""
        # The devices are fine, but another plugin refuses the node: that counts as the last stage.
        if node in self._refused:
            stage, reason = len(STAGES) - 1, self._refused[node]
        else:
            self._best[key] = max(self._best.get(key, (0, "")), (len(usable), node), key=lambda each: each[0])
        for device in usable:
            self._keep(key, device, _Fate(stage, reason, node))
        for refusal in request.refusals:
            by_class = refusal.cause in (Cause.SELECTOR, Cause.SELECTOR_ERROR) and _is_of_class(refusal.detail)
            number = STAGES.index("class" if by_class else _STAGE_OF[refusal.cause])
            for device in refusal.devices:
                self._keep(key, device, _Fate(number, refusal.detail, node))

    def _keep(self, key: tuple[str, str], device: str, fate: _Fate) -> None:
        known = self._fates[key].get(device)
        # Several nodes may reach a device. The node on which it came furthest is what the user can act on.
        if known is None or fate.stage > known.stage:
            self._fates[key][device] = fate

    def requests(self, claims: Iterable[ResourceClaim]) -> Iterator[RequestFunnel]:
        classes = _classes(claims)
        published = sum(len(each.spec.devices) for pool in self._inventory.pools.values() for each in pool.slices)
        for key, fates in self._fates.items():
            best, node = self._best.get(key, (0, ""))
            yield RequestFunnel(
                claim=key[0],
                request=key[1],
                device_class=classes.get(key, ""),
                wanted=self._wanted[key],
                stages=tuple(_stages(fates.values(), max(published, len(fates)))),
                best=best,
                best_node=node,
                refused=tuple(_refused(fates)),
            )

    def missing(self, cluster: ClusterObjects) -> tuple[MissingDevice, ...]:
        """Devices that match class and selectors but are in use, or whose counters or capacity are used by others."""
        wanted = {STAGES.index(each) for each in ("free", "counters", "capacity")}
        found: dict[tuple[str, str], MissingDevice] = {}
        for fates in self._fates.values():
            for device, fate in fates.items():
                if fate.stage in wanted:
                    for each in self._holders(cluster, device, fate.node):
                        found.setdefault((each.device, each.claim), each)
        return tuple(found.values())[:_MAX_MISSING]

    def _holders(self, cluster: ClusterObjects, device: str, node: str) -> Iterator[MissingDevice]:
        driver, pool, name = device.split("/", 2)
        use = self._inventory.ledger.use((driver, pool))
        names = {name} if name in use.devices else _siblings(self._inventory, (driver, pool), name) & set(use.devices)
        for each in sorted(names):
            for held in sorted(use.devices[each], key=lambda one: one.claim):
                namespace, _, claim = held.claim.rpartition("/")
                known = cluster.find(ResourceClaim, claim, namespace)
                pods = tuple(ref.name for ref in known.status.reserved_for) if known is not None else ()
                yield MissingDevice(f"{driver}/{pool}/{each}", node, namespace, claim, pods)


def _is_of_class(detail: str) -> bool:
    """The allocator tells whose selector it was: `selector #0 of class gpu is false: …`."""
    return " of class " in detail.partition(":")[0]


def _stages(fates: Iterable[_Fate], published: int) -> Iterator[FunnelStage]:
    numbers = [each.stage for each in fates]
    yield FunnelStage(STAGES[0], published)
    for number, name in enumerate(STAGES[1:], 1):
        yield FunnelStage(name, sum(each > number for each in numbers))


def _refused(fates: Mapping[str, _Fate]) -> Iterator[RefusedDevices]:
    kinds: dict[tuple[int, str], list[str]] = defaultdict(list)
    for device, fate in fates.items():
        if fate.stage < len(STAGES):
            kinds[fate.stage, fate.reason].append(device)
    for (stage, reason), devices in sorted(kinds.items(), key=lambda each: (each[0][0], -len(each[1]), each[0][1])):
        yield RefusedDevices(STAGES[stage], reason, len(devices), tuple(sorted(devices)[:_EXAMPLES]))


def _classes(claims: Iterable[ResourceClaim]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for claim in claims:
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                found[name, request.name] = request.exactly.device_class_name
            for sub in request.first_available:
                found[name, sub_request_name(request.name, sub.name)] = sub.device_class_name
    return found


def _siblings(inventory: Inventory, pool: tuple[str, str], name: str) -> set[str]:
    """Devices that take from a counter set that the device takes from, itself included."""
    found = inventory.pools.get(pool)
    devices = [device for each in found.slices for device in each.spec.devices] if found is not None else []
    sets = {each.counter_set for device in devices if device.name == name for each in device.consumes_counters}
    return {device.name for device in devices if sets & {each.counter_set for each in device.consumes_counters}}
