"""The controller of claims: which changes concern which pods, groups and claims, and what is done about each.

In:  pods, groups, templates, claims and nodes, as they change.
Out: claims made from templates, reserved for pods that have a node, and released when nobody uses them.
"""

from __future__ import annotations

import logging
import re
from typing import Any, NamedTuple

from drakit.api import Node, Pod, PodGroup, ResourceClaim, ResourceClaimTemplate, claim_names
from drakit.api.objects.partial import Partial
from drakit.base.errors import Conflict, DrakitError
from drakit.client import CLAIMS, NODES, POD_GROUPS, PODS, TEMPLATES, Key, key_of
from drakit.client.events import WARNING
from drakit.controllers.claims.consumers import Consumers, by_claim, by_consumer, by_group, by_template, is_done
from drakit.controllers.claims.generation import ClaimGenerator, Missing
from drakit.controllers.claims.metrics import ClaimControllerMetrics
from drakit.controllers.claims.release import ClaimReleaser
from drakit.controllers.claims.reservation import ClaimReserver
from drakit.controllers.context import ControllerContext
from drakit.informers import Informer, Result, by_controller, by_node

log = logging.getLogger("drakit.controllers")

NAME = "resource_claim"
ACCOUNT = "resource-claim-controller"
FAILED = "FailedResourceClaimCreation"
POD, GROUP, CLAIM = "pod", "podgroup", "claim"


def _without_suffix(owner: str, message: str) -> str:
    """A message without the random end of a claim's name."""
    name = rf"({re.escape(owner)}-[a-z0-9.-]*?-)[bcdfghjklmnpqrstvwxz2456789]{{5}}(?![a-z0-9.-])"
    return re.sub(name, r"\1", message)


class ClaimWorkItem(NamedTuple):
    """A key of the one queue for pods, groups and claims: they depend on each other."""

    sort: str
    key: Key

    def __str__(self) -> str:
        return f"{self.sort}:{self.key}"


