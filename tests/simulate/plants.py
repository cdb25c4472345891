"""Bugs that are planted in drakit while a test runs: each is one that somebody could write, or has written.

In:  a patcher.
Out: drakit with that bug. Nothing of this is in the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from drakit.allocator.inventory import ledger
from drakit.allocator.search import traits
from drakit.allocator.search.constraints import Constraint
from drakit.api.objects.claims import ResourceClaim
from drakit.api.objects.pods import Pod
from drakit.api.podclaims import pod_consumer
from drakit.apiserver.admission.plugins.device_ownership import DeviceOwnership
from drakit.apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from drakit.apiserver.admission.plugins.quota import ResourceQuotas
from drakit.apiserver.verbs import patch as patching
from drakit.apiserver.verbs import update
from drakit.apiserver.verbs.watch import ObjectStream
from drakit.controllers.claims import reservation
from drakit.controllers.claims.consumers import Consumers
from drakit.controllers.claims.release import ClaimReleaser
from drakit.controllers.garbage import NamespaceController
from drakit.informers import LeaderElector, Result
from drakit.informers.reflector import Reflector
from drakit.nodeagent.claims.preparation import ClaimPreparation
from drakit.nodeagent.claims.records import ClaimRecord
from drakit.nodeagent.pods import plan
from drakit.scheduler.dynamicresources.nodeallocatable import accounting
from drakit.scheduler.dynamicresources.points import binding, readiness
from drakit.scheduler.gangs import attempts
from drakit.scheduler.podgroups import groups
from drakit.simulate.disks import journal
from drakit.store import replay
from drakit.store.embedded import EmbeddedStore
from drakit.store.groupcommit import GroupCommit

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Plant:
    """A bug, a seed that finds it, and words of what the judge says."""

    name: str
    patch: Patch
    seed: int
    said: str


async def nothing(*_: Any, **__: Any) -> None:
    """What should have been done is not."""


async def done(*_: Any) -> Result:
    return Result.done()


def no_guard(patch: pytest.MonkeyPatch) -> None:
    """The server's own check of who owns a device would hide what schedulers do wrong."""
    patch.setattr(DeviceOwnership, "validate", nothing)


def ledger_forgets_stored(patch: pytest.MonkeyPatch) -> None:
    no_guard(patch)
    patch.setattr(ledger.Ledger, "put", lambda *_: ())


def everybody_leads(patch: pytest.MonkeyPatch) -> None:
    no_guard(patch)
    patch.setattr(LeaderElector, "_may_take", lambda *_: True)


def early_acknowledgement(patch: pytest.MonkeyPatch) -> None:
    """Writers are told before the disk has what they wrote."""

    def start(self: Any) -> None:
        self._scheduled = False
        self._current = batch = self._queue.popleft()
        events = self._number(batch.changes)
        self._append(events, lambda _: None)
        self._settle(batch, events, None)

    patch.setattr(GroupCommit, "_start", start)


def lost_batch(patch: pytest.MonkeyPatch) -> None:
    """After a crash the last rows of the journal are not read."""
    whole = replay.rebuild
    patch.setattr(journal, "rebuild", lambda rows, *rest: whole(iter(list(rows)[:-3]), *rest))


def never_released(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClaimReleaser, "reconcile", done)


def released_in_use(patch: pytest.MonkeyPatch) -> None:
    """Reservations of pods that live are dropped."""

    async def reconcile(self: Any, key: Any) -> Result:
        claim = self._claims.cache.get(key)
        if claim is not None and claim.status.reserved_for:
            await self._set_users(claim, ())
        return Result.done()

    patch.setattr(ClaimReleaser, "reconcile", reconcile)


def no_prepare(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ClaimPreparation, "prepare", nothing)


def double_start(patch: pytest.MonkeyPatch) -> None:
    """A container that runs is started again."""

    def should_start(pod: Pod, container: Any, view: Any) -> bool:
        del pod
        found = view.latest(container.name)
        return found is None or found.attempt == 0

    patch.setattr(plan, "_should_start", should_start)


