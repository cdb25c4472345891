"""What `import drakit` offers: each is one or two lines for the caller. See `docs/library.md`.

In:  paths, manifests, the text of a selector.
Out: what the commands of the same names work with, as typed objects instead of tables.

Rooms have more (`drakit.allocator.Inventory` for many questions on one cluster, `drakit.client` for any API server).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from drakit.allocator import Allocated, Allocation, AllocationError, Inventory, tell
from drakit.api import DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice
from drakit.base.clock import RealClock
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.explain import ClusterObjects, ObjectExplanation, WhatIf, WhatIfAnswer
from drakit.explain import explain_pod as explain_in
from drakit.explain import what_if as ask
from drakit.lint import Report, lint, problems_of
from drakit.manifests import ManifestProblem, Manifests, read_files, read_manifests
from drakit.scheduler.trials import ClaimTrial
from drakit.selectors import Selector, SelectorOutcome, bind
from drakit.selectors import compile_selector as compile_with_gates

__all__ = [
    "AllocationReport",
    "allocate",
    "compile_selector",
    "explain_pod",
    "lint_manifests",
    "read_manifests",
    "try_selector",
    "validate_manifests",
    "what_if",
]


def validate_manifests(manifests: Manifests, *, gates: FeatureGates | None = None) -> list[ManifestProblem]:
    """What an API server would refuse, each with its file and line; nothing when all is well."""
    return problems_of(manifests, gates or FeatureGates.all_on())


def lint_manifests(*paths: str | Path, gates: FeatureGates | None = None) -> Report:
    """What a server would refuse, and what it would not notice: a selector that matches nothing, an impossible count.

    Raise UsageError for a path that cannot be read.
    """
    files = read_files(paths)
    if files.problems:
        raise UsageError("; ".join(map(str, files.problems)))
    return lint(files.contents, gates=gates or FeatureGates.all_on(), now=RealClock().now())


@dataclass(frozen=True, slots=True)
class AllocationReport:
    """What became of an attempt: the claims, and the outcome on each node in the order in which they were tried."""

    claims: tuple[ResourceClaim, ...]
    tried: tuple[Allocation, ...]

    @property
    def allocated(self) -> Allocated | None:
        """The node that has all devices, with an allocation per claim; none where no node has."""
        last = self.tried[-1] if self.tried else None
        return last if isinstance(last, Allocated) else None

    @property
    def devices(self) -> list[tuple[str, str, str]]:
        """Claim, request and device (`driver/pool/device`), in the order of the claims."""
        if self.allocated is None:
            return []
        return [
            (claim.metadata.name, each.request, f"{each.driver}/{each.pool}/{each.device}")
            for claim, allocation in zip(self.claims, self.allocated.allocations, strict=True)
            for each in allocation.devices.results
        ]

    @property
    def reasons(self) -> dict[str, list[str]]:
        """Per node that did not fit, why not, line by line."""
        return {each.node: _reasons(each) for each in self.tried if not isinstance(each, Allocated)}


def _reasons(failed: Allocation) -> list[str]:
    reasons = getattr(failed, "reasons", None)
    return list(tell(reasons)) if reasons else [getattr(failed, "message", "the time given was too short")]


def allocate(
    manifests: Manifests,
    *,
    node: str = "",
    gates: FeatureGates | None = None,
    new_uid: Callable[[], str] | None = None,
) -> AllocationReport:
    """Allocate all claims that have no allocation together, as those of one pod, on the first node that has all.

    Pods without a node that ask for an extended resource of a class get a claim for it. `node` is the only one to try.
    `new_uid` names shares of devices.
    """
    inventory = inventory_of(manifests, gates or FeatureGates.all_on())
    trial = trial_of(manifests, inventory)
    nodes = [node] if node else candidate_nodes(inventory, manifests)
    tried = try_nodes(trial, nodes, new_uid=new_uid, explain=True)
    return AllocationReport(trial.claims_on(tried[-1].node) if tried else (), tuple(tried))


def unallocated(manifests: Manifests) -> list[ResourceClaim]:
    return [claim for claim in manifests.of(ResourceClaim) if claim.status.allocation is None]


def trial_of(manifests: Manifests, inventory: Inventory, *, expired: Callable[[], bool] | None = None) -> ClaimTrial:
    """All claims without an allocation, and those that the scheduler would make for pods, to be allocated together."""
    objects = (each.view for each in manifests.objects)
    return ClaimTrial(inventory, objects, unallocated(manifests), expired=expired)


def inventory_of(manifests: Manifests, gates: FeatureGates) -> Inventory:
    """What there is, and what of it is in use."""
    inventory = Inventory(gates)
    for each in manifests.objects:
        if isinstance(each.view, Node | DeviceClass | DeviceTaintRule | ResourceSlice | ResourceClaim):
            inventory.put(each.view)
    return inventory


def candidate_nodes(inventory: Inventory, manifests: Manifests) -> list[str]:
    """The nodes to try, by name: those that are given, or else those that slices name."""
    named = {each.spec.node_name for each in manifests.of(ResourceSlice) if each.spec.node_name}
    return sorted(inventory.nodes or named)


def try_nodes(
    trial: ClaimTrial,
    nodes: Iterable[str],
    *,
    new_uid: Callable[[], str] | None = None,
    explain: bool = False,
) -> list[Allocation]:
    """Node after node until one fits, or until an error says that no node can."""
    tried: list[Allocation] = []
    for name in nodes:
        tried.append(trial.allocate(name, new_uid=new_uid or (lambda: str(uuid4())), explain=explain))
        if isinstance(tried[-1], Allocated | AllocationError):
            break
    return tried


def compile_selector(text: str, *, gates: FeatureGates | None = None) -> Selector:
    """Compile a device selector. Raise SelectorInvalid with every fault of the text."""
    gates = gates or FeatureGates.all_on()
    return compile_with_gates(
        text,
        list_attributes=gates.enabled("DRAListTypeAttributes"),
        consumable_capacity=gates.enabled("DRAConsumableCapacity"),
    )


def try_selector(selector: Selector | str, manifests: Manifests) -> dict[str, SelectorOutcome]:
    """Per device of the slices (`driver/pool/device`): whether the selector matches, or its error."""
    compiled = compile_selector(selector) if isinstance(selector, str) else selector
    return {
        f"{slice_.spec.driver}/{slice_.spec.pool.name}/{device.name}": compiled.evaluate(
            bind(slice_.spec.driver, device)
        )
        for slice_ in manifests.of(ResourceSlice)
        for device in slice_.spec.devices
    }


def explain_pod(manifests: Manifests, name: str, namespace: str = "default") -> ObjectExplanation:
    """Why a pod waits and what would make it fit, or where it runs with which devices. Raise NotFound."""
    return explain_in(_cluster(manifests), name, namespace)


def what_if(manifests: Manifests, question: WhatIf | Mapping[str, Any]) -> WhatIfAnswer:
    """What the scheduler would make of the cluster with changes. The question may be plain data, as JSON has it:

    `{"addNodes": {"node-a": 2}, "drain": ["node-b"]}`; `msgspec.to_builtins` makes plain data of the answer. Raise
    UsageError for a question that cannot be read, or names what is not there.
    """
    try:
        asked = question if isinstance(question, WhatIf) else msgspec.convert(question, WhatIf)
    except msgspec.ValidationError as error:
        raise UsageError(f"the question: {error}") from None
    return ask(_cluster(manifests), asked)


def _cluster(manifests: Manifests) -> ClusterObjects:
    from drakit.drivers import PROFILE_TEMPLATES

    objects = (each.object for each in manifests.objects)
    return ClusterObjects(objects, gates=FeatureGates.all_on(), templates=PROFILE_TEMPLATES)
