"""Turn the specs of claims into a plan.

In:  the specs of claims, the classes that they name, the feature gates.
Out: a Plan. Claims that can never be allocated get a check that fails, with Kubernetes' message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from drakit.allocator.inventory.selectors import DeviceSelectors
from drakit.allocator.search.constraints import Constraint
from drakit.allocator.search.plans import (
    AllCheck,
    Alternative,
    Features,
    InvalidClaim,
    LimitCheck,
    Plan,
    PlanCheck,
    PlannedRequest,
)
from drakit.api import (
    ALL,
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from drakit.api.codec.specs import SPECS
from drakit.base.gates import FeatureGates
from drakit.selectors import Gates


def read_plan(claims: Sequence[DeviceClaim], classes: Mapping[str, DeviceClass], gates: FeatureGates) -> Plan:
    return _Reader(claims, classes, Features.of(gates)).read()


def signature(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> object:
    """Equal for claims that ask for the same: claims from one template share their plan."""
    # Configuration is for the driver. It does not change which devices fit.
    asked = SPECS.json_of(msgspec.structs.replace(claim, config=()) if claim.config else claim)
    names = dict.fromkeys(each.device_class_name for request in claim.requests for each in _parts(request))
    return asked, tuple((name, _expressions(classes.get(name))) for name in names)


def meaning(claim: DeviceClaim, classes: Mapping[str, DeviceClass]) -> object:
    """Equal also for claims that name different classes, if these select alike."""
    parts = [each for request in claim.requests for each in _parts(request)]
    requests = tuple([_without_class(request) for request in claim.requests])
    asked = SPECS.json_of(msgspec.structs.replace(claim, config=(), requests=requests))
    return asked, tuple([_selection(each.device_class_name, classes) for each in parts])


def _without_class(request: DeviceRequest) -> DeviceRequest:
    exactly = msgspec.structs.replace(request.exactly, device_class_name="") if request.exactly is not None else None
    others = tuple([msgspec.structs.replace(each, device_class_name="") for each in request.first_available])
    return msgspec.structs.replace(request, exactly=exactly, first_available=others)


def _selection(name: str, classes: Mapping[str, DeviceClass]) -> object:
    """What a class selects; its name where that cannot be said, as the plan tells of it then."""
    found = _expressions(classes.get(name))
    return name if found is None or None in found else found


def _expressions(named: DeviceClass | None) -> tuple[str | None, ...] | None:
    return tuple(each.cel.expression if each.cel else None for each in named.spec.selectors) if named else None


def _parts(request: DeviceRequest) -> Iterator[ExactDeviceRequest | DeviceSubRequest]:
    if request.exactly is not None:
        yield request.exactly
    yield from request.first_available


class _Invalid(Exception):
    """The claims are invalid. The message is for the user."""


class _Reader:
    """Reads claims in order. The first thing that is wrong ends the reading and becomes the last check."""

    def __init__(self, claims: Sequence[DeviceClaim], classes: Mapping[str, DeviceClass], features: Features) -> None:
        self.claims = claims
        self.classes = classes
        self.features = features
        self.requests: list[PlannedRequest] = []
        self.alternatives: list[Alternative] = []
        self.constraints: list[Constraint] = []
        self.checks: list[PlanCheck] = []

    def read(self) -> Plan:
        for number, claim in enumerate(self.claims):
            try:
                self._read_claim(number, claim)
            except _Invalid as why:
                self.checks.append(InvalidClaim(number, str(why)))
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
        known, wrong = self._read_constraints(number, claim)
        self.constraints += known
        for position, request in enumerate(claim.requests):
            self._check_gates(request)
            self._read_request(number, position, request, known)
        self.checks.append(LimitCheck(number))
        # Reported last, as upstream: requests and the limit are checked before constraints.
        if wrong:
            raise _Invalid(wrong)

    def _read_constraints(self, number: int, claim: DeviceClaim) -> tuple[list[Constraint], str]:
        """The constraints up to the first that is refused, and why it is."""
        known: list[Constraint] = []
        for position, spec in enumerate(claim.constraints):
            index = len(self.constraints) + position
            if spec.match_attribute and spec.distinct_attribute:
                why = "matchAttribute and distinctAttribute exclude each other, but both are set"
                return known, f"constraint #{position}: {why}"
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
            raise _Invalid(f"request {request.name}: has subrequests, but the DRAPrioritizedList feature is disabled")
        if self.features.consumable:
            return
        if request.exactly is not None and request.exactly.capacity is not None:
            raise _Invalid(
                f"request {request.name}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
            )
        for sub in request.first_available:
            if sub.capacity is not None:
                raise _Invalid(
                    f"subrequest {sub.name}: has capacity requests, but the DRAConsumableCapacity feature is disabled"
                )

    def _read_request(self, claim: int, position: int, request: DeviceRequest, known: list[Constraint]) -> None:
        index = len(self.requests)
        read = [
            self._read_alternative(claim, index, request.name, sub.name, sub, known, position=position, choice=choice)
            for choice, sub in enumerate(request.first_available)
        ]
        if not request.first_available:
            if request.exactly is None:
                raise _Invalid(f"request {request.name}: missing device class name (unsupported request type?)")
            read.append(
                self._read_alternative(claim, index, request.name, "", request.exactly, known, position=position)
            )
        self.requests.append(PlannedRequest(index, claim, tuple(read)))

    def _read_alternative(
        self,
        claim: int,
        request: int,
        name: str,
        sub: str,
        spec: ExactDeviceRequest | DeviceSubRequest,
        known: list[Constraint],
        *,
        position: int,
        choice: int = 0,
    ) -> Alternative:
        called = f"request {sub or name}"
        admin = spec.admin_access if isinstance(spec, ExactDeviceRequest) else None
        for number, selector in enumerate(spec.selectors):
            if selector.cel is None:
                raise _Invalid(f"{called}, selector #{number}: CEL expression empty (unsupported selector type?)")
        if admin is not None and not self.features.admin_access:
            raise _Invalid(f"{called}: admin access is requested, but the feature is disabled")
        selectors = self._selectors(called, spec)
        if spec.allocation_mode not in (EXACT_COUNT, ALL):
            raise _Invalid(f"{called}: unsupported count mode {spec.allocation_mode}")
        full_name = f"{name}/{sub}" if sub else name
        read = Alternative(
            index=len(self.alternatives),
            claim=claim,
            request=request,
            name=name,
            sub=sub,
            position=position,
            choice=choice,
            selectors=selectors,
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

    def _selectors(self, called: str, spec: ExactDeviceRequest | DeviceSubRequest) -> DeviceSelectors:
        if not spec.device_class_name:
            raise _Invalid(f"{called}: missing device class name (unsupported request type?)")
        named = self.classes.get(spec.device_class_name)
        if named is None:
            missing = f'deviceclass.resource.k8s.io "{spec.device_class_name}" not found'
            raise _Invalid(f"{called}: could not retrieve device class {spec.device_class_name}: {missing}")
        class_texts = _expressions(named) or ()
        if None in class_texts:
            raise _Invalid(
                f"{called}: class {spec.device_class_name}: CEL expression empty (unsupported selector type?)"
            )
        texts = [each.cel.expression for each in spec.selectors if each.cel]
        gates = Gates(self.features.lists, self.features.consumable)
        return DeviceSelectors([text for text in class_texts if text is not None], texts, gates=gates)
