"""Which rules can be asked of a decision: those whose gate was on for everybody who had a part in it.

In:  gates that go off and come back, components that start, devices that are published anew.
Out: whether a gate's rule is asked of what is decided now.

A rule is not asked from when its gate goes off until every component has been started with the gate on, and messages
of the lives before have arrived. Where it depends on what slices say of a device, which a server without the gate has
cut away, it is asked again of schedulers that began after the device had it back, or that had the time to hear of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from drakit.api.objects.plain import Plain

TAINTS, BINDING, PARTS, SHARES = (
    "DRADeviceTaints", "DRADeviceBindingConditions", "DRAPartitionableDevices", "DRAConsumableCapacity",
)  # fmt: skip
Place = tuple[str, str, str]
"""Driver, pool, device."""

_ARRIVED = 10.0
"""Seconds after which what a killed component had sent has been handled."""
_HEARD = 60.0
"""Seconds after the faults in which everybody hears of everything."""
_CUT = ("taints", "consumesCounters", "allowMultipleAllocations", "bindingConditions")
"""Fields of a device that a server without their gate does not store."""


class GatePromises:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._off: set[str] = set()
        self.ever_off: set[str] = set()
        self._to_start: dict[str, set[str]] = {}
        self._on_since: dict[str, float] = {}
        self._schedulers: dict[str, float] = {}
        """When the latest life of each began."""
        self._returned: dict[Place, float] = {}
        self._calm: float | None = None

    # What happens

    def change(self, off: Sequence[str], components: Collection[str]) -> None:
        """From now on these gates are off, and all others on; components learn of it when they are started again."""
        for gate in self._off - set(off):
            self._to_start[gate] = set(components)
        for gate in off:
            self._to_start.pop(gate, None)
            self._on_since.pop(gate, None)
        self._off = set(off)
        self.ever_off |= self._off

    def started(self, component: str) -> None:
        if component.startswith("scheduler/"):
            self._schedulers[component] = self._now()
        for gate, left in list(self._to_start.items()):
            left.discard(component)
            if not left:
                del self._to_start[gate]
                self._on_since[gate] = self._now()

    def published(self, place: Place, before: Plain | None, device: Plain) -> None:
        if before is not None and any(device.get(field) and not before.get(field) for field in _CUT):
            self._returned[place] = self._now()

    def calm(self) -> None:
        """The faults have stopped."""
        self._calm = self._now()

    # What can be asked

    def always(self, gate: str) -> bool:
        """Whether the gate was never off."""
        return gate not in self.ever_off

    def asked(self, gate: str, *places: Place) -> bool:
        """Whether the gate's rule is asked of what is decided now about these devices."""
        if gate not in self.ever_off:
            return True
        since = self._on_since.get(gate)
        return since is not None and self._now() - since > _ARRIVED and all(map(self._is_known, places))

    def _is_known(self, place: Place) -> bool:
        back = self._returned.get(place)
        if back is None or all(begun > back for begun in self._schedulers.values()):
            return True
        return self._calm is not None and self._now() - max(back, self._calm) > _HEARD