def no_quota(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ResourceQuotas, "validate", nothing)


def counters_are_free(patch: pytest.MonkeyPatch) -> None:
    """Counters of a card are not charged for the parts that are held."""
    no_guard(patch)
    patch.setattr(ledger.PoolUse, "_left", lambda _, view: dict(view.counters))


def shares_are_free(patch: pytest.MonkeyPatch) -> None:
    """Shares of a device take nothing of its capacity."""
    no_guard(patch)
    patch.setattr(ledger, "_total", lambda _: {})


def no_constraints(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Constraint, "of", staticmethod(lambda *_, **__: None))


def no_taints(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(traits, "untolerated", lambda *_: None)


def no_binding_conditions(patch: pytest.MonkeyPatch) -> None:
    """Pods are bound before their devices are ready."""
    patch.setattr(binding, "_pending", lambda *_: None)


def torn_gangs(patch: pytest.MonkeyPatch) -> None:
    """A pod of a gang is bound as soon as there is room for it alone."""
    patch.setattr(groups, "least", lambda _: 1)
    patch.setattr(attempts, "least", lambda _: 1)


def watch_skips(patch: pytest.MonkeyPatch) -> None:
    """A watch that is resumed does not get the first event after the version that it names."""
    whole = EmbeddedStore.watch

    async def watch(self: Any, prefix: str, *, after: int, **options: Any) -> Any:
        following = [event.revision for event in self._state.since(prefix, after)]
        return await whole(self, prefix, after=following[0] if following else after, **options)

    patch.setattr(EmbeddedStore, "watch", watch)


def early_bookmark(patch: pytest.MonkeyPatch) -> None:
    """A bookmark names the version of the store, and not that of the last event that was sent."""
    whole = ObjectStream._bookmark
    patch.setattr(ObjectStream, "_bookmark", lambda self, revision, **more: whole(self, revision + 1, **more))


def no_comparison(patch: pytest.MonkeyPatch) -> None:
    """An update is stored whatever has been written since its author read the object."""
    no_guard(patch)
    for module in (patching, update):
        patch.setattr(module, "check_revision", lambda *_: False)


def released_stays_charged(patch: pytest.MonkeyPatch) -> None:
    """Devices and counters of a claim that was released stay charged."""
    whole = ledger.Ledger.put

    def put(self: ledger.Ledger, claim: ResourceClaim) -> Iterable[Any]:
        return whole(self, claim) if claim.status.allocation is not None else ()

    patch.setattr(ledger.Ledger, "put", put)
    patch.setattr(ledger.Ledger, "remove", lambda *_: ())


def prepare_during_unprepare(patch: pytest.MonkeyPatch) -> None:
    """A pod does not wait until its claim is unprepared for the one before it."""
    whole = ClaimPreparation._enter

    async def enter(self: ClaimPreparation, pod: Pod, admitted: Any) -> ClaimRecord:
        metadata = admitted.claim.metadata
        found = self.records.find(metadata.namespace, metadata.name)
        if found is not None and found.leaving is not None:
            found.pods[pod.metadata.uid] = None
            return found
        return await whole(self, pod, admitted)

    patch.setattr(ClaimPreparation, "_enter", enter)


def groups_last(patch: pytest.MonkeyPatch) -> None:
    """Claims of a group stay reserved when it is gone."""

    async def group(*_: Any) -> object:
        return object()

    patch.setattr(Consumers, "group", group)


def reserved_for_pods(patch: pytest.MonkeyPatch) -> None:
    """The claim of a group is reserved for the pod that comes first."""
    for module in (reservation, readiness):
        patch.setattr(module, "consumer_of", lambda pod, *_: pod_consumer(pod))


def early_namespace(patch: pytest.MonkeyPatch) -> None:
    """A namespace goes before it is empty."""
    patch.setattr(NamespaceController, "_empty", nothing)


def open_namespace(patch: pytest.MonkeyPatch) -> None:
    """Things are made in a namespace that is being deleted."""
    patch.setattr(NamespaceLifecycle, "admit", nothing)


def early_finalizer(patch: pytest.MonkeyPatch) -> None:
    """A claim that is deleted loses its finalizer while pods still use it."""
    whole = ClaimReleaser.reconcile

    async def reconcile(self: Any, key: Any) -> Result:
        claim = self._claims.cache.get(key)
        if claim is not None and claim.metadata.deletion_timestamp is not None:
            await self._unprotect(claim)
            return Result.done()
        return await whole(self, key)

    patch.setattr(ClaimReleaser, "reconcile", reconcile)


def quota_race(patch: pytest.MonkeyPatch) -> None:
    """Admission compares with the quota's usage, and leaves it to the controller to count what it let in."""
    patch.setattr(ResourceQuotas, "_add", nothing)


def overcommitted_nodes(patch: pytest.MonkeyPatch) -> None:
    """What devices take of a node's processors is not counted."""
    patch.setattr(accounting, "refuse_overfull", lambda *_: None)


def stale_cache(patch: pytest.MonkeyPatch) -> None:
    """A cache whose watch has expired keeps what it has, and goes on from the newest version."""

    whole = Reflector._follow

    async def follow(self: Any) -> None:
        if not self.version and getattr(self, "began", False):
            scope = self._scope
            self.version = await self._client.current_version(
                self.resource, namespace=scope.namespace, labels=scope.labels, fields=scope.fields
            )
        self.began = True
        await whole(self)

    patch.setattr(Reflector, "_follow", follow)


PLANTS = (
    Plant("the ledger forgets stored claims", ledger_forgets_stored, 1, "is held by"),
    Plant("everybody leads", everybody_leads, 70, "is held by"),
    Plant("claims are used without being prepared", no_prepare, 1, "does not run"),
    Plant("a container that runs is started again", double_start, 1, "is started while it runs"),
    Plant("reservations of living pods are dropped", released_in_use, 2, "allocated and reserved for it"),
    Plant("claims of ended pods are never released", never_released, 2, "reserved for a pod that has ended"),
    Plant("the last rows of the journal are not read", lost_batch, 3, "was acknowledged; the disk has"),
    Plant("writes are acknowledged before they are flushed", early_acknowledgement, 3, "server died of Unsound"),
    Plant("the quota is not looked at", no_quota, 5, "and the quota is"),
    Plant("what admission lets in is counted later", quota_race, 5, "and the quota is"),
    Plant("taints are ignored", no_taints, 1, "which is tainted"),
    Plant("constraints are ignored", no_constraints, 1, "is pending and fits"),
    Plant("binding conditions are not waited for", no_binding_conditions, 13, "is not ready"),
    Plant("an expired cache is kept", stale_cache, 56, "after 900 quiet seconds"),
    Plant("counters are not charged", counters_are_free, 2, "of counter"),
    Plant("shares take nothing of a capacity", shares_are_free, 135, "of the capacity of"),
    Plant("a finalizer is removed too early", early_finalizer, 40, "changed while it was reserved"),
    Plant("a resumed watch skips an event", watch_skips, 1, "missed"),
    Plant("a bookmark comes too early", early_bookmark, 19, "is told of"),
    Plant("a gang is bound in part", torn_gangs, 14, "of gang"),
    Plant("devices take nothing of their node", overcommitted_nodes, 16, "processors of"),
    Plant("an update does not compare versions", no_comparison, 3, "somebody has overwritten it"),
    Plant("what is released stays charged", released_stays_charged, 2, "is pending and fits"),
    Plant("a claim is prepared while it is unprepared", prepare_during_unprepare, 781, "is not prepared for"),
    Plant("claims of a group stay when it is gone", groups_last, 2412, "a group that is gone"),
    Plant("the claim of a group is reserved for a pod", reserved_for_pods, 7, "is its group's"),
    Plant("a namespace goes before it is empty", early_namespace, 7, "is gone, and"),
    Plant("things are made in a namespace that ends", open_namespace, 12, "which is"),
)
