"""Claims on a node as the scheduler would allocate them, without pods that are placed. Pure.

In:  the objects of a cluster, and the claims that are to be allocated together.
Out: per node the allocations, or what is in the way. Pods that have no node and ask for an extended resource of a class
     get the claim that the scheduler would make for them. What devices take of the node's cpu, memory and so on is
     counted together with what the pods of these claims request, and has to fit beside the pods that are there.

A node whose allocatable resources are not known has enough of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from drakit.allocator import Allocated, Allocation, Allocator, Inventory, NodeError
from drakit.api import DeviceClass, Node, ObjectMeta, Pod, ResourceClaim, ResourceSlice
from drakit.api.podclaims import claim_names
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.dynamicresources.extended import GATE as EXTENDED
from drakit.scheduler.dynamicresources.extended.backing import Backing
from drakit.scheduler.dynamicresources.extended.hints import asked_of
from drakit.scheduler.dynamicresources.extended.needs import Need
from drakit.scheduler.dynamicresources.extended.special import find_special
from drakit.scheduler.dynamicresources.nodeallocatable import GATE as NODE_ALLOCATABLE
from drakit.scheduler.dynamicresources.nodeallocatable.accounting import Accounting
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import CannotCount
from drakit.scheduler.dynamicresources.nodeallocatable.choices import other_choice
from drakit.scheduler.dynamicresources.nodeallocatable.fit import demand_of, refuse_over_budget, refuse_overfull
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import Statuses
from drakit.scheduler.dynamicresources.sentences import blamed_device
from drakit.scheduler.dynamicresources.state.needs import ClaimCharge, Variant
from drakit.scheduler.framework import NodeInfo, PluginStatus

_NOBODY = Pod(metadata=ObjectMeta())
"""Who has a claim that no pod of the cluster uses."""


class ClaimTrial:
    """On one state of the cluster, for any number of nodes."""

    def __init__(
        self,
        inventory: Inventory,
        objects: Iterable[Any],
        claims: Sequence[ResourceClaim],
        *,
        expired: Callable[[], bool] | None = None,
    ) -> None:
        self._inventory = inventory
        self._claims = tuple(claims)
        self._expired = expired
        self._nodes = SchedulerCache(count_claims=inventory.gates.enabled(NODE_ALLOCATABLE))
        self._accounting = Accounting(inventory, self._nodes, inventory.gates)
        self._backing = Backing()
        self._pods: list[Pod] = []
        stored: list[ResourceClaim] = []
        for each in objects:
            match each:
                case Node():
                    self._nodes.put_node(each)
                case DeviceClass():
                    self._backing.put(each)
                case ResourceSlice():
                    self._accounting.devices.put_slice(each)
                case ResourceClaim():
                    stored.append(each)
                case Pod():
                    self._put_pod(_identified(each))
        self._needs = list(self._extended(stored)) if inventory.gates.enabled(EXTENDED) else []
        self._specials: dict[int, tuple[ResourceClaim, ResourceClaim]] = {}
        self._variants: dict[tuple[int, ...], Variant] = {}

    def __bool__(self) -> bool:
        """Whether there is anything to allocate."""
        return bool(self._claims or self._needs)

    def claims_on(self, node: str) -> tuple[ResourceClaim, ...]:
        """What is to be allocated there: a node that has an extended resource itself gives it without a claim."""
        found = self._special_claims(self._info(node))
        return self._claims if isinstance(found, PluginStatus) else (*self._claims, *found)

    def allocate(self, node: str, *, new_uid: Callable[[], str] | None = None, explain: bool = False) -> Allocation:
        info = self._info(node)
        special = self._special_claims(info)
        if isinstance(special, PluginStatus):
            return NodeError(node, special.message)
        variant = self._variant((*self._claims, *special))
        if variant.allocator is None:
            return Allocated(node, tuple)
        outcome = variant.allocator.allocate(node, new_uid=new_uid, explain=explain)
        if not isinstance(outcome, Allocated) or not self._accounting.is_active or not info.allocatable:
            return outcome
        return self._fitting(info, variant, outcome, new_uid)

    # Extended resources

    def _put_pod(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._nodes.put_pod(pod)
        elif not pod.is_terminal:
            self._pods.append(pod)

    def _extended(self, stored: Sequence[ResourceClaim]) -> Iterator[tuple[Pod, Need]]:
        """The pods that ask for an extended resource of a class, unless they have their claim already."""
        for pod in self._pods:
            resources = asked_of(pod)
            backed = ((each, self._backing.class_of(each)) for each in resources)
            classes = {each: found.metadata.name for each, found in backed if found is not None}
            if classes and find_special(stored, pod) is None:
                yield pod, Need(pod, resources, classes, "", None)

    def _special_claims(self, info: NodeInfo) -> list[ResourceClaim] | PluginStatus:
        found: list[ResourceClaim] = []
        for pod, need in self._needs:
            refused, groups = need.split([info])
            if not groups:
                return PluginStatus.unresolvable(f"pod {pod.metadata.name}: {refused[info.name].message}")
            claim = groups[0].claim
            if claim is not None:
                found.append(self._named(claim, pod))
        return found

    def _named(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """Under a name that a claim can have; the same object for the same one."""
        known = self._specials.get(id(claim))
        if known is None:
            name = f"{pod.metadata.name}-extended-resources"
            named = replace(claim, metadata=replace(claim.metadata, name=name, generate_name=""))
            known = self._specials[id(claim)] = (claim, named)
        return known[1]

    def _variant(self, claims: tuple[ResourceClaim, ...]) -> Variant:
        key = tuple(map(id, claims))
        if key not in self._variants:
            allocator = Allocator(self._inventory, claims, expired=self._expired) if claims else None
            self._variants[key] = Variant(claims, range(len(claims)), allocator)
        return self._variants[key]

    # What devices take of the node

    def _fitting(
        self, info: NodeInfo, variant: Variant, first: Allocated, new_uid: Callable[[], str] | None
    ) -> Allocation:
        """The first choice if the node has enough for it, else another one that fits, else why not."""
        uses = [ClaimCharge(*each) for each in zip(variant.claims, first.allocations, strict=True)]
        try:
            refusal = self._refusal(info, uses)
            if refusal is None:
                return first
            allocator = other_choice(
                variant, info.name, fits=lambda uses: self._refusal(info, uses) is None, mapped=self._mapped
            )
        except CannotCount as error:
            return NodeError(info.name, str(error))
        if allocator is not None:
            return allocator.allocate(info.name, new_uid=new_uid)
        return NodeError(info.name, self._told(info, uses, refusal))

    def _refusal(self, info: NodeInfo, uses: Sequence[ClaimCharge]) -> PluginStatus | None:
        total: Counter[str] = Counter()
        for pod, statuses in self._shares(uses):
            refused = refuse_over_budget(pod, statuses)
            if refused is not None:
                return refused
            total.update(dict(demand_of(pod, statuses)))
        return refuse_overfull(info, tuple(total.items()))

    def _shares(self, uses: Sequence[ClaimCharge]) -> Iterator[tuple[Pod, Statuses]]:
        """Pods with what their claims take, if anything takes something. Claims that no pod uses take it by themselves.

        A claim of several pods counts with the first.
        """
        rest = {(use.claim.metadata.namespace, use.claim.metadata.name): use for use in uses}
        if not self._accounting.statuses(tuple(rest.values())):
            return
        specials = {id(pod): f"{pod.metadata.name}-extended-resources" for pod, _ in self._needs}
        for pod in self._pods:
            names = [*claim_names(pod).values(), *([specials[id(pod)]] if id(pod) in specials else ())]
            places = [(pod.metadata.namespace, name) for name in names]
            own = [rest.pop(place) for place in dict.fromkeys(places) if place in rest]
            if own:
                yield pod, self._accounting.statuses(own)
        for use in rest.values():
            yield _NOBODY, self._accounting.statuses([use])

    def _mapped(self, uses: Sequence[ClaimCharge]) -> Sequence[Any]:
        return self._accounting.attempt(_NOBODY, ()).mapped(uses)

    def _told(self, info: NodeInfo, uses: Sequence[ClaimCharge], refusal: PluginStatus) -> str:
        more = blamed_device(info.name, refusal, lambda resource: self._takers(uses, resource))
        return f"{refusal.message}: {more[0].lower()}{more[1:]}" if more else refusal.message

    def _takers(self, uses: Sequence[ClaimCharge], resource: str) -> Iterator[tuple[ClaimCharge, Any]]:
        charge = self._accounting.attempt(_NOBODY, ())
        return ((use, device) for use in uses for device in charge.mapped([use], resource))

    def _info(self, node: str) -> NodeInfo:
        return self._nodes.get(node) or NodeInfo(Node(metadata=ObjectMeta(name=node)))


def _identified(pod: Pod) -> Pod:
    """With a uid, which a pod of a file does not have: the claim of its extended resources names it."""
    metadata: ObjectMeta = pod.metadata
    if metadata.uid:
        return pod
    return replace(pod, metadata=replace(metadata, uid=f"uid-pods-{metadata.namespace}-{metadata.name}"))
