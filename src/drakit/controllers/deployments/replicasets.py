"""The replica sets of a deployment: which is the new one, what it is made of, which revision it has. Pure.

In:  a deployment and its replica sets.
Out: documents and annotations of replica sets, under the names that `kubectl rollout` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drakit.api import ReplicaSet
from drakit.api.objects.apps import Deployment
from drakit.api.objects.partial import Partial
from drakit.controllers.intorpercent import scaled

OneDeployment = Partial[Deployment]
OneSet = Partial[ReplicaSet]

HASH = "pod-template-hash"
_PREFIX = "deployment.kubernetes.io/"
REVISION = f"{_PREFIX}revision"
REVISION_HISTORY = f"{_PREFIX}revision-history"
DESIRED = f"{_PREFIX}desired-replicas"
MAX = f"{_PREFIX}max-replicas"
_NOT_COPIED = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration", REVISION, REVISION_HISTORY, DESIRED, MAX,
        "deprecated.deployment.rollback.to",
    )
)  # fmt: skip


def wanted_replicas(deployment: OneDeployment) -> int:
    replicas = deployment.view.spec.replicas
    return 1 if replicas is None else replicas


def size_of(replica_set: OneSet) -> int:
    replicas = replica_set.view.spec.replicas
    return 1 if replicas is None else replicas


def is_rolling(deployment: OneDeployment) -> bool:
    return deployment.view.spec.strategy.type != "Recreate"


def max_surge(deployment: OneDeployment) -> int:
    """How many pods there may be beyond what is wanted."""
    rolling = deployment.view.spec.strategy.rolling_update
    if not is_rolling(deployment) or rolling is None:
        return 0
    return scaled(rolling.max_surge, wanted_replicas(deployment), round_up=True)


def max_unavailable(deployment: OneDeployment) -> int:
    """How many of the wanted pods may be missing; at least one where no surge is allowed, else nothing could move."""
    rolling = deployment.view.spec.strategy.rolling_update
    wanted = wanted_replicas(deployment)
    if not is_rolling(deployment) or rolling is None or not wanted:
        return 0
    allowed = scaled(rolling.max_unavailable, wanted, round_up=False)
    if not allowed and not max_surge(deployment):
        return 1
    return min(allowed, wanted)


def find_new(deployment: OneDeployment, sets: Iterable[OneSet]) -> OneSet | None:
    """The replica set of the deployment's template. Of several (two controllers once), the oldest."""
    template = _without_hash(deployment.document["spec"]["template"])
    alike = [each for each in sets if _without_hash(each.document["spec"]["template"]) == template]
    return min(alike, key=_age, default=None)


def oldest_first(sets: Iterable[OneSet]) -> list[OneSet]:
    return sorted(sets, key=_age)


def _age(replica_set: OneSet) -> tuple[str, str]:
    metadata = replica_set.view.metadata
    return metadata.creation_timestamp or "", metadata.name


def _without_hash(template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    metadata.pop("creationTimestamp", None)
    labels = {key: value for key, value in (metadata.pop("labels", None) or {}).items() if key != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def revision_of(obj: Partial[Any]) -> int:
    text = obj.view.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdecimal() else 0


def next_revision(old: Sequence[OneSet]) -> int:
    return max(map(revision_of, old), default=0) + 1


def annotations_for(deployment: OneDeployment, revision: int, before: Mapping[str, str]) -> dict[str, str]:
    """The annotations of the new replica set: the deployment's own, and its revision, which only grows."""
    copied = {key: value for key, value in deployment.view.metadata.annotations.items() if key not in _NOT_COPIED}
    found = {**before, **copied}
    current = before.get(REVISION, "")
    if (int(current) if current.isdecimal() else 0) < revision:
        found[REVISION] = str(revision)
        if current:  # rolled back to: remember as what it ran before
            history = before.get(REVISION_HISTORY, "")
            found[REVISION_HISTORY] = f"{history},{current}" if history else current
    return found


def sized(deployment: OneDeployment) -> dict[str, str]:
    """What a replica set remembers of the deployment's size, so that a later change of it is noticed."""
    wanted = wanted_replicas(deployment)
    return {DESIRED: str(wanted), MAX: str(wanted + max_surge(deployment))}


def new_set(deployment: OneDeployment, hashed: str, size: int, revision: int) -> dict[str, Any]:
    """The document of the replica set for the deployment's template."""
    metadata, spec = deployment.view.metadata, deployment.document["spec"]
    template = dict(spec["template"])
    about = dict(template.get("metadata") or {})
    labels = {**(about.get("labels") or {}), HASH: hashed}
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: hashed}
    template["metadata"] = {**about, "labels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata.name}-{hashed}",
            "namespace": metadata.namespace,
            "labels": labels,
            "annotations": {**annotations_for(deployment, revision, {}), **sized(deployment)},
            "ownerReferences": [owner_of(deployment)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": deployment.view.spec.min_ready_seconds,
            "selector": selector,
            "template": template,
        },
    }


def owner_of(deployment: OneDeployment) -> dict[str, Any]:
    metadata = deployment.view.metadata
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "name": metadata.name, "uid": metadata.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
