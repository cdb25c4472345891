"""Claims as they are now: what the informer saw, or what this scheduler wrote since, whichever is newer.

In:  the claim informer; the answers to our own writes; allocations that are about to be written.
Out: claims by name; the ledger of devices, kept equal to them; and news for those who wait for a claim to change.

Invariant: the ledger holds, for every claim, the newest state that is known of it, and beside it the allocations in
flight. A claim that goes from in flight to stored is put into the ledger before its flight ends, so its devices are at
no time free. An event that lags behind our own write changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from drakit.allocator import Inventory
from drakit.api.objects.claims import AllocationResult, ResourceClaim
from drakit.client import Key
from drakit.informers import Informer, by_controller
from drakit.scheduler.dynamicresources.state.holds import Holds
from drakit.scheduler.dynamicresources.state.overlaps import find_overlap

CONTROLLER_INDEX = "controller"
ClaimListener = Callable[[ResourceClaim], None]


class InFlightAllocation:
    """An allocation that is decided, and not yet seen to be stored.

    Members of one consumer (a PodGroup) may share it. `overlap` is checked when the informer shows an allocation of the
    claim: all that was stored before is known then, and nothing that was stored after. An informer that was cut off may
    never show it; who waits is told then all the same, and has to look whether the claim still has it.
    """

    __slots__ = ("_is_checked", "_news", "allocation", "claim", "consumer", "overlap", "sharers")

    def __init__(self, claim: ResourceClaim, allocation: AllocationResult, consumer: str) -> None:
        self.claim = claim
        self.allocation = allocation
        self.consumer = consumer
        self.sharers = 1
        """Pods of one PodGroup that count on it. It ends with the last of them."""
        self.overlap: str | None = None
        """The device that somebody else had before; valid once `landed` returned."""
        self._is_checked = False
        self._news = asyncio.Event()

    @property
    def uid(self) -> str:
        return self.claim.metadata.uid

    def land(self, overlap: str | None) -> None:
        """The informer has shown the allocation, or that it is gone."""
        if not self._is_checked:
            self._is_checked, self.overlap = True, overlap
            self._news.set()

    def miss(self) -> None:
        """The informer seems to have gone past the claim."""
        self._news.set()

    async def landed(self) -> str | None:
        """Wait until the informer has got so far; return the device on which the allocation overlaps with others."""
        await self._news.wait()
        return self.overlap


class Claims:
    """Not safe for several threads; nothing here waits."""

    def __init__(self, informer: Informer[ResourceClaim], inventory: Inventory, holds: Holds | None = None) -> None:
        """`holds` are what is kept in the inventory for pods that have no devices yet."""
        self._informer = informer
        self._inventory = inventory
        self._holds = holds or Holds(inventory)
        # Answers to our own writes that the informer has not shown yet, or shown in an older version.
        self._assumed: dict[Key, ResourceClaim] = {}
        # Assumed claims that the informer may have gone past without showing them: mostly none.
        self._doubtful: set[Key] = set()
        self._newest = 0  # the highest version that the informer has shown
        self._flights: dict[str, InFlightAllocation] = {}
        self._listeners: dict[Key, list[ClaimListener]] = {}
        informer.add_index(CONTROLLER_INDEX, by_controller)
        informer.subscribe(self._seen)
        informer.after_list(self._listed)

    # Reading

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        key = Key(namespace, name)
        return self._assumed.get(key) or self._informer.cache.get(key)

    def newest(self, claim: ResourceClaim) -> ResourceClaim | None:
        """That claim as it is known now; none when it is gone, or another one has its name."""
        found = self.get(claim.metadata.namespace, claim.metadata.name)
        return found if found is not None and found.metadata.uid == claim.metadata.uid else None

    def controlled_by(self, uid: str) -> list[ResourceClaim]:
        """The claims that were made for the object of that uid."""
        found = {_key(each): each for each in self._informer.by(CONTROLLER_INDEX, uid)}
        for key, each in self._assumed.items():
            owner = each.metadata.controller
            if owner is not None and owner.uid == uid:
                found[key] = each
        return list(found.values())

    def with_devices(self) -> list[ResourceClaim]:
        """The claims that have devices, stored or in flight."""
        found = {each.metadata.uid: each for each in self._informer.cache}
        found |= {each.metadata.uid: each for each in self._assumed.values()}
        found |= {uid: found.get(uid, flight.claim) for uid, flight in self._flights.items()}
        return [each for uid, each in found.items() if each.status.allocation is not None or uid in self._flights]

    def listen(self, claims: Iterable[ResourceClaim], news: ClaimListener) -> Callable[[], None]:
        """Tell of every change that the informer sees of these claims, deletion included; the result ends that."""
        keys = [_key(each) for each in claims]
        for key in keys:
            self._listeners.setdefault(key, []).append(news)

        def end() -> None:
            for key in keys:
                listeners = self._listeners[key]
                listeners.remove(news)
                if not listeners:
                    del self._listeners[key]

        return end

    # What we wrote

    def assume(self, claim: ResourceClaim) -> None:
        """Take in a claim as the server answered with it, unless something newer is known."""
        key = _key(claim)
        # The answer to a write and the event of the same write race: whichever comes later may be the older one.
        known = (self._informer.cache.get(key), self._assumed.get(key))
        newer = next((each for each in known if each is not None and _is_newer(each, claim)), None)
        if newer is None:
            self._assumed[key] = claim
            # Into the ledger before the flight ends, so that the devices are at no time free.
            self._inventory.put_claim(claim)
            if known[0] is None and self._newest > _version(claim):
                # The answer came after the informer was past the write: the claim may have come and gone.
                self._doubtful.add(key)
        elif _has_lost(newer, claim):
            self._land(claim.metadata.uid)

    def forget(self, claim: ResourceClaim) -> None:
        """Remove a claim that this scheduler deleted, before the informer sees it."""
        key = _key(claim)
        if self._assumed.get(key, claim).metadata.uid == claim.metadata.uid:
            self._assumed.pop(key, None)
            self._inventory.remove_claim(claim.metadata.uid)

    # Allocations in flight

    def flight(self, uid: str) -> InFlightAllocation | None:
        return self._flights.get(uid)

    @property
    def flights(self) -> list[InFlightAllocation]:
        return list(self._flights.values())

    def begin(self, claim: ResourceClaim, allocation: AllocationResult, consumer: str) -> InFlightAllocation:
        """Count an allocation from now on; one that is in flight already gets a sharer more."""
        known = self._flights.get(claim.metadata.uid)
        if known is not None:
            known.sharers += 1
            return known
        flight = self._flights[claim.metadata.uid] = InFlightAllocation(claim, allocation, consumer)
        self._inventory.begin_allocation(claim, allocation)
        return flight

    def end(self, flight: InFlightAllocation) -> None:
        """Give an allocation up: one sharer less, and with the last one it counts no more. What is stored does."""
        flight.sharers -= 1
        if flight.sharers <= 0:
            self._finish(flight)

    def rename(self, flight: InFlightAllocation, claim: ResourceClaim) -> None:
        """Move an allocation in flight to the uid that the server gave the claim it just created."""
        # Begin under the new uid before ending under the old: the devices are at no time free.
        self._flights[claim.metadata.uid] = flight
        self._inventory.begin_allocation(claim, flight.allocation)
        self._flights.pop(flight.uid, None)
        self._inventory.end_allocation(flight.uid)
        flight.claim = claim

    def _finish(self, flight: InFlightAllocation) -> None:
        if self._flights.get(flight.uid) is flight:
            del self._flights[flight.uid]
            self._inventory.end_allocation(flight.uid)

    # What the informer saw

    def _seen(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None and (new is None or old.metadata.uid != new.metadata.uid):
            self._lose(old)
        if new is not None:
            self._take(new)
        claim = new if new is not None else old
        if claim is not None:
            self._newest = max(self._newest, _version(claim))
            for news in tuple(self._listeners.get(_key(claim), ())):
                news(claim)

    def _land(self, uid: str, stored: ResourceClaim | None = None) -> None:
        """The allocation of a claim is stored; or it was, and is gone already."""
        flight = self._flights.get(uid)
        if flight is not None:
            flight.land(find_overlap(self._holds.left_out(), stored) if stored is not None else None)
            # Whoever waits for the claim is told of this very event, and must not find it in flight any more.
            self._finish(flight)

    def _take(self, new: ResourceClaim) -> None:
        key = _key(new)
        if self._doubtful:
            self._drop_lost(key, _version(new))
        assumed = self._assumed.get(key)
        # The event may lag behind our own write.
        if assumed is None or not _is_newer(assumed, new):
            self._assumed.pop(key, None)
            self._inventory.put_claim(new)
            if assumed is not None and _has_lost(new, assumed):
                self._land(assumed.metadata.uid)
        if new.status.allocation is not None:
            self._land(new.metadata.uid, new)

    def _lose(self, old: ResourceClaim) -> None:
        key, uid = _key(old), old.metadata.uid
        assumed = self._assumed.get(key)
        if assumed is not None and assumed.metadata.uid == uid:
            del self._assumed[key]
        self._inventory.remove_claim(uid)
        self._land(uid)

    def _listed(self) -> None:
        """After a list: claims that we wrote and that are not in it came and went, or are newer than the list.

        A watch tells of every claim in order, so nothing is lost between two lists, and nobody need look then.
        """
        self._doubtful.update(key for key in self._assumed if key not in self._informer.cache)
        self._drop_lost(None, self._newest)

    def _drop_lost(self, key: Key | None, version: int) -> None:
        """Forget the claims that the informer, which has got to that version, has gone past."""
        for other in list(self._doubtful):
            assumed = self._assumed.get(other)
            if assumed is None or other in self._informer.cache:
                self._doubtful.discard(other)
            elif other != key and version > _version(assumed):
                self._doubtful.discard(other)
                del self._assumed[other]
                self._inventory.remove_claim(assumed.metadata.uid)
                if (flight := self._flights.get(assumed.metadata.uid)) is not None:
                    # Its devices stay taken until somebody gives the allocation up.
                    flight.miss()


def _key(claim: ResourceClaim) -> Key:
    return Key(claim.metadata.namespace, claim.metadata.name)


def _has_lost(now: ResourceClaim, before: ResourceClaim) -> bool:
    """Whether a claim that had an allocation has none any more, or is another one by now."""
    if before.status.allocation is None:
        return False
    return now.status.allocation is None or now.metadata.uid != before.metadata.uid


def _is_newer(one: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether a state is later than another. Versions of servers that do not count up are never newer."""
    return _version(one) > _version(other) > 0


def _version(claim: ResourceClaim) -> int:
    """Zero where versions do not count up."""
    text = claim.metadata.resource_version
    return int(text) if text.isdecimal() else 0
