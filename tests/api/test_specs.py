"""Equal specs are shared as document, struct and JSON; different ones never, however many there are."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest

from drakit.api import ResourceClaim, from_plain, to_json
from drakit.api.codec import specs
from drakit.api.codec.specs import SHARED_SIZE, SharedSpecs
from drakit.api.objects.plain import encode_hook
from drakit.api.registry import Kind, find_kind
from tests.builders.documents import document

Plain = dict[str, Any]


def kind(group_version: str, name: str) -> Kind:
    found = find_kind(group_version, name)
    assert found is not None
    return found


CLAIM = kind("resource.k8s.io/v1", "ResourceClaim")
POD = kind("v1", "Pod")


class CountingEncoder:
    """Encodes as the real one does, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, value: object) -> bytes:
        self.calls += 1
        return msgspec.json.encode(value, enc_hook=encode_hook)


def spec(count: int = 1, **config: Any) -> Plain:
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": count}
    parameters = [{"opaque": {"driver": "gpu.example.com", "parameters": config}}] if config else []
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}], "config": parameters}}


def share(shared: SharedSpecs, kind: Kind, part: Plain, *, text: bytes = b"") -> Plain:
    return shared.share(kind, text or shared.json_if_any(part), part)


def claim_with_spec(name: str, spec: Plain) -> Plain:
    return document("ResourceClaim", name, spec, namespace="default")


def test_equal_specs_are_one_object_in_every_form() -> None:
    shared = SharedSpecs()
    one, two = share(shared, CLAIM, spec()), share(shared, CLAIM, spec())
    first, second = (
        shared.to_struct(ResourceClaim, claim_with_spec(name, part)) for name, part in (("a", one), ("b", two))
    )
    assert one is two
    assert one == spec()
    assert first.spec is second.spec
    assert (first.metadata.name, second.metadata.name) == ("a", "b")
    assert second == from_plain(ResourceClaim, claim_with_spec("b", spec()))
    assert shared.json_of(first.spec.devices) is shared.json_of(second.spec.devices)
    assert shared.json_of(first.spec.devices) == to_json(first.spec.devices)


def test_a_shared_spec_is_encoded_once_for_all_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, encoder = SharedSpecs(), CountingEncoder()
    monkeypatch.setattr(specs, "_ENCODER", encoder)
    part = share(shared, CLAIM, spec())
    made = shared.to_struct(ResourceClaim, claim_with_spec("a", part))
    for _ in range(3):
        shared.json_of(part)
        shared.json_of(made.spec)
        shared.json_of(made.spec.devices)
    assert encoder.calls == 4  # what was sent, and each form
    shared.json_of(spec())
    assert encoder.calls == 5


@pytest.mark.parametrize(
    "other", [spec(2), spec(a=1), spec(a=1.0), spec(a=True), spec(a="1"), spec(a=None), spec(a={}), spec(a=[])]
)
def test_specs_that_differ_in_anything_are_not_shared(other: Plain) -> None:
    shared = SharedSpecs()
    for each in (spec(), spec(a=1, b=2), spec(b=2, a=1), spec(a=[1])):
        assert share(shared, CLAIM, other) is not share(shared, CLAIM, each)
    assert share(shared, CLAIM, other) == other


def test_specs_of_two_kinds_are_not_shared() -> None:
    shared = SharedSpecs()
    assert share(shared, CLAIM, spec()) is not share(shared, POD, spec())


def test_a_spec_found_by_what_a_client_sent_is_the_one_with_defaults() -> None:
    shared = SharedSpecs()
    complete = share(shared, CLAIM, spec(), text=b'{"devices":{}}')
    assert shared.find(CLAIM, b'{"devices":{}}') is complete
    assert shared.find(POD, b'{"devices":{}}') is None
    assert complete == spec()


def test_who_changes_what_it_sent_changes_no_shared_spec() -> None:
    shared, sent = SharedSpecs(), spec()
    share(shared, CLAIM, sent)
    sent["devices"]["requests"].clear()
    assert share(shared, CLAIM, spec()) == spec()


def test_a_spec_that_is_long_or_no_json_stays_with_its_object() -> None:
    shared = SharedSpecs()
    for part in (spec(a="x" * SHARED_SIZE), spec(a="\ud800")):
        assert share(shared, CLAIM, part) is part
    assert len(shared) == 0
    assert shared.json_if_any(spec(a="\ud800")) == b""


@pytest.mark.parametrize("bounds", [{"number": 16}, {"size": 4096}])
def test_any_number_of_different_specs_takes_bounded_room(bounds: dict[str, int]) -> None:
    shared = SharedSpecs(**bounds)
    for count in range(2000):
        part = share(shared, CLAIM, spec(count))
        made = shared.to_struct(ResourceClaim, claim_with_spec("a", part))
        assert shared.json_of(made.spec.devices) == to_json(made.spec.devices)
    assert 0 < len(shared) < 40
    assert len(shared._parts) == 3 * len(shared)
    assert len(shared._structs) == len(shared)
    assert shared._used == sum(len(text) for _, _, text in shared._specs)


def test_a_spec_that_left_is_not_taken_for_one_at_its_place_in_memory() -> None:
    shared = SharedSpecs(number=1)
    for count in range(200):
        made = shared.to_struct(ResourceClaim, claim_with_spec("a", share(shared, CLAIM, spec(count))))
        assert made.spec.devices.requests[0].exactly is not None
        assert made.spec.devices.requests[0].exactly.count == count
        del made
        gc.collect(0)


def test_specs_that_have_the_same_default_part_leave_one_by_one() -> None:
    shared = SharedSpecs(number=1)
    for unknown in range(3):
        shared.to_struct(ResourceClaim, claim_with_spec("a", share(shared, CLAIM, {"unknown": unknown})))
    assert len(shared) == 1
