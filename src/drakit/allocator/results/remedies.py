"""Remedies: the single change that would make claims fit on a node.

In:  claims that do not fit. Only those with a single request are changed.
Out: changes, each of which was tried and worked. Nothing is guessed, and the inventory stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.results.reasons import Remedy
from drakit.api import (
    Device,
    DeviceClaim,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drakit.base.taints import EXISTS, untolerated

_NEW = "one-more"

Asked = ExactDeviceRequest | DeviceSubRequest
Fits = Callable[[Inventory, Sequence[ResourceClaim], str], bool]
"""Whether claims can be allocated on a node. The search behind it gives up early."""


def find_remedies(inventory: Inventory, claims: Sequence[ResourceClaim], node: str, fits: Fits) -> Iterator[Remedy]:
    """Single changes that make all claims fit on the node. Only claims with exactly one request are changed."""
    trial = _Trial(inventory, tuple(claims), node, fits)
    single = [number for number, claim in enumerate(claims) if len(claim.spec.devices.requests) == 1]
    if single:
        yield from trial.one_more_device()
    for number in single:
        for remedy in trial.changes_of(number):
            named = f" (claim {claims[number].metadata.name})" if len(claims) > 1 else ""
            yield Remedy(remedy.kind, remedy.text + named)


def _parts(claim: ResourceClaim) -> Sequence[int | None]:
    """The parts of the only request that can be changed: alternatives by number, or None for an exact request."""
    (request,) = claim.spec.devices.requests
    if request.exactly is not None:
        return [None]
    return range(len(request.first_available))


@dataclass(frozen=True, slots=True)
class _Trial:
    inventory: Inventory
    claims: tuple[ResourceClaim, ...]
    node: str
    fits: Fits

    def changes_of(self, number: int) -> Iterator[Remedy]:
        """Changes to one claim, or to a class that it names."""
        for part in _parts(self.claims[number]):
            yield from self.toleration(number, part)
            yield from self.selector_dropped(number, part)
        yield from self.constraint_dropped(number)

    def one_more_device(self) -> Iterator[Remedy]:
        """With one more device, like one that the node sees. Per driver, the first that helps."""
        done: set[str] = set()
        for view in self.inventory.views(self.node):
            driver = view.key[0]
            for device in view.devices:
                if driver not in done and self._fits_with_device(driver, device):
                    done.add(driver)
                    told = ", ".join(_attributes(device))
                    like = "/".join((*view.key, device.name))
                    yield Remedy("device", f"one more device like {like}" + (f" ({told})" if told else ""))

    def _fits_with_device(self, driver: str, device: Device) -> bool:
        # Without taints and counters, and in a pool of its own on this node: only the kind of device decides.
        added = replace(
            device, name=_NEW, taints=(), consumes_counters=(), node_name=None, node_selector=None, all_nodes=None
        )
        pool = ResourcePool(name=_NEW, generation=1, resource_slice_count=1)
        spec = ResourceSliceSpec(driver=driver, pool=pool, node_name=self.node, devices=(added,))
        fork = self.inventory.fork()
        fork.put_slice(ResourceSlice(metadata=ObjectMeta(name=f"{_NEW}-{self.node}"), spec=spec))
        return self._fits(fork, self.claims)

    def toleration(self, number: int, part: int | None) -> Iterator[Remedy]:
        """With one more toleration."""
        asked = self._asked(number, part)
        views = self.inventory.views(self.node)
        taints = (untolerated(each, asked.tolerations) for view in views for each in view.content.taints)
        for taint in dict.fromkeys(each for each in taints if each is not None):
            added = DeviceToleration(key=taint.key, operator=EXISTS, effect=taint.effect)
            changed = replace(asked, tolerations=(*asked.tolerations, added))
            if self._fits(self.inventory, self._asking(number, part, changed)):
                value = f"={taint.value}" if taint.value else ""
                yield Remedy("toleration", f"a toleration of {taint.key}{value}:{taint.effect}{_of(asked)}")

    def selector_dropped(self, number: int, part: int | None) -> Iterator[Remedy]:
        """Without one selector of the request or of its class."""
        asked = self._asked(number, part)
        for position, each in enumerate(asked.selectors):
            changed = replace(asked, selectors=asked.selectors[:position] + asked.selectors[position + 1 :])
            if self._fits(self.inventory, self._asking(number, part, changed)):
                text = each.cel.expression if each.cel else ""
                owner = _of(asked) or " of the request"
                yield Remedy("selector", f"selector #{position}{owner} dropped: {text}")
        named = self.inventory.classes.get(asked.device_class_name)
        for position, each in enumerate(named.spec.selectors if named else ()):
            if self._fits_with_class_selector_dropped(asked.device_class_name, position):
                text = each.cel.expression if each.cel else ""
                yield Remedy("selector", f"selector #{position} of class {asked.device_class_name} dropped: {text}")

    def _fits_with_class_selector_dropped(self, name: str, position: int) -> bool:
        fork = self.inventory.fork()
        named = fork.classes[name]
        kept = named.spec.selectors[:position] + named.spec.selectors[position + 1 :]
        fork.put_class(replace(named, spec=replace(named.spec, selectors=kept)))
        return self._fits(fork, self.claims)

    def constraint_dropped(self, number: int) -> Iterator[Remedy]:
        """Without one constraint."""
        devices = self.claims[number].spec.devices
        for position, each in enumerate(devices.constraints):
            kept = devices.constraints[:position] + devices.constraints[position + 1 :]
            if self._fits(self.inventory, self._with(number, replace(devices, constraints=kept))):
                name = each.match_attribute or each.distinct_attribute
                yield Remedy("constraint", f"constraint #{position} on {name} dropped")

    def _asked(self, number: int, part: int | None) -> Asked:
        (request,) = self.claims[number].spec.devices.requests
        if part is None:
            return request.exactly or ExactDeviceRequest()
        return request.first_available[part]

    def _asking(self, number: int, part: int | None, asked: Asked) -> tuple[ResourceClaim, ...]:
        """The claims with one request, or one alternative of it, changed."""
        devices = self.claims[number].spec.devices
        (request,) = devices.requests
        if isinstance(asked, ExactDeviceRequest):
            changed = replace(request, exactly=asked)
        else:
            subs = [asked if position == part else each for position, each in enumerate(request.first_available)]
            changed = replace(request, first_available=tuple(subs))
        return self._with(number, replace(devices, requests=(changed,)))

    def _with(self, number: int, devices: DeviceClaim) -> tuple[ResourceClaim, ...]:
        changed = replace(self.claims[number], spec=ResourceClaimSpec(devices=devices))
        return (*self.claims[:number], changed, *self.claims[number + 1 :])

    def _fits(self, inventory: Inventory, claims: Sequence[ResourceClaim]) -> bool:
        return self.fits(inventory, claims, self.node)


def _of(asked: Asked) -> str:
    """Which alternative is meant, where there are several."""
    return f" of {asked.name}" if isinstance(asked, DeviceSubRequest) else ""


def _attributes(device: Device) -> Iterator[str]:
    """A few attributes, enough to tell a person what kind of device it is."""
    for name, each in list(device.attributes.items())[:4]:
        value = next((v for v in (each.string, each.int_, each.bool_, each.version) if v is not None), None)
        if value is not None:
            yield f"{name}={value}"
