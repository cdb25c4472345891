"""Plans: what a set of claims asks for, read once for all nodes. Pure data.

A plan knows no names of claims, so that all claims from one template share it; nor of classes, so that claims do whose
classes select alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from drakit.allocator.inventory.contents import DeviceQuery
from drakit.allocator.inventory.selectors import DeviceSelectors
from drakit.allocator.inventory.shapes import DeviceResources
from drakit.allocator.search.constraints import Constraint
from drakit.api import DeviceToleration, Quantity, ResourceClaim
from drakit.base.gates import FeatureGates

MAX_RESULTS = 32
"""How many devices one claim may have: the limit of the API."""


@dataclass(frozen=True, slots=True)
class Features:
    """The feature gates that change what the allocator does."""

    admin_access: bool
    consumable: bool
    binding: bool
    taints: bool
    lists: bool
    partitions: bool
    prioritized: bool

    @property
    def distinct(self) -> bool:
        """Whether distinctAttribute is supported.

        Upstream has several allocators. The one without these features does not know distinctAttribute.
        """
        return self.consumable or self.binding or self.lists

    @staticmethod
    def of(gates: FeatureGates) -> Features:
        return Features(
            admin_access=gates.enabled("DRAAdminAccess"),
            consumable=gates.enabled("DRAConsumableCapacity"),
            binding=gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus"),
            taints=gates.enabled("DRADeviceTaints"),
            lists=gates.enabled("DRAListTypeAttributes"),
            partitions=gates.enabled("DRAPartitionableDevices"),
            prioritized=gates.enabled("DRAPrioritizedList"),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """A request, or one of the sub-requests of a prioritized list.

    `position` is the request's place in its claim, `choice` that of the sub-request in the list.
    """

    index: int
    claim: int
    request: int
    name: str
    sub: str
    position: int
    choice: int
    selectors: DeviceSelectors
    count: int
    takes_all: bool
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]
    constraints: tuple[Constraint, ...]

    @property
    def full_name(self) -> str:
        return f"{self.name}/{self.sub}" if self.sub else self.name

    def class_of(self, claim: ResourceClaim) -> str:
        """The name of the class that a claim of this plan asks for."""
        request = claim.spec.devices.requests[self.position]
        if request.first_available:
            return request.first_available[self.choice].device_class_name
        return request.exactly.device_class_name if request.exactly else ""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedRequest:
    index: int
    claim: int
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class InvalidClaim:
    """Why these claims can never be allocated: Kubernetes' message, without the claim's name in front."""

    claim: int
    message: str


@dataclass(frozen=True, slots=True)
class AllCheck:
    """Find out how many devices `All` means on a node."""

    alternative: Alternative


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """The fewest devices that the claim can get must not exceed the limit of a result."""

    claim: int


PlanCheck = AllCheck | LimitCheck | InvalidClaim


@dataclass(frozen=True, eq=False)
class Plan:
    """Claims, requests and their alternatives in order, constraints, and the checks that come before any search."""

    features: Features
    claims: int
    requests: tuple[PlannedRequest, ...]
    alternatives: tuple[Alternative, ...]
    constraints: tuple[Constraint, ...]
    checks: tuple[PlanCheck, ...]
    query: DeviceQuery = field(init=False)
    consumed: dict[tuple[int, DeviceResources], Mapping[str, Quantity]] = field(init=False, default_factory=dict)
    """What one share takes of a device, by alternative and kind of device, as results tell it."""

    def __post_init__(self) -> None:
        selectors = [each.selectors for each in self.alternatives]
        query = DeviceQuery(selectors, [(each.attribute, each.lists) for each in self.constraints])
        object.__setattr__(self, "query", query)
