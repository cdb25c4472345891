"""What devices there are, who holds them, and what is left of them.

In:  a ClusterObjects.
Out: a row per published device, and totals in which partitions of one card count once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from drakit.allocator import Pool, PoolUse, short_name
from drakit.api import Device, DeviceAttribute, DeviceClass, Node, ResourceClaim, ResourceSlice
from drakit.base.nodeselectors import matches
from drakit.base.quantity import Quantity
from drakit.base.taints import BLOCKING_EFFECTS
from drakit.explain.cluster import ClusterObjects
from drakit.explain.health import unhealthy_devices
from drakit.selectors import Selector, bind, compile_selector


class DeviceState(StrEnum):
    FREE = "free"
    USED = "used"
    SHARED = "shared"
    """Some of it is held, and there is room for more."""
    BLOCKED = "blocked"
    """Not allocated, but its counter sets have too little left: other devices that consume them are in use."""
    TAINTED = "tainted"


class DeviceHolder(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    namespace: str
    claim: str
    request: str
    pods: tuple[str, ...] = ()
    share: str = ""
    consumed: Mapping[str, str] = {}
    admin: bool = False


class Capacity(msgspec.Struct, frozen=True):
    """Amounts as text: all there is, and what no share holds."""

    total: str
    left: str


class DeviceRow(msgspec.Struct, frozen=True, rename="camel"):
    driver: str
    pool: str
    device: str
    node: str
    """The only node that reaches it; empty for a device of several nodes."""
    nodes: int
    """How many nodes of the cluster reach it."""
    state: DeviceState
    healthy: bool
    classes: tuple[str, ...]
    attributes: Mapping[str, str]
    capacity: Mapping[str, Capacity]
    counters: Mapping[str, Capacity]
    """Of the counter sets that it consumes, by `set/counter`."""
    taints: tuple[str, ...]
    holders: tuple[DeviceHolder, ...]
    card: str
    """The counter sets that it consumes: devices with the same ones are parts of one card. Else its own name."""


class Totals(msgspec.Struct, frozen=True):
    """Counts of cards; only `devices` counts partitions. A card is used if any part is, tainted if all parts are."""

    devices: int
    cards: int
    free: int
    used: int
    tainted: int


def device_rows(cluster: ClusterObjects) -> list[DeviceRow]:
    """Every device of the newest generation of each pool, in the order of driver, pool and publication."""
    reader = _Reader(cluster)
    pools = cluster.inventory.pools
    return [row for key in sorted(pools) for row in reader.rows(pools[key])]


def totals(rows: Iterable[DeviceRow]) -> Totals:
    by_card: dict[tuple[str, str, str], list[DeviceRow]] = defaultdict(list)
    for row in rows:
        by_card[row.driver, row.pool, row.card].append(row)
    held = (DeviceState.USED, DeviceState.SHARED)
    used = sum(any(row.state in held for row in card) for card in by_card.values())
    tainted = sum(all(row.state is DeviceState.TAINTED for row in card) for card in by_card.values())
    devices = sum(map(len, by_card.values()))
    return Totals(devices, len(by_card), len(by_card) - used - tainted, used, tainted)


class _Reader:
    """Makes the rows. What all of them need (claims, nodes, classes) is read once."""

    def __init__(self, cluster: ClusterObjects) -> None:
        self._cluster = cluster
        # Claims of files have no uid; the ledger knows them by name as well.
        self._claims = {_full_name(claim): claim for claim in cluster.all(ResourceClaim)}
        self._nodes = list(cluster.all(Node))
        self._names = {node.metadata.name for node in self._nodes}
        self._unhealthy = unhealthy_devices(cluster)
        self._classes = {each.metadata.name: _selectors(each, cluster) for each in cluster.all(DeviceClass)}
        self._admin = _admin_holders(cluster.all(ResourceClaim))

    def rows(self, pool: Pool) -> Iterator[DeviceRow]:
        use = self._cluster.inventory.ledger.use(pool.key)
        slices = _newest(pool.slices)
        counters, cards = _counters(slices, use), _cards(slices)
        for each in slices:
            for device in each.spec.devices:
                yield self._row(pool, each, device, use, counters, cards.get(device.name, device.name))

    def _row(
        self, pool: Pool, each: ResourceSlice, device: Device, use: PoolUse, counters: Counters, card: str
    ) -> DeviceRow:
        driver, name = each.spec.driver, (each.spec.driver, each.spec.pool.name, device.name)
        taints = pool.settings.taints_of(each, device, pool.settings.shapes.of(driver, device))
        repelled = any(taint.effect in BLOCKING_EFFECTS for taint in taints)
        return DeviceRow(
            driver=driver,
            pool=each.spec.pool.name,
            device=device.name,
            node=device.node_name or each.spec.node_name or "",
            nodes=self._reach(each, device),
            state=_state(driver, device, use, counters, tainted=repelled),
            healthy=name not in self._unhealthy,
            classes=self._matching(driver, device),
            attributes={key: attribute_text(value) for key, value in device.attributes.items()},
            capacity=_capacity(driver, device, use),
            counters={key: counters[key].shown for key in _needs(device) if key in counters},
            taints=tuple(f"{t.key}={t.value}:{t.effect}" if t.value else f"{t.key}:{t.effect}" for t in taints),
            holders=(*self._holders(device, use), *self._admin.get(name, ())),
            card=card,
        )

    def _reach(self, each: ResourceSlice, device: Device) -> int:
        """How many nodes reach a device: mostly one, which is named."""
        place = device if each.spec.per_device_node_selection else each.spec
        if place.node_name:
            return int(place.node_name in self._names)
        return sum(_reaches(each, device, node) for node in self._nodes)

    def _matching(self, driver: str, device: Device) -> tuple[str, ...]:
        """The classes whose selectors all accept the device."""
        bound = bind(driver, device)
        return tuple(
            name for name, selectors in self._classes.items() if all(each.evaluate(bound).matches for each in selectors)
        )

    def _holders(self, device: Device, use: PoolUse) -> Iterator[DeviceHolder]:
        for held in sorted(use.devices.get(device.name, ())):
            claim = self._claims.get(held.claim)
            if claim is not None:
                consumed = {key: str(Quantity(amount)) for key, amount in dict(held.consumed).items()}
                yield _holder(claim, held.request, share=held.share or "", consumed=consumed)


class _Counter(msgspec.Struct):
    total: Quantity
    left: int

    @property
    def shown(self) -> Capacity:
        return Capacity(str(self.total), str(Quantity(self.left, self.total.format)))


Counters = Mapping[str, _Counter]


def _selectors(each: DeviceClass, cluster: ClusterObjects) -> Sequence[Selector]:
    lists = cluster.gates.enabled("DRAListTypeAttributes")
    return [compile_selector(one.cel.expression, list_attributes=lists) for one in each.spec.selectors if one.cel]


def _admin_holders(claims: Iterable[ResourceClaim]) -> Mapping[tuple[str, str, str], list[DeviceHolder]]:
    """Claims with admin access by device. They take nothing, so the ledger does not have them; the rows show them."""
    found: dict[tuple[str, str, str], list[DeviceHolder]] = defaultdict(list)
    for claim in claims:
        allocation = claim.status.allocation
        for each in allocation.devices.results if allocation else ():
            if each.admin_access:
                found[each.driver, each.pool, each.device].append(_holder(claim, each.request, admin=True))
    return found


def _holder(
    claim: ResourceClaim,
    request: str,
    *,
    share: str = "",
    consumed: Mapping[str, str] | None = None,
    admin: bool = False,
) -> DeviceHolder:
    pods = tuple(each.name for each in claim.status.reserved_for if each.resource == "pods")
    metadata = claim.metadata
    return DeviceHolder(metadata.namespace, metadata.name, request, pods, share, consumed or {}, admin)


def _full_name(claim: ResourceClaim) -> str:
    return f"{claim.metadata.namespace}/{claim.metadata.name}"


def _newest(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    # Older generations are about to be deleted by their driver, and no scheduler looks at them.
    newest = max((each.spec.pool.generation for each in slices), default=0)
    return [each for each in slices if each.spec.pool.generation == newest]


def _counters(slices: Iterable[ResourceSlice], use: PoolUse) -> Counters:
    """Every counter of the pool by `set/counter`, less what devices in use take of it."""
    found: dict[str, _Counter] = {}
    devices: list[Device] = []
    for each in slices:
        devices += each.spec.devices
        for group in each.spec.shared_counters:
            for name, counter in group.counters.items():
                found[f"{group.name}/{name}"] = _Counter(counter.value, counter.value.nanos)
    # Once per device, however many shares are held: counters are charged with the first share.
    for device in devices:
        if device.name in use.devices:
            for key, amount in _needs(device).items():
                if key in found:
                    found[key].left -= amount.nanos
    return found


def _needs(device: Device) -> Mapping[str, Quantity]:
    return {
        f"{each.counter_set}/{name}": counter.value
        for each in device.consumes_counters
        for name, counter in each.counters.items()
    }


def _cards(slices: Iterable[ResourceSlice]) -> Mapping[str, str]:
    """Devices that consume the same counter sets are parts of one card, which is named after the sets."""
    return {
        device.name: ",".join(sorted({each.counter_set for each in device.consumes_counters}))
        for each in slices
        for device in each.spec.devices
        if device.consumes_counters
    }


def _reaches(each: ResourceSlice, device: Device, node: Node) -> bool:
    place = device if each.spec.per_device_node_selection else each.spec
    name = node.metadata.name
    if place.node_selector is not None:
        return matches(place.node_selector, name=name, labels=node.metadata.labels)
    return bool(place.all_nodes) or place.node_name == name


def _state(driver: str, device: Device, use: PoolUse, counters: Counters, *, tainted: bool) -> DeviceState:
    # The order counts: a device that is held is shown as used, even if it is tainted as well.
    if device.name in use.dedicated:
        return DeviceState.USED
    if device.name in use.shares:
        full = any(each.left == "0" for each in _capacity(driver, device, use).values())
        return DeviceState.USED if full else DeviceState.SHARED
    if tainted:
        return DeviceState.TAINTED
    lacking = any(key not in counters or counters[key].left < need.nanos for key, need in _needs(device).items())
    return DeviceState.BLOCKED if lacking else DeviceState.FREE


def _capacity(driver: str, device: Device, use: PoolUse) -> Mapping[str, Capacity]:
    taken = use.shares.get(device.name, {})
    return {
        name: Capacity(
            str(each.value),
            str(Quantity(each.value.nanos - taken.get(short_name(driver, name), 0), each.value.format)),
        )
        for name, each in device.capacity.items()
    }


def attribute_text(value: DeviceAttribute) -> str:
    for each in (value.string, value.version, value.int_):
        if each is not None:
            return str(each)
    if value.bool_ is not None:
        return "true" if value.bool_ else "false"
    return ", ".join(map(str, value.ints or value.bools or value.strings or value.versions))
