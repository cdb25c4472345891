"""The scheduler without a server: what it would say of a pod, and what it would do.

In:  the objects of a cluster.
Out: per pod the nodes that fit and why others do not, by the plugins of the real scheduler; pods placed in memory, with
     the claims that the scheduler would have written.

Nothing is read from anywhere or written to anyone. Time stands still unless a clock is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from drakit.allocator import Inventory
from drakit.api.exchange import Request, Response
from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod, PodExtendedResourceClaimStatus
from drakit.api.requests import is_reserved_for
from drakit.base.clock import Clock, FakeClock
from drakit.base.errors import Unavailable
from drakit.base.gates import FeatureGates
from drakit.base.structs import Model
from drakit.base.wellknown import CLAIM_FINALIZER
from drakit.client import (
    CLAIMS,
    CLASSES,
    NODES,
    POD_GROUPS,
    PODS,
    SLICES,
    TAINT_RULES,
    Client,
    Key,
    Resource,
    key_of,
    metadata_of,
)
from drakit.client.resources import resource_of_model
from drakit.informers import Informers
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.cache.nominations import Nominations
from drakit.scheduler.config import SchedulerConfiguration, default_configuration
from drakit.scheduler.cycles.cycle import Placement, SchedulingCycle
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal
from drakit.scheduler.cycles.nodesearch import NodeSearch
from drakit.scheduler.dynamicresources import DynamicResources
from drakit.scheduler.dynamicresources.extended.special import is_in_memory
from drakit.scheduler.dynamicresources.points.reservation import release
from drakit.scheduler.dynamicresources.state.context import NAME, PluginContext
from drakit.scheduler.dynamicresources.state.needs import ClaimNeed, PodNeeds
from drakit.scheduler.framework import CycleState, Handle, PluginStatus, Profile
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.metrics.timing import Laps
from drakit.scheduler.plugins import MAKERS, Profiles
from drakit.scheduler.queue.gate import PreEnqueueGate

FOLLOWED: tuple[Resource[Any], ...] = (NODES, SLICES, CLASSES, TAINT_RULES, POD_GROUPS, CLAIMS, PODS)
"""The kinds that the scheduler follows, in the order in which `put` adds them: pods last, after what they refer to."""
_ALL_NODES = 100
M = TypeVar("M", bound=Model)


class _NoServer:
    """A transport without a server: every request fails."""

    in_process = True
    page_size = 0

    async def handle(self, request: Request) -> Response:
        raise Unavailable(f"a rehearsal has no server to ask for {request.path}")

    async def close(self) -> None:
        return


class RehearsedPod(msgspec.Struct, frozen=True):
    """What the scheduler says of a pod. `asked` has the claims to allocate, per group of nodes that need the same ones.

    If `refusal` is None, the pod fits on every node of `fitting`. If `is_gated`, no node was tried.
    """

    pod: Pod
    fitting: tuple[str, ...] = ()
    rejections: Mapping[str, PluginStatus] = {}
    refusal: SchedulingRefusal | None = None
    is_gated: bool = False
    asked: tuple[tuple[tuple[ResourceClaim, ...], tuple[str, ...]], ...] = ()


class Rehearsal:
    """A scheduler on a cluster in memory. `put`, `remove` and (for a while) `supposing` change it; `place` binds."""

    def __init__(
        self,
        objects: Iterable[Any] = (),
        *,
        gates: FeatureGates | None = None,
        config: SchedulerConfiguration | None = None,
        clock: Clock | None = None,
        seed: int = 0,
    ) -> None:
        gates = gates or FeatureGates.defaults()
        self._clock = clock = clock or FakeClock()
        self._random, self._versions, self._uids = Random(seed), count(1), count(1)
        client = Client(_NoServer(), clock=clock)
        self._informers = Informers(client, clock=clock, random=self._random)
        self.nodes = SchedulerCache(count_claims=gates.enabled("DRANodeAllocatableResources"))
        registry = CollectorRegistry()
        self._metrics = SchedulerMetrics(registry)
        handle = Handle(
            client, self._informers, self.nodes, clock=clock, gates=gates, registry=registry, random=self._random,
            new_uid=self._new_uid,
        )  # fmt: skip
        config = config or default_configuration(gates)
        self._profiles = Profiles(config, handle, MAKERS, self._metrics)
        self._first = config.profiles[0].scheduler_name
        self._gate = PreEnqueueGate(self._profiles.pre_enqueue)
        self._nominations = Nominations(self.nodes)
        self._cycle = SchedulingCycle(
            self.nodes, self._nominations, clock=clock, metrics=self._metrics, random=self._random
        )
        self._informers.of(NODES).subscribe(self._node_seen)
        self._informers.of(PODS).subscribe(self._pod_seen)
        self.put(objects)

    # The cluster

    def put(self, objects: Iterable[Any]) -> None:
        """Add objects, or replace those of the same name. Kinds that the scheduler does not follow are ignored."""
        by_kind: dict[Resource[Any], list[Any]] = {kind: [] for kind in FOLLOWED}
        for each in objects:
            view = each.view if isinstance(each, Partial) else each
            found = by_kind.get(resource_of_model(view))
            if found is not None:
                found.append(each)
        for kind, found in by_kind.items():
            for each in found:
                self._informers.of(kind).put(self._known(kind, each))

    def remove(self, objects: Iterable[Any]) -> None:
        """Remove objects. Those that are not there are ignored."""
        for each in objects:
            informer = self._informers.of(resource_of_model(each.view if isinstance(each, Partial) else each))
            known = informer.cache.get(key_of(each))
            if known is not None:
                informer.remove(known)

    @contextmanager
    def supposing(self, put: Iterable[Any] = (), remove: Iterable[Any] = ()) -> Iterator[None]:
        """The cluster with changes, as long as the context is open."""
        put, remove = list(put), list(remove)
        changed = {self._place_of(each): each for each in (*remove, *put)}
        before = {place: self._informers.of(place[0]).cache.get(place[1]) for place in changed}
        self.remove(remove)
        self.put(put)
        try:
            yield
        finally:
            self.remove(each for place, each in changed.items() if before[place] is None)
            self.put(each for each in before.values() if each is not None)

    def evict(self, pod: Pod) -> None:
        """Remove a pod, and release its claims as the claim controller does."""
        self.remove([pod])
        for claim in list(self._informers.of(CLAIMS).cache.all(pod.metadata.namespace)):
            freed = given_back(claim, pod.metadata.uid)
            if freed is None:
                self.remove([claim])
            elif freed is not claim:
                self.put([freed])

    def pod(self, namespace: str, name: str) -> Pod | None:
        found = self._informers.of(PODS).cache.get(Key(namespace, name))
        return found.view if found is not None else None

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self._informers.of(CLAIMS).cache.get(Key(namespace, name))

    def all(self, kind: type[M]) -> list[M]:
        """The objects of a kind, as views where the kind is modelled in part."""
        found = self._informers.of(resource_of_model(kind)).cache
        return [each.view if isinstance(each, Partial) else each for each in found]

    @property
    def objects(self) -> Iterator[Any]:
        """All there is, whole."""
        for kind in FOLLOWED:
            yield from self._informers.of(kind).cache

    @property
    def inventory(self) -> Inventory:
        return self._context().inventory

    # What the scheduler says and does

    def check(self, pod: Pod) -> RehearsedPod:
        """Whether the pod fits, on which nodes, and why not on the others. Nothing is allocated."""
        gate = self._gate.check(self._ours(pod))
        if not gate.ok:
            refusal = SchedulingRefusal(status=gate, message=gate.message, plugins=frozenset({gate.plugin}))
            return RehearsedPod(pod, refusal=refusal, is_gated=True)
        profile, state = self._profile(pod), CycleState(pod)
        found = NodeSearch(self.nodes, self._nominations).find(profile, state, pod, self._laps(profile))
        asked = tuple(self._asked(state))
        if isinstance(found, SchedulingRefusal):
            return RehearsedPod(pod, (), found.rejections, found, asked=asked)
        return RehearsedPod(pod, tuple(node.name for node in found.nodes), asked=asked)

    def place(self, pod: Pod) -> Placement | SchedulingRefusal:
        """Try the pod; where it fits it is bound, and its claims have their devices."""
        gate = self._gate.check(self._ours(pod))
        if not gate.ok:
            return SchedulingRefusal(status=gate, message=gate.message, plugins=frozenset({gate.plugin}))
        state = CycleState(pod)
        outcome = self._cycle.run(self._profile(pod), state)
        needs: PodNeeds = state.get(NAME) or PodNeeds()
        if isinstance(outcome, SchedulingRefusal):
            # A refusal with a node: something may be reserved there for the pod, and has to be free again.
            if outcome.node:
                release(self._context(), needs, pod)
                self.nodes.forget(pod.metadata.uid)
            return outcome
        self._bind(state, needs)
        return outcome

    def _bind(self, state: CycleState, needs: PodNeeds) -> None:
        """Put what PreBind and Bind would write directly into the informers."""
        bound = state.assumed
        for need in needs.needs:
            claim = self._stored(need, bound)
            if need.special:
                told = PodExtendedResourceClaimStatus(resource_claim_name=claim.metadata.name)
                bound = replace(bound, status=replace(bound.status, extended_resource_claim_status=told))
            self.put([claim])
        known = self._informers.of(PODS).cache.get(Key(bound.metadata.namespace, bound.metadata.name))
        self.put([Partial(known.document if known is not None else {}, bound)])

    def _stored(self, need: ClaimNeed, pod: Pod) -> ResourceClaim:
        claim, flight = need.claim, need.flight
        if is_in_memory(claim):
            name = f"{pod.metadata.name}-extended-resources"
            claim = replace(claim, metadata=replace(claim.metadata, name=name, uid=self._new_uid()))
            if flight is not None:
                self._context().claims.rename(flight, claim)
        status = replace(claim.status, allocation=claim.status.allocation or need.allocation)
        if not is_reserved_for(claim, need.consumer.uid):
            status = replace(status, reserved_for=(*status.reserved_for, need.consumer))
        finalizers = tuple(dict.fromkeys((*claim.metadata.finalizers, CLAIM_FINALIZER)))
        return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers), status=status)

    def _asked(self, state: CycleState) -> Iterator[tuple[tuple[ResourceClaim, ...], tuple[str, ...]]]:
        needs: PodNeeds = state.get(NAME) or PodNeeds()
        nodes = self.nodes.all()
        groups = needs.extended.groups(needs, nodes, {}) if needs.extended else [(needs.variant, nodes)]
        for variant, alike in groups:
            if variant.claims:
                yield variant.claims, tuple(node.name for node in alike)

    # Inside

    def _profile(self, pod: Pod) -> Profile:
        """The profile of the pod's scheduler; the first one for a pod of another scheduler. It tries every node."""
        found = self._profiles.get(pod.spec.scheduler_name) or self._profiles.get(self._first)
        if found is None:
            raise AssertionError("a configuration has at least one profile")
        return replace(found, percentage=_ALL_NODES)

    def _ours(self, pod: Pod) -> Pod:
        if pod.spec.scheduler_name in self._profiles.names:
            return pod
        return replace(pod, spec=replace(pod.spec, scheduler_name=self._first))

    def _context(self) -> PluginContext:
        plugins = (self._profiles.get(name) for name in sorted(self._profiles.names))
        found = (each for profile in plugins if profile for each in profile.plugins)
        return next(each.context for each in found if isinstance(each, DynamicResources))

    def _known(self, kind: Resource[Any], each: Any) -> Any:
        """As a server would show it: with a uid and a version, which objects of files do not have."""
        metadata = metadata_of(each)
        uid = metadata.uid or f"uid-{kind.kind.plural}-{metadata.namespace}-{metadata.name}"
        metadata = replace(metadata, uid=uid, resource_version=str(next(self._versions)))
        if isinstance(each, Partial):
            return Partial(each.document, replace(each.view, metadata=metadata))
        known = replace(each, metadata=metadata)
        # Informers have documents of pods and nodes; nobody reads them here.
        return Partial({}, known) if kind in (PODS, NODES) else known

    def _place_of(self, each: Any) -> tuple[Resource[Any], Key]:
        return resource_of_model(each.view if isinstance(each, Partial) else each), key_of(each)

    def _laps(self, profile: Profile) -> Laps:
        return Laps(self._clock, self._metrics, profile.name)

    def _new_uid(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._uids):012x}"

    def _node_seen(self, old: Any, new: Any) -> None:
        if new is None:
            self.nodes.remove_node(old.view.metadata.name)
        else:
            self.nodes.put_node(new.view)

    def _pod_seen(self, old: Any, new: Any) -> None:
        if new is None or not new.view.spec.node_name:
            self.nodes.remove_pod((old or new).view.metadata.uid)
        else:
            self.nodes.put_pod(new.view)


def given_back(claim: ResourceClaim, pod: str) -> ResourceClaim | None:
    """The claim after the pod with that uid is gone: None if the pod owns it, unchanged if the pod does not use it."""
    owner = claim.metadata.controller
    if owner is not None and owner.uid == pod:
        return None
    if not is_reserved_for(claim, pod):
        return claim
    kept = tuple(each for each in claim.status.reserved_for if each.uid != pod)
    if kept:
        return replace(claim, status=replace(claim.status, reserved_for=kept))
    return replace(claim, status=replace(claim.status, reserved_for=(), allocation=None, devices=()))
