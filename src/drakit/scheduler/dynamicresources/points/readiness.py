"""The claims of a pod, or why they are not there to be used.

In:  a pod, the claims and groups as they are now.
Out: a claim per entry that needs one; else what has to happen first, in the words of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api.objects.claims import DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from drakit.api.objects.pods import Pod, PodResourceClaim
from drakit.api.podclaims import ClaimNotCreated, ClaimUnsupported, claim_name, consumer_of, is_made_for_pod
from drakit.api.requests import sub_request_name
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.needs import ClaimNeed
from drakit.scheduler.framework import PluginStatus


class NotReady(Exception):
    """The pod cannot be scheduled until something happens to its claims."""


def pod_claims(context: PluginContext, pod: Pod) -> Iterator[tuple[PodResourceClaim, ResourceClaim]]:
    """Each entry with its claim. Raise NotReady for the first that is missing, going, or somebody else's."""
    for entry in pod.spec.resource_claims:
        try:
            name = claim_name(pod, entry)
        except (ClaimNotCreated, ClaimUnsupported) as error:
            raise NotReady(str(error)) from None
        if name is not None:
            yield entry, _usable(context, pod, entry, name)


def _usable(context: PluginContext, pod: Pod, entry: PodResourceClaim, name: str) -> ResourceClaim:
    namespace = pod.metadata.namespace
    claim = context.claims.get(namespace, name)
    if claim is None:
        raise NotReady(f'could not find ResourceClaim "{namespace}/{name}"')
    if claim.metadata.deletion_timestamp is not None:
        raise NotReady(f'resourceclaim "{name}" is being deleted')
    from_template = entry.resource_claim_name is None
    if from_template and not is_made_for_pod(claim, pod, groups=context.groups is not None):
        group, _ = context.group_of(pod)
        why = "Pod is not owner" if group is None else f"neither Pod nor PodGroup {group} is the owner"
        where = f"{namespace}/{pod.metadata.name}"
        raise NotReady(f"ResourceClaim {namespace}/{name} was not created for Pod {where} ({why})")
    return claim


def needs_of(context: PluginContext, pod: Pod) -> list[ClaimNeed]:
    """What the pod needs, with the consumer that each claim is reserved for. Raise NotReady.

    A claim that two entries name is needed once.
    """
    claims = {claim.metadata.uid: (entry, claim) for entry, claim in reversed(list(pod_claims(context, pod)))}
    if not claims:
        return []
    name, group = context.group_of(pod)
    if name is not None and group is None:
        raise NotReady(f'podgroup.scheduling.k8s.io "{name}" not found')
    return [ClaimNeed(claim, consumer_of(pod, entry, group)) for entry, claim in reversed(claims.values())]


def refuse_requests(context: PluginContext, claim: ResourceClaim) -> PluginStatus | None:
    """Why the requests of a claim cannot be looked at: a class that is missing, an alternative that is not known."""
    where = f"resource claim {claim.metadata.namespace}/{claim.metadata.name}"
    for request in claim.spec.devices.requests:
        if request.exactly is None and not request.first_available:
            return PluginStatus.unresolvable(f"{where}, request {request.name}: unknown request type")
        if request.first_available and not context.prioritized:
            why = "has subrequests, but the DRAPrioritizedList feature is disabled"
            return PluginStatus.unresolvable(f"{where}, request {request.name}: {why}")
        asked: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]]
        asked = [(sub_request_name(request.name, each.name), each) for each in request.first_available]
        if request.exactly is not None:
            asked = [(request.name, request.exactly)]
        for name, each in asked:
            refusal = _refuse_class(context, name, each.device_class_name)
            if refusal is not None:
                return refusal
    return None


def _refuse_class(context: PluginContext, request: str, name: str) -> PluginStatus | None:
    if not name:
        return PluginStatus.failed(f"request {request}: unsupported request type")
    if name not in context.inventory.classes:
        return PluginStatus.unresolvable(f"request {request}: device class {name} does not exist")
    return None
