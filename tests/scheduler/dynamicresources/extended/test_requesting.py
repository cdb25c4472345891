from __future__ import annotations

from drakit.scheduler.dynamicresources.extended.requests import ResourceRequests, variant_of
from tests.scheduler.dynamicresources.extended.making import GPU, NIC, asking_pod, container

CLASSES = {GPU: "gpu-class"}


def asked(variant: ResourceRequests) -> list[tuple[str, str, int]]:
    return [
        (each.name, each.exactly.device_class_name, each.exactly.count) for each in variant.requests if each.exactly
    ]


def mapped(variant: ResourceRequests) -> list[tuple[str, str, str]]:
    return [(each.container_name, each.resource_name, each.request_name) for each in variant.mappings]


def test_a_container_has_a_request_of_as_many_devices() -> None:
    found = variant_of(asking_pod(container("c", {GPU: "2"})), CLASSES)
    assert asked(found) == [("container-0-request-0", "gpu-class", 2)]
    assert mapped(found) == [("c", GPU, "container-0-request-0")]
    assert found.requests[0].exactly is not None
    assert found.requests[0].exactly.allocation_mode == "ExactCount"
    assert found.devices == 2


def test_requests_are_numbered_among_all_resources_of_the_container_by_name() -> None:
    found = variant_of(asking_pod(container("c", {"memory": "1Gi", "cpu": "1", GPU: "1"})), CLASSES)
    assert asked(found) == [("container-0-request-1", "gpu-class", 1)]


def test_each_container_and_each_resource_has_its_own_request() -> None:
    both = asking_pod(container("a", {GPU: "1", NIC: "2"}), container("b", {GPU: "3"}), container("c", {"cpu": "1"}))
    found = variant_of(both, {NIC: "nic-class", GPU: "gpu-class"})
    assert asked(found) == [
        ("container-0-request-0", "gpu-class", 1),
        ("container-0-request-1", "nic-class", 2),
        ("container-1-request-0", "gpu-class", 3),
    ]
    assert mapped(found) == [
        ("a", GPU, "container-0-request-0"),
        ("b", GPU, "container-1-request-0"),
        ("a", NIC, "container-0-request-1"),
    ]


def test_an_explicit_and_an_implicit_name_of_one_class_are_two_requests() -> None:
    implicit = "deviceclass.resource.kubernetes.io/gpu-class"
    found = variant_of(asking_pod(container("c", {GPU: "1", implicit: "2"})), {GPU: "gpu-class", implicit: "gpu-class"})
    assert asked(found) == [("container-0-request-0", "gpu-class", 2), ("container-0-request-1", "gpu-class", 1)]


def test_a_resource_that_the_node_provides_is_left_out() -> None:
    found = variant_of(asking_pod(container("c", {GPU: "1", NIC: "1"})), {NIC: "nic-class"})
    assert asked(found) == [("container-0-request-1", "nic-class", 1)]


def test_a_container_that_asks_for_zero_has_no_request() -> None:
    found = variant_of(asking_pod(container("a", {GPU: "0"}), container("b", {GPU: "1"})), CLASSES)
    assert asked(found) == [("container-1-request-0", "gpu-class", 1)]
    assert mapped(found) == [("b", GPU, "container-1-request-0")]


def test_an_init_container_uses_the_request_of_a_later_container() -> None:
    found = variant_of(asking_pod(container("c", {GPU: "2"}), init=(container("i", {GPU: "1"}),)), CLASSES)
    assert asked(found) == [("container-1-request-0", "gpu-class", 2)]
    assert mapped(found) == [("c", GPU, "container-1-request-0"), ("i", GPU, "container-1-request-0")]


def test_an_init_container_uses_several_requests_and_asks_only_for_what_is_missing() -> None:
    found = variant_of(
        asking_pod(container("a", {GPU: "1"}), container("b", {GPU: "2"}), init=(container("i", {GPU: "5"}),)), CLASSES
    )
    assert asked(found) == [
        ("container-0-request-0", "gpu-class", 2),
        ("container-1-request-0", "gpu-class", 1),
        ("container-2-request-0", "gpu-class", 2),
    ]
    assert mapped(found)[2:] == [
        ("i", GPU, "container-1-request-0"),
        ("i", GPU, "container-2-request-0"),
        ("i", GPU, "container-0-request-0"),
    ]


def test_an_init_container_takes_no_more_requests_than_it_needs() -> None:
    found = variant_of(
        asking_pod(container("a", {GPU: "1"}), container("b", {GPU: "2"}), init=(container("i", {GPU: "1"}),)), CLASSES
    )
    assert mapped(found)[2:] == [("i", GPU, "container-1-request-0")]


def test_init_containers_share_the_largest_request_for_what_is_missing() -> None:
    init = (container("i", {GPU: "1"}), container("j", {GPU: "3"}), container("k", {GPU: "2"}))
    found = variant_of(asking_pod(container("c", {"cpu": "1"}), init=init), CLASSES)
    assert asked(found) == [("container-1-request-0", "gpu-class", 3)]
    assert mapped(found) == [(name, GPU, "container-1-request-0") for name in "ijk"]


def test_the_first_of_equally_needy_init_containers_gives_the_name() -> None:
    init = (container("i", {GPU: "2"}), container("j", {GPU: "2"}))
    assert asked(variant_of(asking_pod(init=init), CLASSES)) == [("container-0-request-0", "gpu-class", 2)]


def test_a_sidecar_has_its_own_request_which_only_earlier_init_containers_use() -> None:
    init = (container("i", {GPU: "1"}), container("s", {GPU: "1"}, sidecar=True), container("j", {GPU: "2"}))
    found = variant_of(asking_pod(container("c", {NIC: "1"}), init=init), {GPU: "gpu-class", NIC: "nic-class"})
    assert asked(found) == [
        ("container-1-request-0", "gpu-class", 1),
        ("container-2-request-0", "gpu-class", 2),
        ("container-3-request-0", "nic-class", 1),
    ]
    assert mapped(found) == [
        ("s", GPU, "container-1-request-0"),
        ("i", GPU, "container-1-request-0"),
        ("j", GPU, "container-2-request-0"),
        ("c", NIC, "container-3-request-0"),
    ]


def test_ephemeral_containers_count_nowhere() -> None:
    from msgspec.structs import replace

    made = asking_pod(container("c", {GPU: "1"}))
    made = replace(made, spec=replace(made.spec, ephemeral_containers=(container("e", {GPU: "4"}),)))
    assert variant_of(made, CLASSES).devices == 1


def test_requests_come_in_the_order_of_their_names_as_texts() -> None:
    many = asking_pod(*(container(f"c{number}", {GPU: "1"}) for number in range(11)))
    assert [each.name for each in variant_of(many, CLASSES).requests[:3]] == [
        "container-0-request-0",
        "container-1-request-0",
        "container-10-request-0",
    ]
