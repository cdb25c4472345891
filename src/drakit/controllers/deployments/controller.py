"""Deployments: one replica set per template, the newest grown and the others shrunk as the strategy says.

In:  deployments, their replica sets, their pods (a Recreate waits until the old ones are gone).
Out: replica sets made, resized, deleted beyond the history limit; the deployment's revision and status.

Each reconcile takes one step from what the cache shows; the change that it makes brings the next one. The name of a
replica set follows from its template, so that two steps from a stale cache make one replica set, not two.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from drakit.api import Pod, ReplicaSet
from drakit.api.objects.partial import Partial
from drakit.base.labels import from_struct
from drakit.client import DEPLOYMENTS, PODS, REPLICA_SETS, AlreadyExists, Key, V
from drakit.client.events import NORMAL
from drakit.controllers.context import ControllerContext
from drakit.controllers.deployments import rollout, status
from drakit.controllers.deployments.replicasets import (
    REVISION,
    OneDeployment,
    OneSet,
    annotations_for,
    find_new,
    is_rolling,
    new_set,
    next_revision,
    owner_of,
    revision_of,
    size_of,
    sized,
)
from drakit.controllers.templatehash import template_hash
from drakit.informers import Informer, Result, by_controller

log = logging.getLogger("drakit.controllers")

NAME = "deployment"
COMPONENT = "deployment-controller"


class DeploymentController:
    def __init__(self, setting: ControllerContext, *, workers: int = 2) -> None:
        self._client = setting.client_of(COMPONENT)
        self._clock = setting.clock
        self._recorder = setting.recorder(self._client, COMPONENT)
        self._deployments: Informer[OneDeployment] = setting.informers.of(DEPLOYMENTS)
        self._sets: Informer[OneSet] = setting.informers.of(REPLICA_SETS)
        self._pods: Informer[Partial[Pod]] = setting.informers.of(PODS)
        self._pods.add_index("controller", by_controller)
        self.loop = setting.loop(NAME, self.reconcile, workers=workers)
        self.loops = (self.loop,)
        self._deployments.enqueue(self.loop.queue.add)
        self._sets.enqueue(self.loop.queue.add, self._deployments_of)
        self._pods.enqueue(self.loop.queue.add, self._recreating)

    def _deployments_of(self, replica_set: OneSet) -> list[Key]:
        """The owner; of a replica set that is nobody's, those deployments that select it."""
        metadata = replica_set.view.metadata
        owner = metadata.controller
        if owner is not None:
            return [Key(metadata.namespace, owner.name)] if owner.kind == "Deployment" else []
        all_ = self._deployments.cache.all(metadata.namespace)
        return [Key(metadata.namespace, each.view.metadata.name) for each in all_ if _selects(each, replica_set)]

    def _recreating(self, pod: Partial[Pod]) -> list[Key]:
        """Deployments with strategy Recreate wait for the end of old pods; others count by their replica sets."""
        metadata = pod.view.metadata
        owner = metadata.controller
        if owner is None or owner.kind != "ReplicaSet":
            return []
        replica_set = self._sets.cache.get(Key(metadata.namespace, owner.name))
        keys = self._deployments_of(replica_set) if replica_set is not None else []
        found = [(key, self._deployments.cache.get(key)) for key in keys]
        return [key for key, each in found if each is not None and not is_rolling(each)]

    async def reconcile(self, key: Key) -> Result:
        deployment = self._deployments.cache.get(key)
        if deployment is None or deployment.view.spec.selector is None:
            return Result.done()
        sets = await self._claim(deployment)
        new = find_new(deployment, sets)
        old = [each for each in sets if each is not new]
        if deployment.view.metadata.deletion_timestamp is None:
            deployment = await self._tell_pause(deployment)
            deployment, new = await self._step(deployment, new, old)
        return await self._tell(deployment, new, [*([new] if new else ()), *old])

    async def _claim(self, deployment: OneDeployment) -> list[OneSet]:
        """The replica sets of a deployment; orphans that it selects are adopted, those it no longer selects let go."""
        metadata, found = deployment.view.metadata, []
        for each in self._sets.cache.all(metadata.namespace):
            owner, selected = each.view.metadata.controller, _selects(deployment, each)
            mine = owner is not None and owner.uid == metadata.uid
            free = owner is None and each.view.metadata.deletion_timestamp is None
            if mine and not selected:
                await self._set_owners(each, [o for o in _owners(each) if o["uid"] != metadata.uid])
            elif selected and (mine or free):
                if not mine and metadata.deletion_timestamp is None:
                    each = await self._set_owners(each, [*_owners(each), owner_of(deployment)])
                found.append(each)
        return found

    async def _set_owners(self, replica_set: OneSet, owners: list[dict[str, Any]]) -> OneSet:
        return await self._client.patch(replica_set, {"metadata": {"ownerReferences": owners or None}}, versioned=True)

    async def _step(
        self, deployment: OneDeployment, new: OneSet | None, old: Sequence[OneSet]
    ) -> tuple[OneDeployment, OneSet | None]:
        sets = [*([new] if new else ()), *old]
        # A new size comes first, and while paused is all that is done: a rollout would count with the old one.
        if deployment.view.spec.paused or rollout.is_resized(deployment, sets):
            await self._resize(deployment, sets, rollout.resize(deployment, new, old))
            return deployment, new
        if not is_rolling(deployment):
            # Recreate: old pods must be gone, not only asked to go, before the first new one: they may hold what it
            # needs.
            waiting = any(map(self._has_pods, old))
            if any(map(size_of, old)) or (new is None and waiting):
                await self._resize(deployment, sets, rollout.recreate(deployment, new, old, old_pods=waiting))
                return deployment, new
        deployment, new = await self._ensure_new(deployment, new, old)
        if new is not None:
            sizes = (
                rollout.roll(deployment, new, old)
                if is_rolling(deployment)
                else rollout.recreate(deployment, new, old, old_pods=any(map(self._has_pods, old)))
            )
            await self._resize(deployment, [new, *old], sizes)
            await self._clean_up(deployment, new, old)
        return deployment, new

    def _has_pods(self, replica_set: OneSet) -> bool:
        pods = self._pods.cache.by("controller", replica_set.view.metadata.uid)
        return any(not pod.view.is_terminal for pod in pods)

    async def _ensure_new(
        self, deployment: OneDeployment, new: OneSet | None, old: Sequence[OneSet]
    ) -> tuple[OneDeployment, OneSet | None]:
        """The replica set of the current template, made where there is none; its revision is the highest."""
        revision = next_revision(old)
        if new is None:
            new = await self._make(deployment, revision, old)
            if new is None:
                return deployment, None
        else:
            before = new.view.metadata.annotations
            wanted = annotations_for(deployment, revision, before)
            if wanted != before:
                new = await self._client.patch(new, {"metadata": {"annotations": wanted}}, versioned=True)
        if revision_of(deployment) != revision_of(new):
            told = {"metadata": {"annotations": {REVISION: str(revision_of(new))}}}
            deployment = await self._client.update(_merged(deployment, told))
        return deployment, new

    async def _make(self, deployment: OneDeployment, revision: int, old: Sequence[OneSet]) -> OneSet | None:
        collisions = (deployment.document.get("status") or {}).get("collisionCount") or 0
        hashed = template_hash(deployment.document["spec"]["template"], collisions)
        document = new_set(deployment, hashed, rollout.first_size(deployment, old), revision)
        name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
        try:
            made = await self._client.create(Partial.of(ReplicaSet, document))
        except AlreadyExists:
            found = await self._client.find(REPLICA_SETS, name, namespace=namespace)
            if found is not None and find_new(deployment, [found]) and _is_owned(deployment, found):
                return found
            await self._collide(deployment, collisions + 1)
            return None
        size = size_of(made)
        log.log(V[2], "deployment %s: made replica set %s", deployment.view.metadata.name, name)
        await self._say(deployment, f"Scaled up replica set {name} from 0 to {size}")
        return made

    async def _collide(self, deployment: OneDeployment, collisions: int) -> None:
        """The name is taken by another object: count the collision, so that the next attempt uses another hash."""
        before = deployment.document.get("status") or {}
        await self._client.update(
            _merged(deployment, {"status": {**before, "collisionCount": collisions}}), subresource="status"
        )

    async def _resize(self, deployment: OneDeployment, sets: Sequence[OneSet], sizes: rollout.Sizes) -> None:
        told = sized(deployment)
        for each in sets:
            name, before = each.view.metadata.name, size_of(each)
            size = sizes.get(name, before)
            outdated = size and any(each.view.metadata.annotations.get(key) != value for key, value in told.items())
            if size == before and not outdated:
                continue
            await self._client.patch(
                each, {"metadata": {"annotations": told}, "spec": {"replicas": size}}, versioned=True
            )
            if size != before:
                way = "up" if size > before else "down"
                await self._say(deployment, f"Scaled {way} replica set {name} from {before} to {size}")

    async def _clean_up(self, deployment: OneDeployment, new: OneSet, old: Sequence[OneSet]) -> None:
        """Delete replica sets beyond the history limit, once the rollout is complete."""
        limit = deployment.view.spec.revision_history_limit
        if limit is None or not status.is_complete(deployment, status.counts(deployment, new, [new, *old])):
            return
        idle = [each for each in old if _is_idle(each)]
        for each in sorted(idle, key=revision_of)[: max(len(old) - limit, 0)]:
            await self._client.delete_object(each)

    async def _tell_pause(self, deployment: OneDeployment) -> OneDeployment:
        """A paused rollout has no deadline; when it goes on, the deadline counts from then."""
        before = deployment.document.get("status") or {}
        current = status.find(before, status.PROGRESSING)
        if not status.has_deadline(deployment) or (current is not None and current["reason"] == status.TIMED_OUT):
            return deployment
        was = current is not None and current["reason"] == status.PAUSED
        paused = deployment.view.spec.paused
        if paused == was:
            return deployment
        reason, message = (
            (status.PAUSED, "Deployment is paused") if paused else (status.RESUMED, "Deployment is resumed")
        )
        conditions = status.with_condition(before, status.PROGRESSING, "Unknown", reason, message, self._clock.now())
        changed = _merged(deployment, {"status": {**before, "conditions": conditions}})
        return await self._client.update(changed, subresource="status")

    async def _tell(self, deployment: OneDeployment, new: OneSet | None, sets: Sequence[OneSet]) -> Result:
        before, now = deployment.document.get("status") or {}, self._clock.now()
        after = status.next_status(deployment, new, sets, now)
        if status.differs(before, after):
            await self._client.update(_merged(deployment, {"status": after}), subresource="status")
        left = status.seconds_left(deployment, after, now)
        return Result.after(left) if left else Result.done()

    async def _say(self, deployment: OneDeployment, message: str) -> None:
        await self._recorder.tell("Deployment", "apps/v1", deployment, "ScalingReplicaSet", message, type_=NORMAL)


def _selects(deployment: OneDeployment, replica_set: OneSet) -> bool:
    selector = deployment.view.spec.selector
    return selector is not None and from_struct(selector).matches(replica_set.view.metadata.labels)


def _is_owned(deployment: OneDeployment, replica_set: OneSet) -> bool:
    owner = replica_set.view.metadata.controller
    return owner is not None and owner.uid == deployment.view.metadata.uid


def _is_idle(replica_set: OneSet) -> bool:
    view = replica_set.view
    seen = view.status.observed_generation >= view.metadata.generation
    return not size_of(replica_set) and not view.status.replicas and seen and view.metadata.deletion_timestamp is None


def _owners(replica_set: OneSet) -> list[dict[str, Any]]:
    return list(replica_set.document["metadata"].get("ownerReferences") or ())


def _merged(deployment: OneDeployment, change: dict[str, Any]) -> OneDeployment:
    """The deployment with annotations or status changed."""
    document = dict(deployment.document)
    if "status" in change:
        document["status"] = change["status"]
    if annotations := (change.get("metadata") or {}).get("annotations"):
        metadata = dict(document["metadata"])
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
        document["metadata"] = metadata
    return Partial.of(type(deployment.view), document)
