"""Every limit: its value is good, one more is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from drakit.validation import validate_create, validate_status_update
from tests.validation.objects import (
    allocation_of,
    defaulted_claim,
    defaulted_class,
    device_slice,
    made,
    told,
    with_status,
)

Plain = dict[str, Any]
OPAQUE = {"driver": "a.b", "parameters": {}}
REQUESTS = [{"name": f"r{n}", "exactly": {"deviceClassName": "c"}} for n in range(33)]
ASKED = "spec.devices.requests[0].exactly"
ALLOCATED = "status.allocation.devices"


def asking(**exactly: Any) -> Any:
    return defaulted_claim({"name": "r", "exactly": {"deviceClassName": "c", **exactly}})


def selectors(count: int) -> list[Plain]:
    return [{"cel": {"expression": "true"}}] * count


def alternatives(count: int) -> Any:
    return defaulted_claim(
        {"name": "r", "firstAvailable": [{"name": f"s{n}", "deviceClassName": "c"} for n in range(count)]}
    )


def sized(length: int) -> Plain:
    """An object of JSON that is this long in its compact form."""
    return {"a": "x" * (length - len('{"a":""}'))}


def devices(count: int, **each: Any) -> Any:
    return device_slice(*({"name": f"d{n}", **each} for n in range(count)))


def attributes(count: int, **each: Any) -> Plain:
    return {f"a{n}": each or {"int": n} for n in range(count)}


def counters(count: int) -> Plain:
    return {f"c{n}": {"value": "1"} for n in range(count)}


def slice_with(**fields: Any) -> Any:
    return device_slice({"name": "d", **fields})


def policy(count: int) -> Any:
    allowed = [str(n) for n in range(1, count + 1)]
    capacity = {"c": {"value": "100", "requestPolicy": {"default": "1", "validValues": allowed}}}
    return slice_with(allowMultipleAllocations=True, capacity=capacity)


def binding(count: int, name: str) -> Any:
    other = "bindingFailureConditions" if name == "bindingConditions" else "bindingConditions"
    return slice_with(**{name: [f"a.b/{n}" for n in range(count)], other: ["a.b/other"]})


CREATED: list[tuple[str, Callable[[int], Any], int, str, str]] = [
    ("requests", lambda n: defaulted_claim(*REQUESTS[:n]), 32, "spec.devices.requests", "TooMany"),
    ("alternatives", alternatives, 8, "spec.devices.requests[0].firstAvailable", "TooMany"),
    ("selectors", lambda n: asking(selectors=selectors(n)), 32, f"{ASKED}.selectors", "TooMany"),
    (
        "constraints",
        lambda n: defaulted_claim(constraints=[{"matchAttribute": "a.b/c"}] * n),
        32,
        "spec.devices.constraints",
        "TooMany",
    ),
    (
        "requests of a constraint",
        lambda n: defaulted_claim(
            *REQUESTS[:32], constraints=[{"requests": [f"r{m}" for m in range(n)], "matchAttribute": "a.b/c"}]
        ),
        32,
        "spec.devices.constraints[0].requests",
        "TooMany",
    ),
    (
        "configurations",
        lambda n: defaulted_claim(config=[{"opaque": OPAQUE}] * n),
        32,
        "spec.devices.config",
        "TooMany",
    ),
    (
        "length of parameters",
        lambda n: defaulted_claim(config=[{"opaque": {**OPAQUE, "parameters": sized(n)}}]),
        10240,
        "spec.devices.config[0].opaque.parameters",
        "TooLong",
    ),
    (
        "length of an expression",
        lambda n: asking(selectors=[{"cel": {"expression": "true" + " " * (n - 4)}}]),
        10240,
        f"{ASKED}.selectors[0].cel.expression",
        "TooLong",
    ),
    ("selectors of a class", lambda n: defaulted_class(selectors=selectors(n)), 32, "spec.selectors", "TooMany"),
    (
        "configurations of a class",
        lambda n: defaulted_class(config=[{"opaque": OPAQUE}] * n),
        32,
        "spec.config",
        "TooMany",
    ),
    ("devices", devices, 128, "spec.devices", "TooMany"),
    (
        "devices with taints",
        lambda n: devices(n, taints=[{"key": "k", "effect": "None"}]),
        64,
        "spec.devices",
        "TooMany",
    ),
    (
        "devices with counters",
        lambda n: devices(n, consumesCounters=[{"counterSet": "s", "counters": counters(1)}]),
        64,
        "spec.devices",
        "TooMany",
    ),
    ("devices with lists", lambda n: devices(n, attributes={"a": {"ints": [1]}}), 64, "spec.devices", "TooMany"),
    ("attributes", lambda n: slice_with(attributes=attributes(n)), 32, "spec.devices[0]", "Invalid"),
    ("capacities", lambda n: slice_with(capacity=counters(n)), 32, "spec.devices[0]", "Invalid"),
    (
        "attributes and capacities",
        lambda n: slice_with(attributes=attributes(16), capacity=counters(n - 16)),
        32,
        "spec.devices[0]",
        "Invalid",
    ),
    (
        "values of attributes",
        lambda n: slice_with(attributes={"a": {"ints": [1] * (n - 1)}, "b": {"int": 1}}),
        48,
        "spec.devices[0]",
        "Invalid",
    ),
    (
        "length of a text",
        lambda n: slice_with(attributes={"a": {"string": "x" * n}}),
        64,
        "spec.devices[0].attributes[a].string",
        "TooLong",
    ),
    (
        "length of a version",
        lambda n: slice_with(attributes={"a": {"version": "1.2." + "3" * (n - 4)}}),
        64,
        "spec.devices[0].attributes[a].version",
        "TooLong",
    ),
    (
        "length of a name",
        lambda n: slice_with(attributes={"a" * n: {"int": 1}}),
        32,
        "spec.devices[0].attributes",
        "TooLong",
    ),
    (
        "taints",
        lambda n: slice_with(taints=[{"key": f"k{m}", "effect": "None"} for m in range(n)]),
        16,
        "spec.devices[0].taints",
        "TooMany",
    ),
    (
        "counter sets that a device uses",
        lambda n: slice_with(consumesCounters=[{"counterSet": f"s{m}", "counters": counters(1)} for m in range(n)]),
        2,
        "spec.devices[0].consumesCounters",
        "TooMany",
    ),
    (
        "counters that a device uses",
        lambda n: slice_with(consumesCounters=[{"counterSet": "s", "counters": counters(n)}]),
        32,
        "spec.devices[0].consumesCounters[0].counters",
        "TooMany",
    ),
    (
        "counter sets",
        lambda n: device_slice(sharedCounters=[{"name": f"s{m}", "counters": counters(1)} for m in range(n)]),
        8,
        "spec.sharedCounters",
        "TooMany",
    ),
    (
        "counters",
        lambda n: device_slice(sharedCounters=[{"name": "s", "counters": counters(n)}]),
        32,
        "spec.sharedCounters[0].counters",
        "TooMany",
    ),
    (
        "binding conditions",
        lambda n: binding(n, "bindingConditions"),
        4,
        "spec.devices[0].bindingConditions",
        "TooMany",
    ),
    (
        "binding failures",
        lambda n: binding(n, "bindingFailureConditions"),
        4,
        "spec.devices[0].bindingFailureConditions",
        "TooMany",
    ),
    ("length of a driver", lambda n: device_slice(driver="d" * n), 63, "spec.driver", "TooLong"),
]


@pytest.mark.parametrize(
    ("make", "limit", "path", "reason"), [each[1:] for each in CREATED], ids=[each[0] for each in CREATED]
)
def test_of_a_new_object(make: Callable[[int], Any], limit: int, path: str, reason: str) -> None:
    assert validate_create(make(limit)) == ()
    assert told(validate_create(make(limit + 1))) == [(path, reason)]


def test_of_allowed_amounts_there_are_ten() -> None:
    where = "spec.devices[0].capacity[c].requestPolicy.validValues"
    assert validate_create(policy(10)) == ()
    assert told(validate_create(policy(11))) == [(where, "TooMany"), (where, "Invalid")]


def reserved(count: int) -> Any:
    users = [{"resource": "pods", "name": "p", "uid": f"u{n}"} for n in range(count)]
    return with_status(defaulted_claim(), allocation=allocation_of("d"), reservedFor=users)


def configured(count: int) -> Any:
    given = allocation_of("d")
    given["devices"]["config"] = [{"source": "FromClaim", "opaque": OPAQUE}] * count
    return with_status(defaulted_claim(), allocation=given)


def reporting(**report: Any) -> Any:
    device = {"driver": "gpu.example.com", "pool": "p", "device": "d", **report}
    return with_status(defaulted_claim(), allocation=allocation_of("d"), devices=[device])


def conditions(count: int) -> list[Plain]:
    common = {"status": "True", "reason": "R", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    return [{"type": f"C{n}", **common} for n in range(count)]


def addresses(count: int) -> Any:
    return reporting(networkData={"ips": [f"10.0.0.{n}/24" for n in range(count)]})


def results(count: int) -> Any:
    return with_status(defaulted_claim(), allocation=allocation_of(*(f"d{n}" for n in range(count))))


REPORT = "status.devices[0]"
REPORTED: list[tuple[str, Callable[[int], Any], int, str, str]] = [
    ("results", results, 32, f"{ALLOCATED}.results", "TooMany"),
    ("configurations", configured, 64, f"{ALLOCATED}.config", "TooMany"),
    ("reservations", reserved, 256, "status.reservedFor", "TooMany"),
    ("conditions", lambda n: reporting(conditions=conditions(n)), 8, f"{REPORT}.conditions", "TooMany"),
    ("length of data", lambda n: reporting(data=sized(n)), 10240, f"{REPORT}.data", "TooLong"),
    ("addresses", addresses, 16, f"{REPORT}.networkData.ips", "TooMany"),
    (
        "length of an interface",
        lambda n: reporting(networkData={"interfaceName": "e" * n}),
        256,
        f"{REPORT}.networkData.interfaceName",
        "TooLong",
    ),
    (
        "length of a hardware address",
        lambda n: reporting(networkData={"hardwareAddress": "a" * n}),
        128,
        f"{REPORT}.networkData.hardwareAddress",
        "TooLong",
    ),
]


@pytest.mark.parametrize(
    ("make", "limit", "path", "reason"), [each[1:] for each in REPORTED], ids=[each[0] for each in REPORTED]
)
def test_of_the_status_of_a_claim(make: Callable[[int], Any], limit: int, path: str, reason: str) -> None:
    assert validate_status_update(make(limit), defaulted_claim()) == ()
    assert told(validate_status_update(make(limit + 1), defaulted_claim())) == [(path, reason)]


def test_a_rule_has_eight_conditions() -> None:
    def rule(count: int) -> Any:
        spec = {"taint": {"key": "k", "effect": "None"}}
        document = {"spec": spec, "status": {"conditions": conditions(count)}}
        return made("DeviceTaintRule", document, version="resource.k8s.io/v1beta2")

    assert validate_status_update(rule(8), rule(0)) == ()
    assert told(validate_status_update(rule(9), rule(0))) == [("status.conditions", "TooMany")]


@pytest.mark.parametrize(("limit", "good"), [(0, False), (1, True), (1000, True), (1001, False)])
def test_a_pool_question_asks_for_up_to_a_thousand_pools(limit: int, good: bool) -> None:
    spec = {"driver": "a.b", "limit": limit}
    found = made("ResourcePoolStatusRequest", {"spec": spec}, version="resource.k8s.io/v1alpha3")
    assert told(validate_create(found)) == ([] if good else [("spec.limit", "Invalid")])


def test_an_answer_has_up_to_a_thousand_pools_and_ten_conditions() -> None:
    def answered(pools: int, told_of: int) -> Any:
        each = [{"driver": "a.b", "poolName": f"p{n}", "generation": 1} for n in range(pools)]
        status = {"poolCount": pools, "pools": each, "conditions": conditions(told_of)}
        document = {"metadata": {"resourceVersion": "1"}, "spec": {"driver": "a.b"}, "status": status}
        return made("ResourcePoolStatusRequest", document, version="resource.k8s.io/v1alpha3")

    question = made(
        "ResourcePoolStatusRequest",
        {"metadata": {"resourceVersion": "1"}, "spec": {"driver": "a.b"}},
        version="resource.k8s.io/v1alpha3",
    )
    assert validate_status_update(answered(1000, 10), question) == ()
    assert told(validate_status_update(answered(1001, 11), question)) == [
        ("status.pools", "TooMany"),
        ("status.conditions", "TooMany"),
    ]
