"""Claims and templates: what the recorded cases do not reach."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from drakit.base.gates import FeatureGates
from drakit.validation import Context, validate_create, validate_status_update, validate_update
from drakit.validation.context import EVERYTHING_ON
from tests.validation.objects import allocation_of, defaulted_claim, told, with_status

ON = EVERYTHING_ON


def test_a_plain_claim_is_good() -> None:
    assert validate_create(defaulted_claim()) == ()


def test_errors_of_one_claim_come_all_at_once() -> None:
    bad = defaulted_claim({"name": "A", "exactly": {"deviceClassName": "B_", "count": -1}}, constraints=[{}])
    assert told(validate_create(bad)) == [
        ("spec.devices.requests[0].name", "Invalid"),
        ("spec.devices.requests[0].exactly.deviceClassName", "Invalid"),
        ("spec.devices.requests[0].exactly.count", "Invalid"),
        ("spec.devices.constraints[0]", "Required"),
    ]


def test_a_reference_to_a_request_has_at_most_two_parts() -> None:
    bad = defaulted_claim(constraints=[{"requests": ["r/s/t"], "matchAttribute": "a.b/c"}])
    assert told(validate_create(bad)) == [("spec.devices.constraints[0].requests[0]", "Invalid")]


@pytest.mark.parametrize(
    ("labelled", "expected"),
    [(None, []), (True, []), (False, [("spec.devices.requests[0].adminAccess", "Forbidden")])],
)
def test_admin_access_needs_a_labelled_namespace(labelled: bool | None, expected: list[tuple[str, str]]) -> None:
    asked = defaulted_claim({"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}})
    assert told(validate_create(asked, Context(gates=ON.gates, admin_namespace=labelled))) == expected


def test_admin_access_that_was_granted_may_stay_when_the_label_is_gone() -> None:
    asked = defaulted_claim({"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}})
    granted = with_status(asked, allocation=allocation_of("d", adminAccess=True))
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    reserved = with_status(asked, allocation=allocation_of("d", adminAccess=True), reservedFor=[consumer])
    denied = Context(gates=ON.gates, admin_namespace=False)
    assert told(validate_status_update(granted, asked, denied)) == [
        ("status.allocation.devices.results[0].adminAccess", "Forbidden")
    ]
    assert validate_status_update(reserved, granted, denied) == ()


def test_an_expression_over_the_cost_limit_is_forbidden() -> None:
    nested = "[1,2,3,4,5,6,7,8,9]"
    text = "true"
    for index in range(7):
        text = f"{nested}.all(x{index}, {text})"
    asked = defaulted_claim(
        {"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": text}}]}}
    )
    (error,) = validate_create(asked)
    assert error.body == "Forbidden: too complex, exceeds cost limit"


def test_list_functions_are_known_only_with_their_gate() -> None:
    selectors = [{"cel": {"expression": 'device.attributes["a"].x.includes("y")'}}]
    asked = defaulted_claim({"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": selectors}})
    assert validate_create(asked) == ()
    (error,) = validate_create(asked, Context(gates=FeatureGates.defaults()))
    assert "undeclared reference" in error.detail


def test_a_constraint_without_attribute_names_the_only_one_that_exists_without_consumable_capacity() -> None:
    gates = FeatureGates.of({"DRAConsumableCapacity": False})
    bad = defaulted_claim(constraints=[{}])
    assert told(validate_create(bad, Context(gates=gates))) == [
        ("spec.devices.constraints[0].matchAttribute", "Required")
    ]


def test_a_stored_claim_with_an_expression_that_no_longer_compiles_can_still_be_labelled() -> None:
    selectors = [{"cel": {"expression": "no such thing"}}]
    old = defaulted_claim({"name": "r", "exactly": {"deviceClassName": "gpu", "selectors": selectors}})
    new = replace(old, metadata=replace(old.metadata, labels={"a": "b"}))
    assert validate_create(old) != ()
    assert validate_update(new, old) == ()


def test_reservations_of_a_claim_that_goes_away_may_only_be_removed() -> None:
    one, two = ({"resource": "pods", "name": name, "uid": name} for name in "ab")
    base = defaulted_claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    old = with_status(base, allocation=allocation_of("d"), reservedFor=[one])
    more = with_status(base, allocation=allocation_of("d"), reservedFor=[one, two])
    assert told(validate_status_update(more, old)) == [("status.reservedFor", "Forbidden")]
    assert validate_status_update(old, more) == ()


def test_a_report_that_did_not_change_is_left_alone() -> None:
    report = {"driver": "gpu.example.com", "pool": "p", "device": "d", "networkData": {"ips": ["10.0.0.1"]}}
    old = with_status(defaulted_claim(), allocation=allocation_of("d"), devices=[report])
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    new = with_status(defaulted_claim(), allocation=allocation_of("d"), devices=[report], reservedFor=[consumer])
    assert validate_status_update(new, old) == ()
    assert told(validate_status_update(old, with_status(defaulted_claim(), allocation=allocation_of("d")))) == [
        ("status.devices[0].networkData.ips[0]", "Invalid")
    ]


@pytest.mark.parametrize(
    ("address", "canonical"),
    [
        ("10.9.8.7/24", None),
        ("2001:db8::1/64", None),
        ("010.9.8.7/24", "10.9.8.7/24"),
        ("10.9.8.7/024", "10.9.8.7/24"),
        ("2001:DB8::1/64", "2001:db8::1/64"),
        ("::ffff:10.9.8.7/120", "10.9.8.7/24"),
    ],
)
def test_addresses_are_in_canonical_form(address: str, canonical: str | None) -> None:
    report = {"driver": "gpu.example.com", "pool": "p", "device": "d", "networkData": {"ips": [address]}}
    new = with_status(defaulted_claim(), allocation=allocation_of("d"), devices=[report])
    expected = [] if canonical is None else [f'must be in canonical form ("{canonical}")']
    before = with_status(defaulted_claim(), allocation=allocation_of("d"))
    assert [error.detail for error in validate_status_update(new, before)] == expected


@pytest.mark.parametrize(
    "address", ["", "10.9.8.7", "10.9.8.7/33", "10.9.8/24", "1.2.3.4.5/8", "::1%eth0/64", "::/129"]
)
def test_what_is_no_address_with_a_network_is_refused(address: str) -> None:
    report = {"driver": "gpu.example.com", "pool": "p", "device": "d", "networkData": {"ips": [address]}}
    new = with_status(defaulted_claim(), allocation=allocation_of("d"), devices=[report])
    before = with_status(defaulted_claim(), allocation=allocation_of("d"))
    (error,) = validate_status_update(new, before)
    assert error.detail.startswith("must be a valid address in CIDR form")


@pytest.mark.parametrize(
    ("share", "detail"),
    [
        ("11111111-2222-3333-4444-555555555555", None),
        ("11111111222233334444555555555555", "uid must be in RFC 4122 normalized form"),
        ("{11111111-2222-3333-4444-555555555555}", "uid must be in RFC 4122 normalized form"),
        ("urn:uuid:11111111-2222-3333-4444-555555555555", "uid must be in RFC 4122 normalized form"),
        ("urn:uid::11111111-2222-3333-4444-555555555555", 'error validating uid: invalid urn prefix: "urn:uid::"'),
        ("[11111111-2222-3333-4444-555555555555]", "error validating uid: invalid bracketed UUID format"),
        ("1111111g-2222-3333-4444-555555555555", "error validating uid: invalid UUID format"),
    ],
)
def test_a_share_id_is_a_uuid_in_its_normal_form(share: str, detail: str | None) -> None:
    errors = validate_status_update(
        with_status(defaulted_claim(), allocation=allocation_of("d", shareID=share)), defaulted_claim()
    )
    assert [error.detail[: len(detail or "")] for error in errors] == ([detail] if detail else [])