class ClaimController:
    def __init__(self, context: ControllerContext, *, workers: int = 4) -> None:
        client, informers = context.client_of(ACCOUNT), context.informers
        grouped = context.gates.enabled("DRAWorkloadResourceClaims")
        self._pods: Informer[Partial[Pod]] = informers.of(PODS)
        self._groups: Informer[PodGroup] | None = informers.of(POD_GROUPS) if grouped else None
        self._claims: Informer[ResourceClaim] = informers.of(CLAIMS)
        self._templates: Informer[ResourceClaimTemplate] = informers.of(TEMPLATES)
        self._nodes: Informer[Partial[Node]] = informers.of(NODES)
        metrics = ClaimControllerMetrics(context.registry, self._claims.cache)
        self._consumers = consumers = Consumers(client, self._pods, self._groups)
        self._generator = ClaimGenerator(client, self._claims, self._templates, self._groups, metrics)
        self._reserver = ClaimReserver(client, self._claims, self._nodes)
        self._releaser = ClaimReleaser(client, context.clock, self._claims, consumers)
        self._recorder = context.recorder(client, NAME)
        self.loop = context.loop(NAME, self.reconcile, workers=workers)
        self.loops = (self.loop,)
        self._add_indexes()
        self._subscribe()

    async def reconcile(self, item: ClaimWorkItem) -> Result:
        if item.sort == CLAIM:
            return await self._releaser.reconcile(item.key)
        if item.sort == GROUP:
            return await self._reconcile_group(item.key)
        return await self._reconcile_pod(item.key)

    async def _reconcile_pod(self, key: Key) -> Result:
        found = self._pods.cache.get(key)
        if found is None or found.view.metadata.deletion_timestamp is not None or is_done(found.view):
            return Result.done()
        pod = found.view
        names: dict[str, str | None] = {}
        failure: DrakitError | None = None
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_template_name is None:
                continue
            try:
                names[entry.name] = await self._generator.claim_for_pod(pod, entry)
            except DrakitError as error:
                failure = await self._failed("Pod", "v1", found, f"PodResourceClaim {entry.name}", error)
        await self._generator.record(found, pod, names)
        if pod.spec.node_name and failure is None:
            await self._reserver.reserve(pod, self._generator.group_of(pod))
        return self._after(failure)

    async def _reconcile_group(self, key: Key) -> Result:
        group = self._groups.cache.get(key) if self._groups is not None else None
        if group is None or group.metadata.deletion_timestamp is not None:
            return Result.done()
        names: dict[str, str | None] = {}
        failure: DrakitError | None = None
        for entry in group.spec.resource_claims:
            if entry.resource_claim_template_name is None:
                continue
            try:
                names[entry.name] = await self._generator.claim_for_group(group, entry)
            except DrakitError as error:
                what = f"PodGroupResourceClaim {entry.name}"
                failure = await self._failed("PodGroup", group.api_version, group, what, error)
        await self._generator.record(group, group, names)
        return self._after(failure)

    async def _failed(self, kind: str, api_version: str, obj: Any, what: str, error: DrakitError) -> DrakitError:
        if not isinstance(error, Conflict):
            # The server names the claim that it did not make, by another name each time: one event counts them all.
            told = f"{what}: {_without_suffix(key_of(obj).name, str(error))}"
            log.warning("%s %s: %s", kind, key_of(obj), told)
            await self._recorder.tell(kind, api_version, obj, FAILED, told, type_=WARNING)
        return error

    def _after(self, failure: DrakitError | None) -> Result:
        """Retry after a failure, unless something is missing: its own event requeues the key."""
        return Result.done() if failure is None or isinstance(failure, Missing) else Result.retry()

    # Which changes concern whom

    def _add_indexes(self) -> None:
        self._pods.add_index("claim", by_claim)
        self._pods.add_index("template", by_template)
        self._pods.add_index("group", by_group)
        self._pods.add_index("node", by_node)
        self._claims.add_index("consumer", by_consumer)
        self._claims.add_index("controller", by_controller)
        if self._groups is not None:
            self._groups.add_index("template", by_template)

    def _subscribe(self) -> None:
        self._pods.subscribe(self._pod_changed)
        self._claims.subscribe(self._claim_changed)
        self._templates.on(add=self._template_added)
        self._nodes.subscribe(self._node_changed)
        if self._groups is not None:
            self._groups.subscribe(self._group_changed)

    def _pod_changed(self, old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        if new is None and old is not None:
            self._generator.forget(old.view.metadata.uid)
            self._consumers.note_gone(old.view.metadata.uid)
            self._consumer_over(old.view)
        elif new is not None:
            if old is not None and old.view.metadata.uid != new.view.metadata.uid:
                # The watch may skip a deletion and show the next pod of the same name: the first one is over all the
                # same.
                self._pod_changed(old, None)
            self._look_at_pod(new)
            if is_done(new.view):
                self._consumer_over(new.view)

    def _consumer_over(self, consumer: Pod | PodGroup) -> None:
        uid, namespace = consumer.metadata.uid, consumer.metadata.namespace
        for index in ("consumer", "controller"):
            for key in self._claims.cache.keys_by(index, uid):
                self._add(CLAIM, key)
        if isinstance(consumer, Pod):
            for name in claim_names(consumer).values():
                self._add(CLAIM, Key(namespace, name))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new if new is not None else old
        if claim is None:
            return
        self._generator.seen(claim)
        key = key_of(claim)
        pause = self._releaser.leave_alone(key, new) if new is not None else 0.0
        if pause is not None:
            self.loop.queue.add_after(ClaimWorkItem(CLAIM, key), pause)
        for pod in self._pods.by("claim", tuple(key)):
            self._look_at_pod(pod)
        # Somebody deleted the claim of a template: its owner gets another, if it is there still.
        owner = claim.metadata.controller
        if new is None and owner is not None and not self._consumers.is_gone(owner.uid):
            self._add(GROUP if owner.kind == "PodGroup" else POD, Key(key.namespace, owner.name))

    def _template_added(self, template: ResourceClaimTemplate) -> None:
        key = key_of(template)
        for pod in self._pods.cache.keys_by("template", tuple(key)):
            self._add(POD, pod)
        for group in self._groups.cache.keys_by("template", tuple(key)) if self._groups is not None else ():
            self._add(GROUP, group)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        group = new if new is not None else old
        if group is None:
            return
        key = key_of(group)
        self._add(GROUP, key)
        for pod in self._pods.cache.keys_by("group", tuple(key)):
            self._add(POD, pod)
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._generator.forget(old.metadata.uid)
            self._consumers.note_gone(old.metadata.uid)
            self._consumer_over(old)

    def _node_changed(self, old: Partial[Node] | None, new: Partial[Node] | None) -> None:
        if new is None or (old is not None and old.view.metadata.labels == new.view.metadata.labels):
            return
        for pod in self._pods.by("node", new.view.metadata.name):
            self._look_at_pod(pod)

    def _look_at_pod(self, pod: Partial[Pod]) -> None:
        """Queue a pod unless the caches show that nothing is to be done: most pod events come from our own writes."""
        if pod.view.spec.resource_claims and not self._is_settled(pod.view):
            self._add(POD, key_of(pod))

    def _is_settled(self, pod: Pod) -> bool:
        if pod.metadata.deletion_timestamp is not None or pod.is_terminal:
            return True
        return self._generator.is_settled(pod) and (not pod.spec.node_name or self._reserver.is_settled(pod))

    def _add(self, sort: str, key: Key) -> None:
        self.loop.queue.add(ClaimWorkItem(sort, key))
