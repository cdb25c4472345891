"""Which claim an entry of a pod means, and for whom it is reserved."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import (
    EXTENDED_RESOURCES,
    ClaimNotCreated,
    ClaimUnsupported,
    Pod,
    PodGroup,
    ResourceClaim,
    claim_name,
    claim_names,
    consumer_of,
    container_claims,
    extended_resource_claim_name,
    from_plain,
    group_claim_name,
    is_made_for_pod,
    is_reserved_for_pod,
    matching_group_claim,
    uses_claim,
)

DIRECT = {"name": "direct", "resourceClaimName": "mine"}
TEMPLATE = {"name": "template", "resourceClaimTemplateName": "t"}
GROUP = from_plain(
    PodGroup,
    {
        "metadata": {"name": "g", "namespace": "n", "uid": "group-uid"},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": [DIRECT, TEMPLATE, {"name": "none"}]},
        "status": {"resourceClaimStatuses": [{"name": "template", "resourceClaimName": "t-g-1"}]},
    },
)


def claiming_pod(
    *entries: dict[str, Any], group: str = "", uses: tuple[dict[str, str], ...] = (), **status: Any
) -> Pod:
    spec: dict[str, Any] = {
        "resourceClaims": list(entries),
        "containers": [{"name": "c", "resources": {"claims": list(uses)}}, {"name": "other"}],
    }
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    return from_plain(
        Pod, {"metadata": {"name": "p", "namespace": "n", "uid": "pod-uid"}, "spec": spec, "status": status}
    )


def claim_with(**parts: Any) -> ResourceClaim:
    return from_plain(
        ResourceClaim, {"metadata": {"name": "x", "namespace": "n", **parts.pop("metadata", {})}, **parts}
    )


def test_an_entry_names_its_claim_directly() -> None:
    asked = claiming_pod(DIRECT)
    assert claim_name(asked, asked.spec.resource_claims[0]) == "mine"


def test_a_claim_of_a_template_is_named_in_the_status() -> None:
    asked = claiming_pod(TEMPLATE, resourceClaimStatuses=[{"name": "template", "resourceClaimName": "p-template-x"}])
    assert claim_name(asked, asked.spec.resource_claims[0]) == "p-template-x"


def test_a_status_without_name_means_that_no_claim_is_needed() -> None:
    asked = claiming_pod(TEMPLATE, resourceClaimStatuses=[{"name": "template"}])
    assert claim_name(asked, asked.spec.resource_claims[0]) is None
    assert claim_names(asked) == {}


def test_a_claim_that_is_not_made_yet_is_worth_waiting_for() -> None:
    asked = claiming_pod(TEMPLATE)
    with pytest.raises(ClaimNotCreated, match='pod "n/p": ResourceClaim not created yet'):
        claim_name(asked, asked.spec.resource_claims[0])


def test_an_entry_that_says_nothing_is_not_understood() -> None:
    asked = claiming_pod({"name": "new"})
    with pytest.raises(ClaimUnsupported, match=r'spec.resourceClaim "new": none of the supported fields are set'):
        claim_name(asked, asked.spec.resource_claims[0])


def test_a_groups_entries_are_named_like_a_pods() -> None:
    direct, template, nothing = GROUP.spec.resource_claims
    assert group_claim_name(GROUP, direct) == "mine"
    assert group_claim_name(GROUP, template) == "t-g-1"
    with pytest.raises(ClaimUnsupported, match=r"PodGroup n/g, spec.resourceClaim none"):
        group_claim_name(GROUP, nothing)
    with pytest.raises(ClaimNotCreated, match="PodGroup n/g: ResourceClaim not created yet"):
        group_claim_name(PodGroup(metadata=GROUP.metadata), template)


def test_all_names_of_a_pod_include_that_of_extended_resources() -> None:
    extended = {"resourceClaimName": "p-extended-resources-x", "requestMappings": []}
    asked = claiming_pod(DIRECT, TEMPLATE, {"name": "new"}, extendedResourceClaimStatus=extended)
    assert extended_resource_claim_name(asked) == "p-extended-resources-x"
    assert claim_names(asked) == {"direct": "mine", EXTENDED_RESOURCES: "p-extended-resources-x"}
    assert extended_resource_claim_name(claiming_pod()) is None


def test_a_containers_claims_are_those_it_names_and_those_of_its_extended_resources() -> None:
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    extended = {"resourceClaimName": "ext", "requestMappings": [mapping, {**mapping, "containerName": "other"}]}
    uses = ({"name": "direct"}, {"name": "direct", "request": "gpu"}, {"name": "missing"})
    asked = claiming_pod(DIRECT, uses=uses, extendedResourceClaimStatus=extended)
    found = [list(container_claims(asked, container)) for container in asked.spec.containers]
    assert found == [
        [("mine", ""), ("mine", "gpu"), ("ext", "container-0-request-0")],
        [("ext", "container-0-request-0")],
    ]
    assert [container.name for container, _ in uses_claim(asked, "direct")] == ["c", "c"]


def test_a_claim_is_reserved_for_the_group_when_the_entry_is_the_groups() -> None:
    asked = claiming_pod(DIRECT, {**TEMPLATE, "resourceClaimTemplateName": "other"}, group="g")
    shared, own = asked.spec.resource_claims
    assert matching_group_claim(GROUP, shared) == GROUP.spec.resource_claims[0]
    assert matching_group_claim(GROUP, own) is None
    group, me = consumer_of(asked, shared, GROUP), consumer_of(asked, own, GROUP)
    assert (group.api_group, group.resource, group.name, group.uid) == (
        "scheduling.k8s.io",
        "podgroups",
        "g",
        "group-uid",
    )
    assert (me.api_group, me.resource, me.name, me.uid) == ("", "pods", "p", "pod-uid")
    assert consumer_of(asked, shared) == me


def test_a_pod_may_use_what_is_reserved_for_it_or_its_group() -> None:
    mine = claim_with(status={"reservedFor": [{"resource": "pods", "name": "p", "uid": "pod-uid"}]})
    ours = claim_with(
        status={"reservedFor": [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "?"}]}
    )
    assert is_reserved_for_pod(mine, claiming_pod())
    assert is_reserved_for_pod(ours, claiming_pod(group="g"))
    assert not is_reserved_for_pod(ours, claiming_pod(group="g"), groups=False)
    assert not is_reserved_for_pod(ours, claiming_pod(group="other"))
    assert not is_reserved_for_pod(ours, claiming_pod())


def owned(kind: str, name: str, uid: str, api_version: str = "v1", namespace: str = "n") -> ResourceClaim:
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}
    return claim_with(metadata={"namespace": namespace, "ownerReferences": [owner]})


def test_a_claim_of_a_template_is_made_for_one_pod_or_its_group() -> None:
    group = owned("PodGroup", "g", "?", "scheduling.k8s.io/v1alpha9")
    assert is_made_for_pod(owned("Pod", "p", "pod-uid"), claiming_pod())
    assert not is_made_for_pod(owned("Pod", "p", "earlier-uid"), claiming_pod())
    assert not is_made_for_pod(owned("Pod", "p", "pod-uid", namespace="m"), claiming_pod())
    assert not is_made_for_pod(claim_with(), claiming_pod())
    assert is_made_for_pod(group, claiming_pod(group="g"))
    assert not is_made_for_pod(group, claiming_pod(group="g"), groups=False)
    assert not is_made_for_pod(owned("PodGroup", "g", "?", "other/v1"), claiming_pod(group="g"))
