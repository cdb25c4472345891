"""The ledger against a naive one: every sum worked out anew from the objects, in plain fractions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.api import Pod
from drakit.scheduler.dynamicresources.nodeallocatable import with_statuses
from drakit.scheduler.framework import NodeInfo
from tests.builders.objects import device, held, slice_of
from tests.scheduler.dynamicresources.nodeallocatable.objects import (
    accounting,
    charging_pod,
    container,
    node_info,
    uses,
)

Plain = dict[str, Any]
NANO = 10**9
NODE = node_info(cpu="12", memory="12")
milli = st.integers(1, 4000)


@st.composite
def devices(draw: st.DrawFn) -> list[Plain]:
    """Devices that count by number or by capacity, in thousandths."""
    made = []
    for number in range(draw(st.integers(1, 5))):
        mappings: Plain = {}
        for resource in draw(st.sets(st.sampled_from(["cpu", "memory"]))):
            mapping = {"allocationMultiplier": f"{draw(milli)}m"} if draw(st.booleans()) else {}
            keyed = {"capacityKey": "amount"} if draw(st.booleans()) else {}
            mappings[resource] = {**mapping, **keyed}
        amount = {"amount": {"value": f"{draw(milli)}m"}}
        made.append(device(f"d{number}", capacity=amount, nodeAllocatableResourceMappings=mappings))
    return made


def naive_device(plain: Plain, consumed: Plain) -> dict[str, Fraction]:
    found = {}
    for resource, mapping in plain["nodeAllocatableResourceMappings"].items():
        factor = _number(mapping.get("allocationMultiplier", "1000m"))
        amount = _number(consumed.get("amount") or plain["capacity"]["amount"]["value"])
        exact = factor * amount if "capacityKey" in mapping else factor
        found[resource] = Fraction(ceil(exact * NANO), NANO)
    return found


def _number(text: str) -> Fraction:
    return Fraction(int(text.removesuffix("m")), 1000)


def naive_demand(asked: Plain) -> dict[str, int]:
    """Containers and, per claim, devices; or the budget, where there is one."""
    total = {"cpu": Fraction(0), "memory": Fraction(0)}
    for requests in asked["containers"]:
        for resource, amount in requests.items():
            total[resource] += _number(amount)
    for claimed in asked["claims"]:
        for plain, consumed in claimed:
            for resource, amount in naive_device(plain, consumed).items():
                total[resource] += amount
    return {"cpu": ceil(total["cpu"] * 1000), "memory": ceil(total["memory"])}


@st.composite
def pods(draw: st.DrawFn, published: list[Plain]) -> Plain:
    requests = st.dictionaries(st.sampled_from(["cpu", "memory"]), milli.map(lambda amount: f"{amount}m"))
    consumed = st.sampled_from([{}, {"amount": "700m"}])
    device_use = st.tuples(st.sampled_from(published), consumed)
    return {
        "containers": draw(st.lists(requests, min_size=1, max_size=3)),
        "claims": draw(st.lists(st.lists(device_use, max_size=3), max_size=2)),
    }


def written(asked: Plain, number: int) -> tuple[Pod, list[Any]]:
    """The pod as an object, and its claims with their devices."""
    names = tuple(f"p{number}-claim{each}" for each in range(len(asked["claims"])))
    containers = [container(f"c{index}", *names, **requests) for index, requests in enumerate(asked["containers"])]
    claims = [_claim(name, claimed) for name, claimed in zip(names, asked["claims"], strict=True)]
    return charging_pod(*containers, name=f"p{number}", claims=names), claims


def _claim(name: str, claimed: list[tuple[Plain, Plain]]) -> Any:
    parts = [held(name, plain["name"], consumedCapacity=consumed) for plain, consumed in claimed]
    results = tuple(result for part in parts for result in part.status.allocation.devices.results)  # type: ignore[union-attr]
    whole = held(name)
    assert whole.status.allocation is not None
    allocation = msgspec.structs.replace(
        whole.status.allocation, devices=msgspec.structs.replace(whole.status.allocation.devices, results=results)
    )
    return msgspec.structs.replace(whole, status=msgspec.structs.replace(whole.status, allocation=allocation))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_pods_are_admitted_exactly_as_long_as_the_naive_sum_fits(data: st.DataObject) -> None:
    published = data.draw(devices())
    books = accounting(slice_of(*published))
    on, admitted = NODE, list[Plain]()
    for number in range(data.draw(st.integers(1, 5))):
        asked = data.draw(pods(published))
        on = _try(books, on, asked, number, admitted)
        assert {key: on.requested.get(key, 0) for key in ("cpu", "memory")} == _naive_total(admitted)
    rebuilt = NODE
    for each in on.pods.values():
        rebuilt = rebuilt.with_pod(each)
    assert rebuilt.requested == on.requested


def _try(books: Any, on: NodeInfo, asked: Plain, number: int, admitted: list[Plain]) -> NodeInfo:
    wanted, claims = written(asked, number)
    got = uses(wanted, *claims)
    refusal = books.attempt(wanted, ()).check(on, None, lambda: got) if books.is_active else None
    demand, used = naive_demand(asked), _naive_total(admitted)
    takes = any(plain["nodeAllocatableResourceMappings"] for claimed in asked["claims"] for plain, _ in claimed)
    if takes:
        limits = {"cpu": 12000, "memory": 12}
        fits = all(not demand[each] or demand[each] + used[each] <= limits[each] for each in limits)
        assert (refusal is None) == fits
    if refusal is not None:
        return on
    admitted.append(asked)
    return on.with_pod(with_statuses(wanted, books.statuses(got)))


def _naive_total(admitted: list[Plain]) -> dict[str, int]:
    demands = [naive_demand(asked) for asked in admitted]
    return {each: sum(demand[each] for demand in demands) for each in ("cpu", "memory")}
