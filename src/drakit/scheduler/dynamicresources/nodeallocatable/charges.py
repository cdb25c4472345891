"""What a pod's claims take of nodes themselves, at each extension point of the plugin.

pre_filter   `begin`: what claims take that have their devices already
filter       `refuse_overcharged`: nodes that have less left than pod and claims take
reserve      `charge`: the assumed pod has the statuses, so the ledger of its node counts them from then on
pre_bind     `write`: the same in the pod's status, after the claims and before the pod is bound
unreserve    `clear`: taken back
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from drakit.allocator import Inventory
from drakit.api import DeviceRequestAllocationResult
from drakit.api.objects.pods import Pod
from drakit.api.podclaims import EXTENDED_RESOURCES
from drakit.base.errors import DrakitError
from drakit.client import SLICES, metadata_of
from drakit.scheduler.dynamicresources.nodeallocatable.accounting import GATE, Accounting
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import CannotCount
from drakit.scheduler.dynamicresources.nodeallocatable.choices import charges_of, other_choice
from drakit.scheduler.dynamicresources.nodeallocatable.fit import refuse_shared
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import (
    Statuses,
    containers_by_claim,
    renamed,
    with_statuses,
)
from drakit.scheduler.dynamicresources.nodeallocatable.writes import clear_statuses, write_statuses
from drakit.scheduler.dynamicresources.state.errors import CannotBind
from drakit.scheduler.dynamicresources.state.needs import ClaimCharge, NodeCharges, PodNeeds, Variant
from drakit.scheduler.framework import SUCCESS, CycleState, Handle, NodeInfo, PluginStatus

Taker = tuple[ClaimCharge, DeviceRequestAllocationResult]


class Charging:
    """Shared by all profiles of a scheduler, like the inventory."""

    def __init__(self, handle: Handle, inventory: Inventory) -> None:
        self._client = handle.client
        self.accounting = Accounting(inventory, handle.nodes, handle.gates)
        if self.accounting.enabled:
            handle.informers.of(SLICES).subscribe(self._follow)

    @staticmethod
    def shared(handle: Handle, inventory: Inventory) -> Charging:
        return handle.shared(GATE, lambda: Charging(handle, inventory))

    def _follow(self, old: Any, new: Any) -> None:
        if new is not None:
            self.accounting.devices.put_slice(new)
        else:
            self.accounting.devices.remove_slice(metadata_of(old).name)

    def begin(self, needs: PodNeeds, pod: Pod) -> None:
        """Start to account for the pod. Call it when the allocated claims are known."""
        if self.accounting.is_active:
            needs.charge = self.accounting.attempt(pod, _uses(needs))

    def charge(self, state: CycleState, needs: PodNeeds) -> PluginStatus:
        """Put the statuses into the assumed pod. Call it when all claims have devices; older statuses are replaced."""
        if not self.accounting.enabled:
            return SUCCESS
        try:
            statuses = self._statuses(state.pod, needs) if self.accounting.is_active else ()
        except CannotCount as error:
            return PluginStatus.failed(error)
        state.assumed = with_statuses(state.assumed, statuses)
        return SUCCESS

    def _statuses(self, pod: Pod, needs: PodNeeds) -> Statuses:
        users = containers_by_claim(pod)
        if needs.extended is not None:
            users[EXTENDED_RESOURCES] = needs.extended.containers
        return self.accounting.statuses(_uses(needs, users))

    async def write(self, state: CycleState, needs: PodNeeds) -> None:
        """Raise CannotBind."""
        if not self.accounting.enabled:
            return
        statuses = state.assumed.status.node_allocatable_resource_claim_statuses
        for need in needs.needs:
            if need.special:
                statuses = renamed(statuses, EXTENDED_RESOURCES, need.claim.metadata.name)
        # Claims are reserved by now: of two pods that share one, the later reservation sees both.
        _check_shared(state.pod, needs, statuses)
        if state.pod.status.node_allocatable_resource_claim_statuses == statuses:
            return
        needs.is_charged = True
        try:
            await write_statuses(self._client, state.pod, statuses)
        except DrakitError as error:
            where = f"{state.pod.metadata.namespace}/{state.pod.metadata.name}"
            raise CannotBind(f"updating pod {where} NodeAllocatableResourceClaimStatuses: {error}") from error

    async def clear(self, needs: PodNeeds, pod: Pod) -> None:
        """Never fails; safe to repeat."""
        if needs.is_charged:
            needs.is_charged = False
            await clear_statuses(self._client, pod)


def _check_shared(pod: Pod, needs: PodNeeds, statuses: Statuses) -> None:
    """Another scheduler may have given the claim to a pod of its own: whoever reserved it last sees both."""
    taking = {each.resource_claim_name for each in statuses}
    shared = refuse_shared(pod, [need.claim for need in needs.needs if need.claim.metadata.name in taking], ())
    if shared is not None:
        raise CannotBind(shared.message)


def refuse_overcharged(
    needs: PodNeeds, variant: Variant, nodes: Iterable[NodeInfo], refused: dict[str, PluginStatus]
) -> None:
    if needs.charge is None:
        return
    for node in nodes:
        if node.name not in refused:
            answer = variant.allocator.answer(node.name) if variant.allocator is not None else None
            refusal = needs.charge.check(node, answer, _allocation(variant, node.name))
            if refusal is not None and not _choose_again(needs.charge, variant, node, refusal):
                refused[node.name] = refusal


def takers(needs: PodNeeds, node: NodeInfo, resource: str) -> Iterator[Taker]:
    """The pod's claims, allocated or as they would be on the node, with devices that take the resource of it."""
    if needs.charge is None:
        return
    groups = needs.extended.groups(needs, [node], {}) if needs.extended else [(needs.variant, [node])]
    wanted = (use for variant, alike in groups if alike for use in _allocation(variant, node.name)())
    for use in (*_uses(needs), *wanted):
        for device in needs.charge.mapped([use], resource):
            yield use, device


def _choose_again(charge: NodeCharges, variant: Variant, node: NodeInfo, refusal: PluginStatus) -> bool:
    """Whether other devices of the node fit; they are what its claims get there then."""
    allocator = variant.allocator
    if not refusal.is_rejected or allocator is None:
        return False
    # Of many nodes that are equal in all that counts here, one is searched in vain.
    answer = allocator.answer(node.name)
    look = (charge.kind_of(node), id(answer), frozenset(node.allocatable.items()), frozenset(node.requested.items()))
    if look in variant.hopeless:
        return False

    def fits(uses: Sequence[ClaimCharge]) -> bool:
        return charge.check(node, object(), lambda: uses) is None

    found = other_choice(variant, node.name, fits=fits, mapped=charge.mapped)
    if found is not None:
        variant.others[node.name] = found
    else:
        variant.hopeless[look] = answer
    return found is not None


def _allocation(variant: Variant, node: str) -> Callable[[], Sequence[ClaimCharge]]:
    def allocate() -> Sequence[ClaimCharge]:
        return (charges_of(variant.allocator, variant, node) or ()) if variant.allocator is not None else ()

    return allocate


def _uses(needs: PodNeeds, users: dict[str, tuple[str, ...]] | None = None) -> list[ClaimCharge]:
    """The claims that have their devices, stored or decided."""
    found: list[ClaimCharge] = []
    for need in needs.needs:
        allocation = need.claim.status.allocation or need.allocation
        if allocation is not None:
            key = EXTENDED_RESOURCES if need.special else need.claim.metadata.name
            found.append(ClaimCharge(need.claim, allocation, (users or {}).get(key, ())))
    return found
