from __future__ import annotations

from msgspec.structs import replace

from drakit.api import Pod, ResourceClaim
from drakit.scheduler.dynamicresources.extended.needs import Need
from drakit.scheduler.dynamicresources.extended.requests import variant_of
from drakit.scheduler.dynamicresources.extended.special import (
    find_special,
    is_in_memory,
    is_special_of,
    special_claim,
    to_create,
)
from drakit.scheduler.framework import Code, NodeInfo
from tests.scheduler.dynamicresources.extended.making import GPU, NIC, asking_pod, container, node_with

CLASSES = {GPU: "gpu-class", NIC: "nic-class"}
BOTH = asking_pod(container("c", {GPU: "1", NIC: "1"}))


def need(of: Pod = BOTH, *, stored: ResourceClaim | None = None, others: tuple[str, ...] = ()) -> Need:
    asked = {each for one in (*of.spec.init_containers, *of.spec.containers) for each in one.resources.requests}
    classes = {resource: CLASSES[resource] for resource in sorted(asked) if resource not in others}
    return Need(of, sorted(asked), classes, "uid", stored)


def stored_claim(of: Pod, **classes: str) -> ResourceClaim:
    made = special_claim(
        of, variant_of(of, {GPU if each == "gpu" else NIC: name for each, name in classes.items()}), ""
    )
    return replace(made, metadata=replace(made.metadata, name="p-extended-resources-x", uid="real"))


def requests(claim: ResourceClaim | None) -> list[str]:
    return [each.exactly.device_class_name for each in claim.spec.devices.requests if each.exactly] if claim else []


def names(nodes: list[NodeInfo]) -> list[str]:
    return [each.name for each in nodes]


def test_nodes_are_grouped_by_the_resources_that_they_advertise() -> None:
    nodes = [
        node_with("dra-1"),
        node_with("gpus", gpu="4"),
        node_with("nics", nic="4"),
        node_with("all", gpu="4", nic="4"),
        node_with("dra-2"),
    ]
    refused, groups = need().split(nodes)
    assert refused == {}
    found = {tuple(names(list(group.nodes))): requests(group.claim) for group in groups}
    assert found == {
        ("dra-1", "dra-2"): ["gpu-class", "nic-class"],
        ("gpus",): ["nic-class"],
        ("nics",): ["gpu-class"],
        ("all",): [],
    }


def test_nodes_alike_share_one_claim_also_when_they_are_asked_about_later() -> None:
    asked = need()
    (first,), (second,) = asked.split([node_with("a")])[1], asked.split([node_with("b")])[1]
    assert first.claim is second.claim
    assert first.claim is not None


def test_a_node_that_advertises_zero_is_served_by_devices() -> None:
    ((group,)) = need().split([node_with("a", gpu="0", nic="1")])[1]
    assert requests(group.claim) == ["gpu-class"]


def test_a_node_that_provides_everything_needs_no_claim() -> None:
    (group,) = need().split([node_with("a", gpu="1", nic="1")])[1]
    assert group.claim is None
    assert group.mappings == ()


def test_a_resource_that_neither_node_nor_class_provides_refuses_the_node() -> None:
    refused, groups = need(others=(NIC,)).split([node_with("a"), node_with("b", nic="0")])
    assert {name: (status.code, status.message) for name, status in refused.items()} == {
        "a": (Code.UNRESOLVABLE, "cannot fit resource")
    }
    assert [names(list(group.nodes)) for group in groups] == [["b"]]


def test_no_nodes_are_no_groups() -> None:
    assert need().split([]) == ({}, [])


def test_more_devices_than_a_claim_may_have_refuse_the_nodes_that_have_no_own() -> None:
    refused, groups = need(asking_pod(container("a", {GPU: "20"}), container("b", {GPU: "13"}))).split(
        [node_with("dra"), node_with("plugin", gpu="64")]
    )
    assert {name: (status.code, status.message) for name, status in refused.items()} == {
        "dra": (
            Code.UNRESOLVABLE,
            "claim default/<extended-resources>: number of requested devices 33 exceeds the claim limit of 32",
        )
    }
    assert [names(list(group.nodes)) for group in groups] == [["plugin"]]


def test_as_many_devices_as_a_claim_may_have_are_fine() -> None:
    refused, _ = need(asking_pod(container("a", {GPU: "32"}))).split([node_with("dra")])
    assert refused == {}


def test_the_claim_of_an_earlier_attempt_serves_the_nodes_for_which_it_was_made() -> None:
    stored = stored_claim(BOTH, nic="nic-class")
    refused, groups = need(stored=stored).split(
        [node_with("dra"), node_with("gpus", gpu="1"), node_with("all", gpu="1", nic="1")]
    )
    assert {name: status.message for name, status in refused.items()} == dict.fromkeys(
        ("dra", "all"), "cannot schedule extended resource claim"
    )
    (group,) = groups
    assert group.claim is stored
    assert [each.request_name for each in group.mappings] == ["container-0-request-1"]


def test_the_claim_of_an_earlier_attempt_serves_nobody_when_the_class_changed_or_it_is_being_deleted() -> None:
    of = asking_pod(container("c", {GPU: "1"}))
    other_class = stored_claim(of, gpu="old-class")
    going = stored_claim(of, gpu="gpu-class")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    for stored in (other_class, going):
        assert set(need(of, stored=stored).split([node_with("dra")])[0]) == {"dra"}


def test_a_claim_that_asks_for_nothing_serves_nobody() -> None:
    empty = stored_claim(BOTH)
    assert set(need(stored=empty).split([node_with("all", gpu="1", nic="1"), node_with("dra")])[0]) == {"all", "dra"}


def test_the_special_claim_is_the_pods_own() -> None:
    made = special_claim(BOTH, variant_of(BOTH, CLASSES), "uid")
    assert is_in_memory(made)
    sent = to_create(made)
    assert (sent.metadata.name, sent.metadata.uid) == ("", "")
    assert sent.metadata.generate_name == "p-extended-resources-"
    assert sent.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    (owner,) = sent.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("v1", "Pod", "p", "uid-p")
    assert owner.controller is True
    assert owner.block_owner_deletion is None


def test_the_special_claim_is_found_by_annotation_and_owner() -> None:
    own = stored_claim(BOTH, gpu="gpu-class")
    unmarked = replace(own, metadata=replace(own.metadata, annotations={}))
    of_namesake = stored_claim(replace(BOTH, metadata=replace(BOTH.metadata, uid="other")), gpu="gpu-class")
    unowned = replace(own, metadata=replace(own.metadata, owner_references=()))
    assert is_special_of(own, BOTH)
    for other in (unmarked, of_namesake, unowned):
        assert not is_special_of(other, BOTH)
    assert find_special([unmarked, of_namesake, unowned], BOTH) is None
    assert find_special([unmarked, own], BOTH) is own


def test_the_oldest_of_several_special_claims_is_the_one() -> None:
    def made(name: str, when: str) -> ResourceClaim:
        claim = stored_claim(BOTH, gpu="gpu-class")
        return replace(claim, metadata=replace(claim.metadata, name=name, creation_timestamp=when))

    old, new = made("z", "2026-01-01T00:00:00Z"), made("a", "2026-01-01T00:00:01Z")
    assert find_special([new, old], BOTH) is old
