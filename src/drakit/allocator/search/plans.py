"""Requests: what a set of claims asks for, read once for all nodes.

In:  the specs of claims, the classes that they name, the feature gates.
Out: a Plan: claims, requests and their alternatives in order, constraints, and the checks that come before any search.

A plan knows no names of claims, so that all claims from one template share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from drakit.allocator.inventory.contents import Question
from drakit.allocator.inventory.selectors import Selection
from drakit.allocator.search.answers import Known
from drakit.allocator.search.constraints import Constraint
from drakit.allocator.search.layouts import Layout, Profile, Trait
from drakit.api import (
    ALL,
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    Quantity,
    to_json,
)
from drakit.base.gates import FeatureGates
from drakit.selectors import Gates

if TYPE_CHECKING:
    from drakit.allocator.inventory.pools import PoolKey, Views
    from drakit.allocator.search.search import Answer

MAX_RESULTS = 32
_MAX_PLANS = 32
_MAX_KNOWN = 50_000


@dataclass(frozen=True, slots=True)
class Features:
    """The gates that the allocator asks for."""

    admin_access: bool
    consumable: bool
    binding: bool
    taints: bool
    lists: bool
    partitions: bool
    prioritized: bool

    @property
    def distinct(self) -> bool:
        """Whether distinctAttribute is known. It came with consumable capacity, in one piece with these."""
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
    """A request, or one of the sub-requests of a prioritized list."""

    index: int
    claim: int
    request: int
    name: str
    sub: str
    class_name: str
    selection: Selection
    count: int
    takes_all: bool
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]
    constraints: tuple[Constraint, ...]

    @property
    def full_name(self) -> str:
        return f"{self.name}/{self.sub}" if self.sub else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    index: int
    claim: int
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why these claims cannot be allocated anywhere, in Kubernetes' words; the claim's name goes in front."""

    claim: int
    message: str


@dataclass(frozen=True, slots=True)
class AllCheck:
    """Find out how many devices `All` means on a node."""

    alternative: Alternative


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """The claim's smallest choice must fit into a result."""

    claim: int


Check = AllCheck | LimitCheck | Refusal


class Recent(NamedTuple):
    """What was last answered for a node, and from what. `pool` is set when the node sees that one only."""

    views: Views
    use: object
    pool: PoolKey | None
    found: bool
    answer: Answer


@dataclass(eq=False)
class Plan:
    """What is asked for. The dicts remember what was found out about pools and nodes; they never change an answer."""

    features: Features
    claims: int
    requests: tuple[Request, ...]
    alternatives: tuple[Alternative, ...]
    constraints: tuple[Constraint, ...]
    checks: tuple[Check, ...]
    traits: dict[Trait, Trait] = field(default_factory=dict)
    profiles: dict[object, Profile] = field(default_factory=dict)
    layouts: dict[object, Layout] = field(default_factory=dict)
    answers: dict[object, Answer] = field(default_factory=dict)
    recent: dict[str, Recent] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    question: Question = field(init=False)

    def __post_init__(self) -> None:
        self.question = Question([each.selection for each in self.alternatives], self.constraints)

    def make_room(self) -> None:
        """Forget everything when it is too much: devices and nodes that are gone leave something behind."""
        remembered: Sequence[dict[Any, Any]] = (self.traits, self.profiles, self.layouts, self.answers, self.recent)
        if any(len(each) >= _MAX_KNOWN for each in remembered):
            for each in remembered:
                each.clear()
            self.known.clear()


class Plans:
    """The latest plans by what was asked for. Claims from one template find the plan of their siblings."""

    def __init__(self) -> None:
        self._known: dict[object, Plan] = {}

    def of(self, claims: Sequence[DeviceClaim], classes: Mapping[str, DeviceClass], gates: FeatureGates) -> Plan:
        key = (gates, tuple(_signature(claim, classes) for claim in claims))
        plan = self._known.pop(key, None) or _Reader(claims, classes, Features.of(gates)).read()
        self._known[key] = plan
        if len(self._known) > _MAX_PLANS:
            del self._known[next(iter(self._known))]
        return plan


