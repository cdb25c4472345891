"""Reasons: why claims cannot be allocated on a node, request by request and device by device. Pure data.

Out: per claim and request how many devices were considered and why each kind of them was refused; the best partial
     solution; and, for a claim with one request, what single change would make it fit. `tell` makes lines of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Cause(Enum):
    """Why a device could not be used, in the order in which reasons are listed."""

    BINDING = "binding conditions"
    SELECTOR = "selector"
    SELECTOR_ERROR = "selector error"
    NODE = "node"
    IN_USE = "in use"
    TAINT = "taint"
    CONSTRAINT = "constraint"
    GATE = "feature gate"
    COUNTER = "counter"
    CAPACITY = "capacity"


@dataclass(frozen=True, slots=True)
class DeviceRefusal:
    """One kind of refusal and the devices that it hit, as driver/pool/device."""

    cause: Cause
    detail: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestReasons:
    """Why a request could not be served.

    `wanted` is None when it asks for all devices. `taken` are the devices that the best partial solution gives it.
    """

    request: str
    wanted: int | None
    considered: int
    taken: tuple[str, ...]
    usable: tuple[str, ...]
    refusals: tuple[DeviceRefusal, ...]


@dataclass(frozen=True, slots=True)
class ClaimReasons:
    claim: str
    requests: tuple[RequestReasons, ...]


@dataclass(frozen=True, slots=True)
class PoolTrouble:
    """A pool that serves no request."""

    pool: str
    problem: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """`kind` is device, toleration, selector or constraint; `text` completes "it would fit with …"."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Reasons:
    node: str
    claims: tuple[ClaimReasons, ...]
    pools: tuple[PoolTrouble, ...]
    remedies: tuple[Remedy, ...] = ()

    @property
    def placed(self) -> int:
        """How many devices the best partial solution has."""
        return sum(len(request.taken) for claim in self.claims for request in claim.requests)


def tell(reasons: Reasons) -> Iterator[str]:
    """The reasons as lines of text, indented by two blanks per level."""
    for trouble in reasons.pools:
        yield f"pool {trouble.pool} is {trouble.problem}: {trouble.reason}"
    for claim in reasons.claims:
        yield f"claim {claim.claim}"
        for request in claim.requests:
            wanted = "all" if request.wanted is None else request.wanted
            found = f"{len(request.taken)} found" if request.taken else "none found"
            yield f"  request {request.request}: {wanted} wanted, {found}, {request.considered} considered"
            for refusal in request.refusals:
                yield f"    {_counted(refusal.devices)}: {refusal.detail}"
            if request.usable:
                yield f"    {_counted(request.usable)}: could be used"
    for remedy in reasons.remedies:
        yield f"it would fit with {remedy.text}"


def _counted(devices: tuple[str, ...]) -> str:
    shown = ", ".join(device.rpartition("/")[2] for device in devices[:3])
    more = ", …" if len(devices) > 3 else ""
    return f"{len(devices)} device{'s' * (len(devices) != 1)} ({shown}{more})"
