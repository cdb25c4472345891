"""The same object in every version: what moves, what stays."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import ResourceClaim, ResourceSlice, decode_plain, to_wire
from tests.builders.documents import document

Plain = dict[str, Any]


def wire(document: Plain, version: str) -> Plain:
    return to_wire(decode_plain(document, strict=True).object, version)


def claim_in(version: str, *requests: Plain) -> Plain:
    return document("ResourceClaim", "c", {"devices": {"requests": list(requests)}}, api=f"resource.k8s.io/{version}")


def slice_in(version: str, spec: Plain) -> Plain:
    pool = {"name": "p", "generation": 0, "resourceSliceCount": 1}
    return document("ResourceSlice", "s", {"driver": "d", "pool": pool, **spec}, api=f"resource.k8s.io/{version}")


EXACTLY: Plain = {
    "deviceClassName": "gpu",
    "selectors": [{"cel": {"expression": "true"}}],
    "allocationMode": "ExactCount",
    "count": 2,
    "adminAccess": False,
    "tolerations": [{"operator": "Exists"}],
    "capacity": {"requests": {"memory": "1Gi"}},
}


def test_v1beta1_writes_an_exact_request_flat() -> None:
    nested = claim_in("v1", {"name": "r", "exactly": EXACTLY})
    flat = claim_in("v1beta1", {"name": "r", **EXACTLY})
    assert wire(nested, "v1beta1")["spec"] == flat["spec"]
    assert wire(flat, "v1")["spec"] == nested["spec"]
    assert wire(flat, "v1beta2") == {**wire(nested, "v1"), "apiVersion": "resource.k8s.io/v1beta2"}


def test_v1beta1_writes_an_empty_class_beside_alternatives() -> None:
    alternatives = {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}
    (request,) = wire(claim_in("v1", alternatives), "v1beta1")["spec"]["devices"]["requests"]
    assert request == {**alternatives, "deviceClassName": ""}
    assert wire(claim_in("v1beta1", request), "v1")["spec"]["devices"]["requests"] == [alternatives]


@pytest.mark.parametrize(
    ("flat", "given"),
    [
        ({}, False),
        ({"deviceClassName": ""}, False),
        ({"count": 0}, False),
        ({"selectors": []}, False),
        ({"count": 1}, True),
        ({"adminAccess": False}, True),
        ({"capacity": {}}, True),
        ({"allocationMode": "All"}, True),
    ],
)
def test_a_flat_request_is_exact_as_soon_as_one_of_its_fields_is_set(flat: Plain, given: bool) -> None:
    value = decode_plain(claim_in("v1beta1", {"name": "r", **flat}), strict=True).object
    assert isinstance(value, ResourceClaim)
    assert (value.spec.devices.requests[0].exactly is not None) == given


def test_flat_fields_beside_alternatives_stay_for_validation_to_refuse() -> None:
    value = decode_plain(claim_in("v1beta1", {"name": "r", "count": 2, "firstAvailable": [{"name": "s"}]})).object
    assert isinstance(value, ResourceClaim)
    request = value.spec.devices.requests[0]
    assert request.exactly is not None
    assert request.first_available


def test_templates_convert_like_claims() -> None:
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": EXACTLY}]}}, "metadata": {"labels": {"a": "b"}}}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {}, "spec": spec}
    older = wire(template, "v1beta1")
    assert older["spec"]["spec"]["devices"]["requests"] == [{"name": "r", **EXACTLY}]
    assert wire(older, "v1") == template


def test_v1beta1_keeps_a_device_under_basic() -> None:
    content = {"attributes": {"a": {"int": 0}}, "capacity": {"m": {"value": "1"}}, "nodeName": "n", "allNodes": False}
    newer = slice_in("v1", {"perDeviceNodeSelection": True, "devices": [{"name": "d", **content}]})
    older = slice_in("v1beta1", {"perDeviceNodeSelection": True, "devices": [{"name": "d", "basic": content}]})
    assert wire(newer, "v1beta1") == older
    assert wire(older, "v1") == newer


@pytest.mark.parametrize("device", [{"name": "d"}, {"name": "d", "basic": None}, {"name": "d", "basic": {}}])
def test_v1beta1_always_writes_basic(device: Plain) -> None:
    (written,) = wire(slice_in("v1beta1", {"devices": [device]}), "v1beta1")["spec"]["devices"]
    assert written == {"name": "d", "basic": {}}


def test_an_empty_place_says_nothing_in_v1beta1() -> None:
    value = decode_plain(slice_in("v1beta1", {"nodeName": "", "allNodes": False}), strict=True).object
    assert isinstance(value, ResourceSlice)
    assert (value.spec.node_name, value.spec.all_nodes) == (None, None)
    kept = decode_plain(slice_in("v1", {"nodeName": "", "allNodes": False}), strict=True).object
    assert isinstance(kept, ResourceSlice)
    assert (kept.spec.node_name, kept.spec.all_nodes) == ("", False)


def test_taint_rules_and_pool_status_requests_are_served_in_two_versions() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {
            "deviceSelector": {"deviceClassName": "gpu", "driver": "d", "selectors": [{"cel": {"expression": "true"}}]},
            "taint": {"key": "k", "effect": "NoExecute"},
        },
        "status": {},
    }
    assert wire(rule, "v1beta2") == {**rule, "apiVersion": "resource.k8s.io/v1beta2"}
    request = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": "r"},
        "spec": {"driver": "d"},
        "status": {"poolCount": 0, "pools": [{"driver": "d", "poolName": "p", "generation": 0, "totalDevices": 0}]},
    }
    assert wire(request, "v1beta2") == request
    assert wire(request, "v1alpha3") == {**request, "apiVersion": "resource.k8s.io/v1alpha3"}


def test_the_internal_form_says_its_own_version() -> None:
    value = decode_plain(claim_in("v1beta1")).object
    assert isinstance(value, ResourceClaim)
    assert value.api_version == "resource.k8s.io/v1"


def test_empty_lists_are_written_as_kubernetes_writes_them() -> None:
    device = {"driver": "d", "pool": "p", "device": "x"}
    document = {**claim_in("v1"), "status": {"devices": [device], "reservedFor": []}}
    written = wire(document, "v1")
    assert written["spec"] == {"devices": {"requests": None}}
    assert written["status"] == {"devices": [{**device, "conditions": None}]}
    assert wire(written, "v1") == written
