"""What the agent remembers of the claims that its pods use.

In:  claims as they are admitted, answers of drivers, checkpoints.
Out: records by name and by pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from drakit.nodeagent.plugins.contract import ClaimIdentity, DeviceAnswer


@dataclass(slots=True)
class ClaimRecord:
    """A claim in use. `drivers` has the devices of each driver of the allocation, none before the first answer.

    `prepared` is not on disk: after a restart, the next sandbox or pod of the claim asks the drivers again.
    """

    uid: str
    name: str
    namespace: str
    pods: dict[str, None] = field(default_factory=dict)
    drivers: dict[str, list[DeviceAnswer] | None] = field(default_factory=dict)
    prepared: bool = False
    rebuilt: bool = False
    """Made anew after a damaged checkpoint: its devices are not known until drivers are asked again."""
    leaving: asyncio.Event | None = None
    """Set once the unprepare that is under way has ended; prepare waits for it."""

    @property
    def ref(self) -> ClaimIdentity:
        return ClaimIdentity(self.namespace, self.uid, self.name)

    def devices(self, request: str = "") -> Iterator[tuple[str, DeviceAnswer]]:
        """Driver and device, of all or of one request; a device without request names belongs to each."""
        for driver, devices in self.drivers.items():
            for device in devices or ():
                if not request or not device.requests or request in device.requests:
                    yield driver, device


class ClaimRecords:
    """Invariant: one record per namespace and name."""

    def __init__(self, records: Iterable[ClaimRecord] = ()) -> None:
        self._records: dict[tuple[str, str], ClaimRecord] = {(each.namespace, each.name): each for each in records}

    def find(self, namespace: str, name: str) -> ClaimRecord | None:
        return self._records.get((namespace, name))

    def add(self, record: ClaimRecord) -> None:
        self._records[record.namespace, record.name] = record

    def remove(self, record: ClaimRecord) -> None:
        if self.find(record.namespace, record.name) is record:
            del self._records[record.namespace, record.name]

    def all(self) -> list[ClaimRecord]:
        return list(self._records.values())

    def of_pod(self, uid: str) -> list[ClaimRecord]:
        return [each for each in self._records.values() if uid in each.pods]

    def pods(self) -> set[str]:
        return {uid for each in self._records.values() for uid in each.pods}

    def using(self, driver: str, devices: Iterable[tuple[str, str]]) -> list[str]:
        """Uids of the pods that use one of these devices (pool and name), each once, in the order of their records."""
        wanted = set(devices)
        found = {
            uid: None
            for each in self._records.values()
            for device in each.drivers.get(driver) or ()
            if (device.pool, device.device) in wanted
            for uid in each.pods
        }
        return list(found)

    def count_by_driver(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for each in self._records.values():
            for driver in each.drivers:
                counts[driver] = counts.get(driver, 0) + 1
        return counts
