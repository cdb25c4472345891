"""When the node is short of something: `--eviction-hard`.

In:  `memory.available<100Mi,nodefs.available<10%`; what the machine has left.
Out: thresholds, and which of them are met. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from drakit.base.errors import UsageError
from drakit.base.quantity import Quantity, QuantityError

MEMORY_PRESSURE, DISK_PRESSURE = "MemoryPressure", "DiskPressure"
DEFAULT_EVICTION_HARD = "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%"
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


@dataclass(frozen=True, slots=True)
class Signal:
    """What is measured: the resource that runs short, and the node's condition then."""

    name: str
    resource: str
    condition: str


SIGNALS: Mapping[str, Signal] = {
    each.name: each
    for each in (
        Signal("memory.available", "memory", MEMORY_PRESSURE),
        Signal("nodefs.available", "ephemeral-storage", DISK_PRESSURE),
        Signal("nodefs.inodesFree", "inodes", DISK_PRESSURE),
    )
}
"""In the order in which a shortage is dealt with: memory first, for it is the most urgent."""


@dataclass(frozen=True, slots=True)
class Observation:
    available: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit for a signal: an amount, or a percentage of the capacity."""

    signal: Signal
    amount: int = 0
    percent: float = 0.0

    def of(self, capacity: int) -> int:
        return int(capacity * self.percent / 100) if self.percent else self.amount

    def is_met(self, observation: Observation) -> bool:
        return observation.available < self.of(observation.capacity)


def met(thresholds: tuple[Threshold, ...], observed: Mapping[str, Observation]) -> list[Threshold]:
    """The thresholds that are met, most urgent first."""
    order = list(SIGNALS)
    found = [each for each in thresholds if each.signal.name in observed and each.is_met(observed[each.signal.name])]
    return sorted(found, key=lambda each: order.index(each.signal.name))


def parse_thresholds(text: str, flag: str) -> tuple[Threshold, ...]:
    """Empty for none. Raise UsageError."""
    parts = [each.strip() for each in text.split(",") if each.strip()]
    return tuple(_parse(part, flag) for part in parts)


def _parse(part: str, flag: str) -> Threshold:
    name, separator, value = (each.strip() for each in part.partition("<"))
    if not separator:
        raise UsageError(f"{flag}: {part!r} is not of the form signal<amount")
    signal = SIGNALS.get(name)
    if signal is None:
        raise UsageError(f"{flag}: {name!r} is not measured; these are: {', '.join(SIGNALS)}")
    try:
        if value.endswith("%"):
            made = Threshold(signal, percent=float(value[:-1]))
        else:
            made = Threshold(signal, amount=Quantity.parse(value).value)
    except (QuantityError, ValueError) as error:
        raise UsageError(f"{flag}: {part!r}: {error}") from None
    if made.percent > 100 or made.percent < 0 or made.amount < 0:
        raise UsageError(f"{flag}: {part!r}: a threshold is a positive amount, or 0% to 100%")
    return made


def binary(amount: int) -> str:
    """As messages show it: `50Mi`; what is no multiple of 1024 stays a number."""
    place = 0
    while amount and amount % 1024 == 0 and place < len(_BINARY) - 1:
        amount, place = amount // 1024, place + 1
    return f"{amount}{_BINARY[place]}"
