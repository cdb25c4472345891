"""What a pod needs in one attempt: its claims, and for which nodes they have to be allocated how.

`PodNeeds` is the state of the plugin: made by `pre_filter`, used up to the end of binding, seen by nobody else.

A *variant* is a set of claims to allocate, together with the allocator that knows where that is possible. A pod has one
for all nodes, unless it asks for extended resources: these are provided by device plugins on some nodes and by claims
on others, and the claim differs from group to group of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from drakit.allocator import Allocator
from drakit.api.objects.claims import (
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from drakit.base.nodeselectors import IN, NAME_FIELD, NodeSelector, matches
from drakit.scheduler.dynamicresources.state.budgets import AttemptBudget
from drakit.scheduler.dynamicresources.state.claims import InFlightAllocation
from drakit.scheduler.framework import NodeInfo, PluginStatus


class ClaimNeed:
    """One claim of the pod.

    `claim` is replaced by what the server answers with. `allocation` is what is to be stored, once a node is chosen; or
    from the beginning when another member of the pod's group has it in flight. `special` is the claim that the
    scheduler makes for extended resources.
    """

    __slots__ = ("allocation", "claim", "consumer", "flight", "special")

    def __init__(
        self, claim: ResourceClaim, consumer: ResourceClaimConsumerReference, *, special: bool = False
    ) -> None:
        self.claim = claim
        self.consumer = consumer
        self.special = special
        self.allocation: AllocationResult | None = None
        self.flight: InFlightAllocation | None = None
        """Set from Reserve until the allocation is stored or given up; the ledger counts it meanwhile."""

    @property
    def is_allocated(self) -> bool:
        return self.claim.status.allocation is not None


class Variant:
    """Claims to allocate on some nodes; `positions` are theirs among the pod's needs. `detail` is its maker's own.

    Nothing to allocate: no allocator. No `budget`: the search may take as long as it takes. `others` are the
    allocators of nodes where other devices are taken than those that come first. `hopeless` are looks of nodes where no
    devices fit, each with the answer that it names by id.
    """

    __slots__ = ("allocator", "budget", "claims", "detail", "hopeless", "others", "positions")

    def __init__(
        self,
        claims: Sequence[ResourceClaim] = (),
        positions: Sequence[int] = (),
        allocator: Allocator | None = None,
        *,
        budget: AttemptBudget | None = None,
        detail: Any = None,
    ) -> None:
        self.budget = budget
        self.claims = tuple(claims)
        self.positions = tuple(positions)
        self.allocator = allocator
        self.detail = detail
        self.others: dict[str, Allocator] = {}
        self.hopeless: dict[Hashable, object] = {}


class ExtendedNeeds(Protocol):
    """What a pod asks of devices by the names of extended resources, in one attempt (`extended.attempts`)."""

    @property
    def containers(self) -> tuple[str, ...]: ...

    def groups(
        self, state: PodNeeds, nodes: Sequence[NodeInfo], refused: dict[str, PluginStatus]
    ) -> list[tuple[Variant, Sequence[NodeInfo]]]: ...

    def rank_nodes(self, state: PodNeeds, nodes: Sequence[NodeInfo]) -> list[int]: ...

    def choose(self, state: PodNeeds, node: NodeInfo) -> Variant | PluginStatus: ...

    async def bind(self, need: ClaimNeed) -> None: ...

    async def settle(self, state: PodNeeds) -> None: ...

    async def undo(self, state: PodNeeds) -> None: ...

    async def make_way(self, state: PodNeeds) -> PluginStatus | None: ...


class ClaimCharge(msgspec.Struct, frozen=True):
    """A claim of a pod with its devices, and the containers that use it."""

    claim: ResourceClaim
    allocation: AllocationResult
    containers: tuple[str, ...] = ()


class NodeCharges(Protocol):
    """What the claims of a pod take of nodes themselves (`nodeallocatable.accounting`)."""

    def check(
        self, node: NodeInfo, answer: object, allocate: Callable[[], Sequence[ClaimCharge]]
    ) -> PluginStatus | None: ...

    def kind_of(self, node: NodeInfo) -> int: ...

    def mapped(self, uses: Sequence[ClaimCharge], resource: str = "") -> Sequence[DeviceRequestAllocationResult]: ...


class PodNeeds:
    """`unavailable` are positions of allocated claims that kept the pod from a node which would do otherwise.

    `broken` are positions of allocated claims that no node can use as they are, each with why.
    """

    __slots__ = ("broken", "charge", "extended", "is_charged", "needs", "reserved", "unavailable", "variant")

    def __init__(self, needs: Sequence[ClaimNeed] = ()) -> None:
        self.needs = list(needs)
        self.variant = Variant()
        self.broken: Mapping[int, PluginStatus] = {}
        self.unavailable: set[int] = set()
        self.reserved: Variant | None = None
        """What Reserve took; Unreserve gives it back."""
        self.extended: ExtendedNeeds | None = None
        """What the pod asks of devices by the names of extended resources."""
        self.charge: NodeCharges | None = None
        """What the claims take of nodes themselves; none where no device does."""
        self.is_charged = False
        """Whether the pod's status may tell of that."""

    def __bool__(self) -> bool:
        return bool(self.needs) or self.extended is not None


class UsableNodes:
    """The nodes on which an allocated claim can be used."""

    __slots__ = ("_name", "_selector")

    def __init__(self, selector: NodeSelector) -> None:
        self._selector = selector
        self._name = _only_name(selector)

    def includes(self, node: NodeInfo) -> bool:
        if self._name is not None:
            return node.name == self._name
        return matches(self._selector, name=node.name, labels=node.node.metadata.labels)


def _only_name(selector: NodeSelector) -> str | None:
    """The name, when the selector says no more than that: what most allocations say."""
    if len(selector.node_selector_terms) != 1:
        return None
    term = selector.node_selector_terms[0]
    if term.match_expressions or len(term.match_fields) != 1:
        return None
    field = term.match_fields[0]
    return field.values[0] if (field.key, field.operator, len(field.values)) == (NAME_FIELD, IN, 1) else None
