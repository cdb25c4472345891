from __future__ import annotations

from msgspec.structs import replace

from drakit.api import DeviceClass, DeviceClassSpec, DeviceSelector, ObjectMeta
from drakit.scheduler.dynamicresources.extended.hints import asked_of, claim_helps, class_helps, node_helps
from drakit.scheduler.dynamicresources.extended.requests import variant_of
from drakit.scheduler.dynamicresources.extended.special import special_claim
from tests.scheduler.dynamicresources.extended.making import GPU, NIC, asking_pod, container, node_with

POD = asking_pod(container("c", {GPU: "1", "cpu": "1"}))
IMPLICIT = asking_pod(container("c", {"deviceclass.resource.kubernetes.io/gpu-class": "1"}))


def backing_class(resource: str | None = GPU, name: str = "gpu-class") -> DeviceClass:
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(extended_resource_name=resource))


def test_a_pod_asks_for_extended_resources_in_any_container_and_for_more_than_nothing() -> None:
    init = (container("i", {NIC: "1"}), container("z", {"example.com/zero": "0"}))
    assert asked_of(asking_pod(container("c", {GPU: "1", "cpu": "1"}), init=init)) == (GPU, NIC)
    assert asked_of(asking_pod(container("c", {"cpu": "1", "memory": "1Gi"}))) == ()


def test_a_new_class_helps_who_asks_for_its_explicit_or_implicit_name() -> None:
    assert class_helps(POD, None, backing_class())
    assert class_helps(IMPLICIT, None, backing_class(None))
    assert not class_helps(POD, None, backing_class(NIC))
    assert not class_helps(POD, None, backing_class(None))


def test_a_class_that_takes_the_name_helps() -> None:
    assert class_helps(POD, backing_class(None), backing_class())


def test_a_class_that_selects_other_devices_helps() -> None:
    new = backing_class()
    new = replace(new, spec=replace(new.spec, selectors=(DeviceSelector(),)))
    assert class_helps(POD, backing_class(), new)
    assert class_helps(IMPLICIT, backing_class(), new)


def test_a_class_that_leaves_the_name_to_an_older_one_helps() -> None:
    assert class_helps(POD, backing_class(), backing_class(None))
    assert class_helps(POD, backing_class(), None)


def test_a_class_that_stays_the_same_helps_nobody() -> None:
    relabelled = replace(backing_class(), metadata=ObjectMeta(name="gpu-class", labels={"a": "b"}))
    assert not class_helps(POD, backing_class(), relabelled)


def test_a_node_helps_when_what_it_advertises_of_the_resource_changes() -> None:
    bare, plugin, other = node_with("a").node, node_with("a", gpu="1").node, node_with("a", nic="1").node
    assert node_helps(POD, bare, plugin)
    assert node_helps(POD, plugin, bare)
    assert node_helps(POD, None, plugin)
    assert not node_helps(POD, bare, other)


def test_the_end_of_the_pods_own_special_claim_helps() -> None:
    own = special_claim(POD, variant_of(POD, {GPU: "gpu-class"}), "uid")
    others = special_claim(IMPLICIT, variant_of(POD, {GPU: "gpu-class"}), "uid")
    others = replace(others, metadata=replace(others.metadata, owner_references=()))
    assert claim_helps(POD, own, None)
    assert not claim_helps(POD, own, own)
    assert not claim_helps(POD, others, None)