def _signature(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> object:
    asked = to_json(msgspec.structs.replace(claim, config=()))
    names = dict.fromkeys(each.device_class_name for request in claim.requests for each in _parts(request))
    return asked, tuple((name, _selectors(classes.get(name))) for name in names)


def _selectors(named: DeviceClass | None) -> tuple[str | None, ...] | None:
    return tuple(each.cel.expression if each.cel else None for each in named.spec.selectors) if named else None


def _parts(request: DeviceRequest) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    if request.exactly is not None:
        yield request.exactly
    yield from request.first_available


class _Refused(Exception):
    """Ends the reading; it is no failure of the reader."""


class _Reader:
    """Reads claims in order; what is wrong first ends the reading and becomes the last check."""

    def __init__(self, claims: Sequence[DeviceClaim], classes: Mapping[str, DeviceClass], features: Features) -> None:
        self.claims = claims
        self.classes = classes
        self.features = features
        self.requests: list[Request] = []
        self.alternatives: list[Alternative] = []
        self.constraints: list[Constraint] = []
        self.checks: list[Check] = []

    def read(self) -> Plan:
        for number, claim in enumerate(self.claims):
            try:
                self._read_claim(number, claim)
            except _Refused as why:
                self.checks.append(Refusal(number, str(why)))
                break
        return Plan(
            self.features,
            len(self.claims),
            tuple(self.requests),
            tuple(self.alternatives),
            tuple(self.constraints),
            tuple(self.checks),
        )

    def _read_claim(self, number: int, claim: DeviceClaim) -> None:
        known, refused = self._read_constraints(number, claim)
        self.constraints += known
        for request in claim.requests:
            self._check_gates(request)
            self._read_request(number, request, known)
        self.checks.append(LimitCheck(number))
        if refused:
            raise _Refused(refused)

    def _read_constraints(self, number: int, claim: DeviceClaim) -> tuple[list[Constraint], str]:
        """The constraints up to the first that is refused, and why it is."""
        known: list[Constraint] = []
        for position, spec in enumerate(claim.constraints):
            index = len(self.constraints) + position
            constraint = Constraint.of(index, number, spec, lists=self.features.lists)
            if constraint is None:
                return known, f"constraint #{position}: empty constraint (unsupported constraint type?)"
            if constraint.distinct and not self.features.distinct:
                why = "distinctAttribute is used, but the DRAConsumableCapacity feature is disabled"
                return known, f"constraint #{position}: {why}"
            known.append(constraint)
        return known, ""

    def _check_gates(self, request: DeviceRequest) -> None:
        if request.first_available and not self.features.prioritized:
            raise _Refused(f"request {request.name}: has subrequests, but the DRAPrioritizedList feature is disabled")
        if self.features.consumable:
            return
        if request.exactly is not None and request.exactly.capacity is not None:
            raise _Refused(
                f"request {request.name}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
            )
        for sub in request.first_available:
            if sub.capacity is not None:
                raise _Refused(
                    f"subrequest {sub.name}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
                )

    def _read_request(self, claim: int, request: DeviceRequest, known: list[Constraint]) -> None:
        index = len(self.requests)
        read = [
            self._read_alternative(claim, index, request.name, sub.name, sub, known) for sub in request.first_available
        ]
        if not request.first_available:
            if request.exactly is None:
                raise _Refused(f"request {request.name}: missing device class name (unsupported request type?)")
            read.append(self._read_alternative(claim, index, request.name, "", request.exactly, known))
        self.requests.append(Request(index, claim, tuple(read)))

    def _read_alternative(
        self,
        claim: int,
        request: int,
        name: str,
        sub: str,
        spec: ExactDeviceRequest | DeviceSubRequest,
        known: list[Constraint],
    ) -> Alternative:
        called = f"request {sub or name}"
        admin = spec.admin_access if isinstance(spec, ExactDeviceRequest) else None
        for number, selector in enumerate(spec.selectors):
            if selector.cel is None:
                raise _Refused(f"{called}, selector #{number}: CEL expression empty (unsupported selector type?)")
        if admin is not None and not self.features.admin_access:
            raise _Refused(f"{called}: admin access is requested, but the feature is disabled")
        selection = self._selection(called, spec)
        if spec.allocation_mode not in (EXACT_COUNT, ALL):
            raise _Refused(f"{called}: unsupported count mode {spec.allocation_mode}")
        full_name = f"{name}/{sub}" if sub else name
        read = Alternative(
            index=len(self.alternatives),
            claim=claim,
            request=request,
            name=name,
            sub=sub,
            class_name=spec.device_class_name,
            selection=selection,
            count=spec.count,
            takes_all=spec.allocation_mode == ALL,
            admin=bool(admin),
            tolerations=spec.tolerations,
            capacity=spec.capacity.requests if spec.capacity else {},
            constraints=tuple(each for each in known if each.concerns(name, full_name)),
        )
        self.alternatives.append(read)
        if read.takes_all:
            self.checks.append(AllCheck(read))
        return read

    def _selection(self, called: str, spec: ExactDeviceRequest | DeviceSubRequest) -> Selection:
        if not spec.device_class_name:
            raise _Refused(f"{called}: missing device class name (unsupported request type?)")
        named = self.classes.get(spec.device_class_name)
        if named is None:
            missing = f'deviceclass.resource.k8s.io "{spec.device_class_name}" not found'
            raise _Refused(f"{called}: could not retrieve device class {spec.device_class_name}: {missing}")
        class_texts = _selectors(named) or ()
        if None in class_texts:
            raise _Refused(
                f"{called}: class {spec.device_class_name}: CEL expression empty (unsupported selector type?)"
            )
        texts = [each.cel.expression for each in spec.selectors if each.cel]
        gates = Gates(self.features.lists, self.features.consumable)
        return Selection.of([text for text in class_texts if text is not None], texts, gates=gates)
