"""Device profiles: valid, and allocated to claims with the selectors that people write for the real hardware."""

from __future__ import annotations

from uuid import uuid4

import pytest

from drakit.allocator import Allocated, Allocation, Allocator, Inventory, Unsatisfiable
from drakit.api import (
    DeviceClass,
    Node,
    ObjectMeta,
    ResourceClaim,
    ResourceSlice,
    set_defaults,
)
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.drivers import load_profile, parse_profile, profile_names, profile_slices
from drakit.validation import validate_create
from tests.builders.documents import request_of
from tests.builders.objects import claim_of
from tests.drivers.profiles import NOW

NODE = "node-1"
LABELS = {"fabric.example.com/zone": "zone-a"}


def slices_of(name: str) -> list[ResourceSlice]:
    return [set_defaults(each, NOW) for each in profile_slices(load_profile(name), NODE)]


def classes_of(name: str) -> list[DeviceClass]:
    return [set_defaults(each, NOW) for each in load_profile(name).device_classes()]


def claims_of(name: str) -> list[ResourceClaim]:
    return [set_defaults(each, NOW) for each in load_profile(name).example_claims()]


def allocate(name: str, *claims: ResourceClaim) -> Allocation:
    inventory = Inventory(gates=FeatureGates.all_on())
    inventory.put(Node(metadata=ObjectMeta(name=NODE, labels=LABELS)))
    for slice_ in slices_of(name):
        inventory.put(slice_)
    for class_ in classes_of(name):
        inventory.put(class_)
    return Allocator(inventory, claims).allocate(NODE, new_uid=lambda: str(uuid4()))


@pytest.mark.parametrize("name", profile_names())
def test_a_server_would_take_everything_of_a_profile(name: str) -> None:
    objects = [*slices_of(name), *classes_of(name), *claims_of(name)]
    assert [str(error) for each in objects for error in validate_create(each)] == []


@pytest.mark.parametrize("name", profile_names())
def test_the_claims_of_a_profile_are_allocated_on_its_node(name: str) -> None:
    claims = claims_of(name)
    assert claims
    for claim in claims:
        outcome = allocate(name, claim)
        assert isinstance(outcome, Allocated), f"{name}: {claim.metadata.name}: {outcome}"


def selecting_claim(name: str, class_name: str, expression: str, *, count: int = 1) -> ResourceClaim:
    asked = request_of("gpu", class_name, expression=expression, count=count, allocationMode="ExactCount")
    return claim_of(asked, name=name)


@pytest.mark.parametrize(
    ("profile", "of_profile", "fit"),
    [("a100-mig", "1g.5gb", 7), ("a100-mig", "3g.20gb", 2), ("h100-mig", "2g.20gb", 3), ("h100-mig", "7g.80gb", 1)],
)
def test_as_many_partitions_fit_on_a_card_as_on_the_real_one(profile: str, of_profile: str, fit: int) -> None:
    attributes = "device.attributes['gpu.nvidia.com']"
    expression = (
        f"{attributes}.profile == '{of_profile}' && device.attributes['resource.kubernetes.io'].pciBusID == '{{}}'"
    )
    bus = slices_of(profile)[1].spec.devices[0].attributes["resource.kubernetes.io/pciBusID"].string
    text = expression.format(bus)
    assert isinstance(allocate(profile, selecting_claim("all", "mig.nvidia.com", text, count=fit)), Allocated)
    assert isinstance(allocate(profile, selecting_claim("more", "mig.nvidia.com", text, count=fit + 1)), Unsatisfiable)


def test_a_card_that_is_given_whole_has_no_partitions_left() -> None:
    bus = "device.attributes['resource.kubernetes.io'].pciBusID == '0000:53:00.0'"
    whole, part = selecting_claim("whole", "gpu.nvidia.com", bus), selecting_claim("part", "mig.nvidia.com", bus)
    assert isinstance(allocate("h100-mig", whole), Allocated)
    assert isinstance(allocate("h100-mig", whole, part), Unsatisfiable)


def test_two_nodes_of_one_kind_have_devices_of_their_own() -> None:
    profile = load_profile("h100-8")
    here, there = (profile_slices(profile, name)[0].spec.devices[0] for name in ("node-1", "node-2"))
    assert here.attributes["uuid"] != there.attributes["uuid"]
    assert profile_slices(profile, "node-1") == profile_slices(profile, "node-1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("driver: [", "profile mine: "),
        ("pools: []", "driver"),
        ("driver: a.example.com\npolls: []", "polls"),
        ("driver: a.example.com\npools: [{devices: [{count: many}]}]", "count"),
    ],
)
def test_a_profile_that_cannot_be_read_is_told_with_its_name(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_profile(text, source="mine")


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{device: {name: '{nothing}'}}", "there is no value 'nothing'"),
        ("{for: {a: [1, 2], b: [1]}, device: {name: x}}", "lists of different lengths for a, b"),
    ],
)
def test_a_template_that_makes_no_device_is_told(template: str, said: str) -> None:
    profile = parse_profile(f"driver: a.example.com\npools: [{{devices: [{template}]}}]", source="mine")
    with pytest.raises(UsageError, match=said):
        profile_slices(profile, NODE)


def test_an_unknown_profile_is_told_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="there is no profile 'h200'; profiles are a100-mig, "):
        load_profile("h200")
