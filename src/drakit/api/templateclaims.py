"""Claims as templates describe them. Pure.

In:  a template, the pod or group that the claim is for, the name of the entry.
Out: the claim to create. Owner and annotation are what tells afterwards for which entry it was made.
"""

from __future__ import annotations

from collections.abc import Iterable

from drakit.api.objects.claims import ResourceClaim, ResourceClaimTemplate
from drakit.api.objects.meta import ObjectMeta, OwnerReference
from drakit.api.objects.pods import Pod
from drakit.api.objects.workloads import PodGroup
from drakit.base.wellknown import POD_CLAIM_ANNOTATION

_LONGEST_BASE = 57  # a hyphen and five random characters make 63


def generate_name(owner: str, entry: str) -> str:
    """`<owner>-<entry>-`. If that is too long, both are cut in proportion, so that a part of each remains."""
    whole = f"{owner}-{entry}"
    if len(whole) > _LONGEST_BASE:
        cut = len(owner) * _LONGEST_BASE // len(whole)
        # A dot may not stand before a hyphen.
        whole = f"{owner[:cut].rstrip('.')}-{entry[: len(entry) * _LONGEST_BASE // len(whole)]}"
    return whole + "-"


def claim_of(template: ResourceClaimTemplate, owner: Pod | PodGroup, entry: str) -> ResourceClaim:
    described = template.spec.metadata
    metadata = ObjectMeta(
        generate_name=generate_name(owner.metadata.name, entry),
        namespace=owner.metadata.namespace,
        labels=described.labels,
        annotations={**described.annotations, POD_CLAIM_ANNOTATION: entry},
        owner_references=(
            OwnerReference(
                api_version=owner.api_version,
                kind=owner.kind,
                name=owner.metadata.name,
                uid=owner.metadata.uid,
                controller=True,
            ),
        ),
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def made_for(claims: Iterable[ResourceClaim], owner: str, entry: str) -> ResourceClaim | None:
    """The claim that was made for an entry of the owner of that uid: the oldest, should there be several."""
    found = [each for each in claims if is_for(each, owner, entry)]
    return min(found, key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name), default=None)


def is_for(claim: ResourceClaim, owner: str, entry: str) -> bool:
    return is_controlled_by(claim, owner) and claim.metadata.annotations.get(POD_CLAIM_ANNOTATION) == entry


def is_controlled_by(claim: ResourceClaim, owner: str) -> bool:
    controller = claim.metadata.controller
    return controller is not None and controller.uid == owner
