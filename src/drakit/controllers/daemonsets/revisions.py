"""The history of a daemon set: a ControllerRevision per template, which `kubectl rollout history` and `undo` read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drakit.api.objects.apps import ControllerRevision
from drakit.api.objects.partial import Partial
from drakit.client import CONTROLLER_REVISIONS, AlreadyExists, Client
from drakit.controllers.daemonsets.nodes import HASH, OneSet, owner_of
from drakit.controllers.templatehash import template_hash
from drakit.informers import Informer

OneRevision = Partial[ControllerRevision]


def content_of(daemon_set: OneSet) -> dict[str, Any]:
    """What a revision keeps: a strategic merge patch that puts the template back."""
    return {"spec": {"template": {**daemon_set.document["spec"]["template"], "$patch": "replace"}}}


class Revisions:
    def __init__(self, client: Client, informer: Informer[OneRevision]) -> None:
        self._client = client
        self._informer = informer

    def of(self, daemon_set: OneSet) -> list[OneRevision]:
        """All revisions of the daemon set, oldest first."""
        metadata = daemon_set.view.metadata
        found = (each for each in self._informer.cache.all(metadata.namespace) if _owner(each) == metadata.uid)
        return sorted(found, key=lambda each: each.view.revision)

    async def current(self, daemon_set: OneSet) -> str:
        """The hash of the template's revision, which is made, or raised to the newest, where that is needed."""
        content, known = content_of(daemon_set), self.of(daemon_set)
        newest = max((each.view.revision for each in known), default=0)
        same = next((each for each in reversed(known) if each.document.get("data") == content), None)
        if same is not None:
            if same.view.revision < newest:
                await self._client.patch(same, {"revision": newest + 1}, versioned=True)
            return same.view.metadata.labels[HASH]
        return await self._make(daemon_set, content, newest + 1)

    async def _make(self, daemon_set: OneSet, content: Mapping[str, Any], revision: int) -> str:
        collisions = (daemon_set.document.get("status") or {}).get("collisionCount") or 0
        hashed = template_hash(daemon_set.document["spec"]["template"], collisions)
        metadata = daemon_set.view.metadata
        name = f"{metadata.name}-{hashed}"
        document = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": metadata.namespace,
                "labels": {**daemon_set.view.spec.template.metadata.labels, HASH: hashed},
                "annotations": dict(metadata.annotations),
                "ownerReferences": [owner_of(daemon_set)],
            },
            "data": content,
            "revision": revision,
        }
        try:
            await self._client.create(Partial.of(ControllerRevision, document))
        except AlreadyExists:
            found = await self._client.get(CONTROLLER_REVISIONS, name, namespace=metadata.namespace)
            if found.document.get("data") != content:
                raise
        return hashed

    async def clean_up(self, daemon_set: OneSet, live: Iterable[str]) -> None:
        """Delete revisions beyond the limit that no pod has any more."""
        limit, kept = daemon_set.view.spec.revision_history_limit, set(live)
        idle: Sequence[OneRevision] = [
            each for each in self.of(daemon_set) if each.view.metadata.labels.get(HASH) not in kept
        ]
        if limit is not None:
            for each in idle[: max(len(idle) - limit, 0)]:
                await self._client.delete_object(each)


def _owner(revision: OneRevision) -> str:
    owner = revision.view.metadata.controller
    return owner.uid if owner is not None else ""
