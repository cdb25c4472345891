"""Who holds which device, as the store has it and as writes under way will have it.

In:  claims and slices at each write; allocations that are about to be stored.
Out: whether one more allocation fits beside all others; if not, what it would take and who has it.

It counts devices that slices publish. Of what nobody publishes, nobody can say how much there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from drakit.api.objects.plain import from_plain
from drakit.api.objects.slices import Device, ResourceSlice
from drakit.api.registry import Kind
from drakit.base.quantity import Quantity

DeviceId = tuple[str, str, str]
"""Driver, pool, device."""
Claim = tuple[str, str]
"""Namespace, name."""


class DeviceHold(NamedTuple):
    """One result of an allocation. `share` is empty for a whole device; amounts are in nanos, by short name."""

    device: DeviceId
    share: str
    amounts: Mapping[str, int]


class Overdraft(NamedTuple):
    """What does not fit: the device, what of it (empty: the device itself), and whose it is already."""

    device: DeviceId
    what: str
    owner: Claim


def holds_of(document: Mapping[str, Any]) -> tuple[DeviceHold, ...]:
    """What a claim takes. Who only administers a device holds nothing of it."""
    allocation = (document.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return tuple(_hold(each) for each in results if not each.get("adminAccess"))


def _hold(result: Mapping[str, Any]) -> DeviceHold:
    driver = result.get("driver", "")
    consumed = result.get("consumedCapacity") or {}
    # A negative amount would give others what is not there.
    amounts = {
        name.removeprefix(f"{driver}/"): max(Quantity.parse(str(amount)).nanos, 0) for name, amount in consumed.items()
    }
    return DeviceHold((driver, result.get("pool", ""), result.get("device", "")), result.get("shareID") or "", amounts)


class _PublishedSlice:
    """A slice as it is stored; read when somebody asks for its pool."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        spec = document.get("spec") or {}
        self.pool = (spec.get("driver", ""), (spec.get("pool") or {}).get("name", ""))
        self.generation: int = (spec.get("pool") or {}).get("generation", 0)

    @cached_property
    def read(self) -> ResourceSlice:
        return from_plain(ResourceSlice, dict(self._document))


class _Pool:
    """The newest generation of a pool: its devices and counters."""

    def __init__(self, slices: Iterable[_PublishedSlice]) -> None:
        listed = list(slices)
        newest = max((each.generation for each in listed), default=0)
        read = [each.read for each in listed if each.generation == newest]
        self.devices = {device.name: device for each in read for device in each.spec.devices}
        self.counters = {
            (shared.name, name): counter.value.nanos
            for each in read
            for shared in each.spec.shared_counters
            for name, counter in shared.counters.items()
        }


