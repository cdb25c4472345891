"""Plain data and trusted bytes: quick, and forgiving about what servers write."""

from __future__ import annotations

import pytest

from drakit.api import (
    Partial,
    Pod,
    ResourceClaim,
    ResourceSlice,
    from_json,
    from_plain,
    list_from_json,
    to_json,
    to_plain,
)
from drakit.base.errors import DecodeError


def test_fields_that_are_not_modelled_are_passed_over() -> None:
    assert from_plain(ResourceClaim, {"metadata": {"name": "c", "new": 1}, "newer": {}}).metadata.name == "c"


def test_nulls_of_a_server_are_fields_that_are_not_there() -> None:
    claim = from_json(
        ResourceClaim,
        b'{"metadata":{"name":"c","creationTimestamp":null},"spec":{"devices":{"requests":null,"config":[{"opaque":'
        b'{"driver":"d","parameters":{"keep":null}}}]}},"status":{"devices":[{"conditions":null}]}}',
    )
    assert claim.spec.devices.requests == ()
    assert claim.status.devices[0].conditions == ()
    opaque = claim.spec.devices.config[0].opaque
    assert opaque is not None
    assert opaque.parameters == {"keep": None}
    assert from_plain(Pod, {"spec": {"containers": None}, "metadata": {"labels": None}}) == Pod()


def test_data_that_does_not_fit_says_where() -> None:
    with pytest.raises(DecodeError, match=r"ResourceSlice: Expected `int`, got `str` - at `\$.spec.pool.generation`"):
        from_plain(ResourceSlice, {"spec": {"pool": {"generation": "x"}}})
    with pytest.raises(DecodeError, match=r"ResourceSlice: Expected `str`, got `int` - at `\$.spec.driver`"):
        from_json(ResourceSlice, b'{"spec":{"driver":1}}')
    with pytest.raises(DecodeError, match="quantities must match"):
        from_plain(ResourceSlice, {"spec": {"devices": [{"capacity": {"m": {"value": "x y"}}}]}})
    with pytest.raises(DecodeError, match="ResourceSlice: Input data was truncated"):
        from_json(ResourceSlice, b'{"spec":')


def test_an_empty_object_writes_what_is_always_written() -> None:
    assert to_plain(ResourceClaim()) == {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {},
        "spec": {"devices": {}},
        "status": {},
    }
    assert to_json(ResourceSlice()).startswith(
        b'{"kind":"ResourceSlice","apiVersion":"resource.k8s.io/v1","metadata":{}'
    )


def test_numbers_of_any_size_survive_in_raw_json() -> None:
    parameters = {"big": 12345678901234567890123, "float": 1.0, "small": -5e-324}
    config = [{"opaque": {"driver": "d", "parameters": parameters}}]
    claim = from_plain(ResourceClaim, {"spec": {"devices": {"config": config}}})
    assert from_json(ResourceClaim, to_json(claim)) == claim
    assert to_plain(claim)["spec"]["devices"]["config"] == config


def test_a_list_is_decoded_item_by_item() -> None:
    text = (
        b'{"kind":"ResourceClaimList","apiVersion":"resource.k8s.io/v1","metadata":{"resourceVersion":"7","continue":"x"},'
        b'"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":{"devices":{"requests":null}}}]}'
    )
    listed = list_from_json(ResourceClaim, text)
    assert [claim.metadata.name for claim in listed.items] == ["a", "b"]
    assert (listed.metadata.resource_version, listed.metadata.continue_) == ("7", "x")
    assert listed.items[1].api_version == "resource.k8s.io/v1"
    assert list_from_json(Pod, b'{"metadata":{},"items":null}').items == ()


def test_a_document_and_its_view_come_from_the_same_bytes() -> None:
    pair = Partial.from_json(Pod, b'{"metadata":{"name":"p"},"spec":{"hostPID":true}}')
    assert pair.view.metadata.name == "p"
    assert pair.document["spec"] == {"hostPID": True}
    with pytest.raises(DecodeError, match="Pod: "):
        Partial.from_json(Pod, b"{")
