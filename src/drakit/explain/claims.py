"""Why a claim has no devices, or which it has and who uses it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from drakit.api import ObjectMeta, Pod, PodResourceClaim, ResourceClaim
from drakit.api.objects.pods import PodSpec
from drakit.api.podclaims import claim_names
from drakit.base.errors import NotFound
from drakit.explain.answers import ObjectExplanation, Standing
from drakit.explain.cluster import ClusterObjects
from drakit.explain.completion import DEFAULT_SCHEDULER, completed
from drakit.explain.given import given_devices
from drakit.explain.podgroups import explained_member

_TRIAL = "uid-claim-trial"


def explain_claim(
    cluster: ClusterObjects, name: str, namespace: str = "default", *, suggest: bool = True
) -> ObjectExplanation:
    """A claim without devices is explained by the oldest pod that waits for it; if there is none, by a made-up pod.

    Raise NotFound.
    """
    cluster = completed(cluster)
    claim = cluster.find(ResourceClaim, name, namespace)
    if claim is None:
        raise NotFound(f'resourceclaims "{name}" not found in namespace {namespace}')
    if claim.status.allocation is not None:
        return _allocated(claim)
    waiting = next(_users(cluster, claim), None)
    pod = waiting or _trial(claim)
    found = explained_member(cluster, pod, suggest=suggest)
    who = f"pod {pod.metadata.namespace}/{pod.metadata.name} waits for it" if waiting else "no pod uses it"
    return replace(found, kind="ResourceClaim", name=name, verdict=_sentence(claim, found, who))


def _allocated(claim: ResourceClaim) -> ObjectExplanation:
    devices = tuple(given_devices(claim))
    users = [f"{each.resource.removesuffix('s')} {each.name}" for each in claim.status.reserved_for]
    used = f"reserved for {', '.join(users[:3])}{', …' * (len(users) > 3)}" if users else "reserved for nobody"
    what = f"{len(devices)} device{'s' * (len(devices) != 1)}"
    metadata = claim.metadata
    return ObjectExplanation(
        kind="ResourceClaim",
        namespace=metadata.namespace,
        name=metadata.name,
        standing=Standing.RUNNING if users else Standing.UNUSED,
        verdict=f"ResourceClaim {metadata.namespace}/{metadata.name} has {what} and is {used}.",
        devices=devices,
    )


def _sentence(claim: ResourceClaim, found: ObjectExplanation, who: str) -> str:
    head = f"ResourceClaim {claim.metadata.namespace}/{claim.metadata.name} has no devices"
    if found.standing is Standing.FITS:
        return f"{head}, {who}, and {len(found.fitting)} node{'s' * (len(found.fitting) != 1)} could give them."
    why = found.verdict.partition(" fits ")[2] or found.verdict.partition(": ")[2]
    return f"{head}, and {who}: it fits {why}" if " fits " in found.verdict else f"{head}, and {who}: {why}"


def _users(cluster: ClusterObjects, claim: ResourceClaim) -> Iterator[Pod]:
    """Pods that wait for the claim, the oldest first."""
    pods = sorted(cluster.all(Pod), key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    for pod in pods:
        mine = pod.metadata.namespace == claim.metadata.namespace
        if mine and not pod.spec.node_name and claim.metadata.name in claim_names(pod).values():
            yield pod


def _trial(claim: ResourceClaim) -> Pod:
    """A pod that asks for nothing but the claim. It has the uid of the claim's owner, so that it may use the claim."""
    owner = claim.metadata.controller
    entry = PodResourceClaim(name="claim", resource_claim_name=claim.metadata.name)
    spec = PodSpec(scheduler_name=DEFAULT_SCHEDULER, resource_claims=(entry,))
    metadata = ObjectMeta(
        name=owner.name if owner else claim.metadata.name,
        namespace=claim.metadata.namespace,
        uid=owner.uid if owner else _TRIAL,
    )
    return Pod(metadata=metadata, spec=spec)
