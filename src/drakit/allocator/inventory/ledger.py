"""The ledger: which devices are in use, by whom, and how much of them.

In:  claims as they are stored, and allocations that are in flight.
Out: per pool what is held. It is derived from claims alone, kept up to date claim by claim, and comes out equal when
     built anew from the same claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from drakit.allocator.inventory.capacity import short_name
from drakit.allocator.inventory.pools import PoolKey, PoolView
from drakit.allocator.inventory.shapes import CounterKey
from drakit.allocator.inventory.tables import Table
from drakit.allocator.inventory.usage import Amounts, Usage
from drakit.api import AllocationResult, DeviceRequestAllocationResult, ResourceClaim

_MAX_VIEWS = 64  # a pool that is published anew leaves old views behind


class Holding(NamedTuple):
    """One result of an allocated claim. `number` keeps results apart that name the same device."""

    claim: str
    uid: str
    number: int
    request: str
    share: str | None
    consumed: Amounts


class PoolUse:
    """The holdings of one pool by device name. Immutable."""

    def __init__(self, devices: Mapping[str, frozenset[Holding]]) -> None:
        self.devices = devices
        self._usages: dict[PoolView, Usage] = {}

    def __eq__(self, other: object) -> bool:
        return self.devices == other.devices if isinstance(other, PoolUse) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def dedicated(self) -> frozenset[str]:
        """Devices that somebody holds whole."""
        return frozenset(name for name, held in self.devices.items() if any(each.share is None for each in held))

    @cached_property
    def shares(self) -> Mapping[str, Mapping[str, int]]:
        """What the shares of a device take of it; a share counts even when it recorded nothing."""
        return {
            name: _total(each.consumed for each in held if each.share is not None)
            for name, held in self.devices.items()
            if any(each.share is not None for each in held)
        }

    def with_holdings(self, changes: Iterable[tuple[str, Holding]], *, add: bool) -> PoolUse:
        devices = dict(self.devices)
        for name, holding in changes:
            held = devices.get(name, frozenset())
            devices[name] = held | {holding} if add else held - {holding}
            if not devices[name]:
                del devices[name]
        return PoolUse(devices)

    def usage(self, view: PoolView) -> Usage:
        found = self._usages.get(view)
        if found is None:
            if len(self._usages) >= _MAX_VIEWS:
                self._usages.clear()
            found = self._usages[view] = self._measure(view)
        return found

    def _measure(self, view: PoolView) -> Usage:
        index, busy = view.index, 0
        shares: dict[int, Mapping[str, int]] = {}
        for name, held in self.devices.items():
            position = index.get(name)
            if position is None:
                continue
            for each in held:
                if each.share is None:
                    busy |= 1 << position
                elif position not in shares:
                    shares[position] = self.shares[name]
        return Usage(busy, shares, self._left(view))

    def _left(self, view: PoolView) -> Mapping[CounterKey, int]:
        # May go below zero: a driver can publish less than is allocated already.
        left = dict(view.counters)
        for counter, amount in view.consumed(self.devices) if left else ():
            left[counter] -= amount
        return left


UNUSED = PoolUse({})


class _Entry(NamedTuple):
    """What one claim holds by its allocation, grouped by pool."""

    allocation: AllocationResult
    pools: Mapping[PoolKey, tuple[tuple[str, Holding], ...]]


class Ledger:
    """Device use by pool. `consumable` says whether shares are known; when they are not, a share is a whole device.

    Writers return the pools whose use they changed.
    """

    def __init__(
        self,
        claims: Iterable[ResourceClaim] = (),
        *,
        consumable: bool = True,
    ) -> None:
        self.consumable = consumable
        self.pools: Table[PoolKey, PoolUse] = Table()
        self._stored: Table[str, _Entry] = Table()
        self._in_flight: Table[str, _Entry] = Table()
        for claim in claims:
            self.put(claim)

    def fork(self) -> Ledger:
        forked = Ledger(consumable=self.consumable)
        forked.pools = self.pools.fork()
        forked._stored = self._stored.fork()
        forked._in_flight = self._in_flight.fork()
        return forked

    def __eq__(self, other: object) -> bool:
        return self.pools == other.pools if isinstance(other, Ledger) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def use(self, pool: PoolKey) -> PoolUse:
        return self.pools.rows.get(pool, UNUSED)

    def usage(self, view: PoolView) -> Usage:
        """The usage of a view. Devices on other nodes count as far as they take from its counters."""
        use = self.pools.rows.get(view.key)
        return view.idle if use is None else use.usage(view)

    def put(self, claim: ResourceClaim) -> Iterable[PoolKey]:
        """Take in a claim as it is stored now; one without an allocation holds nothing."""
        uid, allocation, known = uid_of(claim), claim.status.allocation, self._stored.get(uid_of(claim))
        # Our own write and the event that tells of it show the same object.
        if known is not None and known.allocation is allocation:
            return ()
        entry = self._entry(claim, allocation) if allocation is not None else None
        return self._replace(self._stored, uid, entry if entry is not None and entry.pools else None)

    def remove(self, uid: str) -> Iterable[PoolKey]:
        """Forget a claim that is gone."""
        return self._replace(self._stored, uid, None)

    def begin(self, claim: ResourceClaim, allocation: AllocationResult) -> Iterable[PoolKey]:
        """Count an allocation that is about to be stored. It hides what is stored for the claim until `end`."""
        return self._replace(self._in_flight, uid_of(claim), self._entry(claim, allocation))

    def end(self, uid: str) -> Iterable[PoolKey]:
        """The allocation in flight was stored, or given up: what is stored counts again."""
        return self._replace(self._in_flight, uid, None)

    def _entry(self, claim: ResourceClaim, allocation: AllocationResult) -> _Entry:
        name, uid = f"{claim.metadata.namespace}/{claim.metadata.name}", uid_of(claim)
        pools: dict[PoolKey, tuple[tuple[str, Holding], ...]] = {}
        for number, result in enumerate(allocation.devices.results):
            # Admin access uses a device beside its owner and is never charged.
            if not result.admin_access:
                share = result.share_id if self.consumable else None
                consumed = _recorded(result) if share is not None else ()
                held = (result.device, Holding(name, uid, number, result.request, share, consumed))
                key = (result.driver, result.pool)
                pools[key] = (*pools.get(key, ()), held)
        return _Entry(allocation, pools)

    def _replace(self, table: Table[str, _Entry], uid: str, entry: _Entry | None) -> Iterable[PoolKey]:
        """The pools whose use changed by that."""
        before = self._effective(uid)
        if entry is None:
            table.drop(uid)
        else:
            table.put(uid, entry)
        after = self._effective(uid)
        if before is after:
            return ()
        # An allocation that was in flight and is stored now changes nothing.
        if before is not None and after is not None and before.pools == after.pools:
            return ()
        # Old holdings first: the same device may be in both, under another share.
        self._charge(before, add=False)
        self._charge(after, add=True)
        return {key for each in (before, after) if each is not None for key in each.pools}

    def _effective(self, uid: str) -> _Entry | None:
        # In flight wins: the informer may still show the claim as it was before.
        return self._in_flight.get(uid) or self._stored.get(uid)

    def _charge(self, entry: _Entry | None, *, add: bool) -> None:
        for key, held in entry.pools.items() if entry else ():
            use = self.use(key).with_holdings(held, add=add)
            if use.devices:
                self.pools.put(key, use)
            else:
                self.pools.drop(key)


def uid_of(claim: ResourceClaim) -> str:
    """What tells claims apart. One that was written by hand and never stored has no uid; its name will do."""
    return claim.metadata.uid or f"{claim.metadata.namespace}/{claim.metadata.name}"


def _recorded(result: DeviceRequestAllocationResult) -> Amounts:
    """What a share takes, by short names. A negative amount, which anybody may have written, takes nothing."""
    amounts = result.consumed_capacity.items()
    return tuple(sorted((short_name(result.driver, name), max(amount.nanos, 0)) for name, amount in amounts))


def _total(many: Iterator[Amounts] | Iterable[Amounts]) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for amounts in many:
        for name, amount in amounts:
            total[name] = total.get(name, 0) + amount
    return total
