"""The claims of a pod: their names, whose they are, and for whom they are reserved.

In:  a pod (and its PodGroup, where there is one).
Out: for each entry of `spec.resourceClaims`, and for extended resources, the name of the ResourceClaim.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api.objects.claims import ResourceClaim, ResourceClaimConsumerReference
from drakit.api.objects.pods import Container, ContainerClaim, Pod, PodResourceClaim
from drakit.api.objects.workloads import PodGroup, PodGroupResourceClaim
from drakit.api.requests import is_reserved_for
from drakit.base.errors import Retryable, Terminal

SCHEDULING_GROUP = "scheduling.k8s.io"
EXTENDED_RESOURCES = "<extended-resources>"


class ClaimNotCreated(Retryable):
    """The claim of a template is not there yet; the controller will make it."""


class ClaimUnsupported(Terminal):
    """An entry says neither claim nor template: a newer API than this one."""


def claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The name of an entry's claim; None when no claim is needed for it.

    A claim of a template, also one that is made for the pod's group, is named in the pod's status.
    """
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if entry.resource_claim_template_name is None:
        raise ClaimUnsupported(
            f'pod "{where}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimNotCreated(f'pod "{where}": ResourceClaim not created yet')


def group_claim_name(group: PodGroup, entry: PodGroupResourceClaim) -> str | None:
    """The name of the claim of a PodGroup's entry; None when no claim is needed for it."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    where = f"{group.metadata.namespace}/{group.metadata.name}"
    if entry.resource_claim_template_name is None:
        raise ClaimUnsupported(
            f"PodGroup {where}, spec.resourceClaim {entry.name}: none of the supported fields are set"
        )
    for status in group.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise ClaimNotCreated(f"PodGroup {where}: ResourceClaim not created yet")


def extended_resource_claim_name(pod: Pod) -> str | None:
    """The name of the claim that the scheduler made for extended resources."""
    status = pod.status.extended_resource_claim_status
    return status.resource_claim_name if status and status.resource_claim_name else None


def claim_names(pod: Pod) -> dict[str, str]:
    """Claim names by entry, as far as they exist; the claim for extended resources under EXTENDED_RESOURCES."""
    names: dict[str, str] = {}
    for entry in pod.spec.resource_claims:
        try:
            name = claim_name(pod, entry)
        except (ClaimNotCreated, ClaimUnsupported):
            continue
        if name is not None:
            names[entry.name] = name
    if extended := extended_resource_claim_name(pod):
        names[EXTENDED_RESOURCES] = extended
    return names


def container_claims(pod: Pod, container: Container) -> Iterator[tuple[str, str]]:
    """For each use of a claim by a container: the claim's name and the request (empty for all of it)."""
    names = claim_names(pod)
    for use in container.resources.claims:
        if use.name in names:
            yield names[use.name], use.request
    status = pod.status.extended_resource_claim_status
    for mapping in status.request_mappings if status else ():
        if mapping.container_name == container.name and status:
            yield status.resource_claim_name, mapping.request_name


def uses_claim(pod: Pod, entry: str) -> Iterator[tuple[Container, ContainerClaim]]:
    """The containers of a pod that use an entry of its claims."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for use in container.resources.claims:
            if use.name == entry:
                yield container, use


def matching_group_claim(group: PodGroup, entry: PodResourceClaim) -> PodGroupResourceClaim | None:
    """The group's entry that a pod's entry shares: name, claim and template must all be the same."""
    wanted = (entry.name, entry.resource_claim_name, entry.resource_claim_template_name)
    for each in group.spec.resource_claims:
        if (each.name, each.resource_claim_name, each.resource_claim_template_name) == wanted:
            return each
    return None


def consumer_of(pod: Pod, entry: PodResourceClaim, group: PodGroup | None = None) -> ResourceClaimConsumerReference:
    """For whom the claim of an entry is reserved: the group when the entry is one of the group's, else the pod."""
    if group is not None and matching_group_claim(group, entry) is not None:
        return ResourceClaimConsumerReference(
            api_group=SCHEDULING_GROUP, resource="podgroups", name=group.metadata.name, uid=group.metadata.uid
        )
    return pod_consumer(pod)


def pod_consumer(pod: Pod) -> ResourceClaimConsumerReference:
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def pod_group_name(pod: Pod) -> str | None:
    group = pod.spec.scheduling_group
    return group.pod_group_name if group else None


def is_reserved_for_pod(claim: ResourceClaim, pod: Pod, *, groups: bool = True) -> bool:
    """Whether the pod may use the claim: it, or (with `groups`) its PodGroup, is in `reservedFor`."""
    if is_reserved_for(claim, pod.metadata.uid):
        return True
    group = pod_group_name(pod)
    return (
        groups
        and group is not None
        and any(
            (each.api_group, each.resource, each.name) == (SCHEDULING_GROUP, "podgroups", group)
            for each in claim.status.reserved_for
        )
    )


def is_made_for_pod(claim: ResourceClaim, pod: Pod, *, groups: bool = True) -> bool:
    """Whether a claim of a template was made for this pod or (with `groups`) its PodGroup."""
    owner = claim.metadata.controller
    if owner is None or claim.metadata.namespace != pod.metadata.namespace:
        return False
    if owner.uid == pod.metadata.uid:
        return True
    of_group = owner.kind == "PodGroup" and owner.api_version.startswith(SCHEDULING_GROUP + "/")
    return groups and of_group and owner.name == pod_group_name(pod)