class DeviceLedger:
    """Invariant: `_holders` has, for each device, every claim that holds it, stored or about to be."""

    def __init__(self) -> None:
        self._stored: dict[Claim, tuple[DeviceHold, ...]] = {}
        self._pending: dict[Claim, list[tuple[DeviceHold, ...]]] = {}
        self._holders: dict[DeviceId, dict[Claim, None]] = {}
        self._in_use: dict[tuple[str, str], dict[str, None]] = {}
        self._slices: dict[str, _PublishedSlice] = {}
        self._members: dict[tuple[str, str], dict[str, _PublishedSlice]] = {}
        self._pools: dict[tuple[str, str], _Pool] = {}

    # What the store has

    def put(self, kind: Kind, document: Mapping[str, Any]) -> None:
        metadata = document["metadata"]
        if kind.kind == "ResourceSlice":
            self._drop_slice(metadata["name"])
            each = self._slices[metadata["name"]] = _PublishedSlice(document)
            self._members.setdefault(each.pool, {})[metadata["name"]] = each
            self._pools.pop(each.pool, None)
        else:
            self._store((metadata.get("namespace", ""), metadata["name"]), holds_of(document))

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        if kind.kind == "ResourceSlice":
            self._drop_slice(name)
        else:
            self._store((namespace, name), ())

    def _drop_slice(self, name: str) -> None:
        each = self._slices.pop(name, None)
        if each is not None:
            del self._members[each.pool][name]
            self._pools.pop(each.pool, None)
            if not self._members[each.pool]:
                del self._members[each.pool]

    def _store(self, claim: Claim, holds: tuple[DeviceHold, ...]) -> None:
        before = self._stored.pop(claim, ())
        if holds:
            self._stored[claim] = holds
        # Most writes to claims are about no device.
        if before or holds:
            self._recount(claim, (*before, *holds))

    # What is about to be stored

    def begin(self, claim: Claim, holds: tuple[DeviceHold, ...]) -> None:
        """Count an allocation as held until `end`."""
        self._pending.setdefault(claim, []).append(holds)
        self._recount(claim, holds)

    def end(self, claim: Claim, holds: tuple[DeviceHold, ...]) -> None:
        """The write is over. If it went well, the store has it."""
        pending = self._pending[claim]
        pending.remove(holds)
        if not pending:
            del self._pending[claim]
        self._recount(claim, holds)

    def _recount(self, claim: Claim, touched: Iterable[DeviceHold]) -> None:
        held = {each.device for each in self._held_by(claim)}
        for device in {each.device for each in touched}:
            holders = self._holders.setdefault(device, {})
            if device in held:
                holders[claim] = None
            else:
                holders.pop(claim, None)
            names = self._in_use.setdefault(device[:2], {})
            if holders:
                names[device[2]] = None
            else:
                del self._holders[device]
                names.pop(device[2], None)
            if not names:
                del self._in_use[device[:2]]

    def _held_by(self, claim: Claim) -> Iterator[DeviceHold]:
        yield from self._stored.get(claim, ())
        for holds in self._pending.get(claim, ()):
            yield from holds

    # Whether one more fits

    def publishes(self, device: DeviceId) -> bool:
        return device[2] in self._pool(device[:2]).devices

    def overdraft(self, claim: Claim, wanted: Sequence[DeviceHold], new: Iterable[DeviceHold]) -> Overdraft | None:
        """The first of the `new` holds that does not fit beside other claims; `wanted` is all that the claim takes."""
        for hold in new:
            pool = self._pool(hold.device[:2])
            device = pool.devices.get(hold.device[2])
            if device is None:
                continue
            found = self._taken(claim, wanted, hold, device) or self._drained(claim, wanted, hold, pool, device)
            if found is not None:
                return found
        return None

    def _pool(self, key: tuple[str, str]) -> _Pool:
        found = self._pools.get(key)
        if found is None:
            found = _Pool(self._members.get(key, {}).values())
            if key in self._members:
                self._pools[key] = found
        return found

    def _taken(self, claim: Claim, wanted: Sequence[DeviceHold], hold: DeviceHold, device: Device) -> Overdraft | None:
        """Whether somebody has the device whole, or shares leave too little of it."""
        mine = [each for each in wanted if each.device == hold.device]
        others = list(self._others(hold.device, claim))
        # A share and the whole device exclude each other, whoever came first.
        whole = not hold.share or not device.allow_multiple_allocations
        for owner, each in others:
            if whole or not each.share:
                return Overdraft(hold.device, "", owner)
        if len(mine) > 1 and any(whole or not each.share for each in mine):
            return Overdraft(hold.device, "", claim)
        for name, capacity in device.capacity.items():
            short = name.removeprefix(f"{hold.device[0]}/")
            asked = sum(each.amounts.get(short, 0) for each in mine)
            used = sum(each.amounts.get(short, 0) for _, each in others)
            if hold.share and asked and asked + used > capacity.value.nanos:
                return Overdraft(hold.device, f"capacity {name}", others[0][0] if others else claim)
        return None

    def _others(self, device: DeviceId, claim: Claim) -> Iterator[tuple[Claim, DeviceHold]]:
        for owner in self._holders.get(device, ()):
            if owner != claim:
                yield from ((owner, each) for each in self._held_by(owner) if each.device == device)

    def _drained(
        self, claim: Claim, wanted: Sequence[DeviceHold], hold: DeviceHold, pool: _Pool, device: Device
    ) -> Overdraft | None:
        """Whether the pool's counters suffice for the device beside all that are in use."""
        needs = _counters(device)
        if not needs:
            return None
        mine = {each.device[2] for each in wanted if each.device[:2] == hold.device[:2]}
        others = [
            name
            for name in self._in_use.get(hold.device[:2], ())
            if name in pool.devices and any(True for _ in self._others((*hold.device[:2], name), claim))
        ]
        busy = [_counters(pool.devices[name]) for name in mine.union(others) & pool.devices.keys()]
        for counter in needs:
            used = sum(each.get(counter, 0) for each in busy)
            if used > pool.counters.get(counter, 0):
                users = [name for name in others if counter in _counters(pool.devices[name])]
                owner = next(self._others((*hold.device[:2], users[0]), claim))[0] if users else claim
                return Overdraft(hold.device, f"counter {counter[1]} of {counter[0]}", owner)
        return None


def _counters(device: Device) -> dict[tuple[str, str], int]:
    used: dict[tuple[str, str], int] = {}
    for each in device.consumes_counters:
        for name, counter in each.counters.items():
            key = (each.counter_set, name)
            used[key] = used.get(key, 0) + counter.value.nanos
    return used
