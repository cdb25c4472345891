"""Who holds which device, event by event as one API server's watch tells it: at no revision may it be two claims."""

from __future__ import annotations

from collections.abc import Iterable

from drakit.api import ResourceClaim


class HeldDevices:
    """Follows claims in the order of revisions. `doubled` says what was held by two at once."""

    def __init__(self) -> None:
        self._devices: dict[str, frozenset[str]] = {}
        self._holders: dict[str, set[str]] = {}
        self.doubled: list[str] = []
        self.given = 0
        """How many devices were given."""

    def begin(self, claims: Iterable[ResourceClaim]) -> None:
        """What a list has: everything else is gone."""
        self._devices, self._holders = {}, {}
        for each in claims:
            self.put(each)

    def put(self, claim: ResourceClaim) -> None:
        results = claim.status.allocation.devices.results if claim.status.allocation is not None else ()
        self._set(claim.metadata.name, frozenset(each.device for each in results))

    def remove(self, claim: ResourceClaim) -> None:
        self._set(claim.metadata.name, frozenset())

    def _set(self, name: str, devices: frozenset[str]) -> None:
        before = self._devices.get(name, frozenset())
        for device in before - devices:
            self._holders[device].discard(name)
        for device in devices - before:
            holders = self._holders.setdefault(device, set())
            holders.add(name)
            self.given += 1
            if len(holders) > 1:
                self.doubled.append(f"{device} was held by {sorted(holders)} at once")
        self._devices[name] = devices
