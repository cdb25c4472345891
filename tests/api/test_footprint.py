"""What a pod takes of a node."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drakit.api import container_requests, pod_limits, pod_requests
from drakit.base.quantity import Quantity
from tests.builders.objects import pod_of


def container(name: str = "c", *, sidecar: bool = False, limits: Any = None, **asked: str) -> dict[str, Any]:
    """`gpu` stands for the extended resource `example.com/gpu`."""
    requests = {"example.com/gpu" if resource == "gpu" else resource: amount for resource, amount in asked.items()}
    made: dict[str, Any] = {"name": name, "resources": {"requests": requests, "limits": limits or {}}}
    return {**made, "restartPolicy": "Always"} if sidecar else made


def amounts(found: dict[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in found.items()}


def test_containers_add_up() -> None:
    asked = pod_of(container(cpu="1", memory="1Gi"), container(cpu="500m", gpu="1"))
    assert amounts(pod_requests(asked)) == {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "1"}


def test_the_largest_init_container_counts_when_it_is_more() -> None:
    asked = pod_of(container(cpu="1", memory="2Gi"), init=[container(cpu="3"), container(cpu="2", memory="1Gi")])
    assert amounts(pod_requests(asked)) == {"cpu": "3", "memory": "2Gi"}


def test_a_sidecar_runs_beside_what_comes_after_it() -> None:
    init = [container(cpu="4"), container(cpu="1", sidecar=True), container(cpu="4"), container(cpu="2", sidecar=True)]
    assert amounts(pod_requests(pod_of(container(cpu="1"), init=init))) == {"cpu": "5"}
    assert amounts(pod_requests(pod_of(container(cpu="9"), init=init))) == {"cpu": "12"}


def test_what_a_claim_takes_is_added_once_per_claim() -> None:
    taken = [
        {"resourceClaimName": "a", "containers": ["c", "d"], "resources": {"cpu": "2", "memory": "1Gi"}},
        {"resourceClaimName": "b", "resources": {"cpu": "1"}},
    ]
    asked = pod_of(container(cpu="1"), status={"nodeAllocatableResourceClaimStatuses": taken})
    assert amounts(pod_requests(asked)) == {"cpu": "4", "memory": "1Gi"}
    assert amounts(pod_requests(asked, claims=False)) == {"cpu": "1"}
    doubled = pod_of(container(cpu="1"), status={"nodeAllocatableResourceClaimStatuses": [*taken, taken[0]]})
    assert pod_requests(doubled) == pod_requests(asked)


def test_what_the_pod_names_is_its_budget_for_containers_and_claims() -> None:
    taken = [{"resourceClaimName": "a", "resources": {"cpu": "8", "memory": "8Gi"}}]
    asked = pod_of(
        container(cpu="1", memory="1Gi", gpu="1"),
        resources={"requests": {"cpu": "4", "hugepages-2Mi": "2Mi", "example.com/gpu": "7"}},
        status={"nodeAllocatableResourceClaimStatuses": taken},
    )
    assert amounts(pod_requests(asked)) == {
        "cpu": "4", "memory": "9Gi", "hugepages-2Mi": "2Mi", "example.com/gpu": "1",
    }  # fmt: skip


def test_overhead_comes_on_top_of_everything() -> None:
    asked = pod_of(container(cpu="1"), resources={"requests": {"cpu": "2"}}, overhead={"cpu": "250m", "memory": "64Mi"})
    assert amounts(pod_requests(asked)) == {"cpu": "2250m", "memory": "64Mi"}
    assert amounts(pod_requests(asked, overhead=False)) == {"cpu": "2"}


def test_limits_add_up_like_requests_and_take_overhead_only_where_there_are_any() -> None:
    asked = pod_of(
        container(limits={"cpu": "1", "memory": "0"}),
        init=[container(limits={"cpu": "3"})],
        overhead={"cpu": "1", "memory": "1Gi", "pods": "1"},
    )
    assert amounts(pod_limits(asked)) == {"cpu": "4", "memory": "0"}
    assert amounts(pod_limits(pod_of(resources={"limits": {"memory": "1Gi"}}))) == {"memory": "1Gi"}


def test_a_container_without_request_is_taken_to_ask_for_the_least() -> None:
    least = {"cpu": Quantity.parse("100m")}
    asked = pod_of(container(cpu="0"), container(memory="1Gi"))
    assert amounts(pod_requests(asked, at_least=least)) == {"cpu": "100m", "memory": "1Gi"}


def test_a_pod_that_is_being_resized_takes_the_most_of_what_it_asks_was_promised_and_has() -> None:
    statuses = [
        {"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2", "memory": "2Gi"}}
    ]
    status: dict[str, Any] = {"containerStatuses": statuses}
    asked = pod_of(container("c", cpu="1", memory="1Gi"), status=status)
    assert amounts(pod_requests(asked)) == {"cpu": "1", "memory": "1Gi"}
    assert amounts(pod_requests(asked, status=True)) == {"cpu": "3", "memory": "2Gi"}
    infeasible = {**status, "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
    grown = pod_of(container("c", cpu="9", memory="1Gi"), status=infeasible)
    assert amounts(pod_requests(grown, status=True)) == {"cpu": "3", "memory": "2Gi"}


CONTAINERS = st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=6)


@given(st.lists(st.integers(0, 9), max_size=4), CONTAINERS)
def test_the_sum_is_the_largest_moment_of_the_pods_life(running: list[int], init: list[tuple[bool, int]]) -> None:
    asked = pod_of(
        *(container(cpu=str(cpu)) for cpu in running),
        init=[container(sidecar=sidecar, cpu=str(cpu)) for sidecar, cpu in init],
    )
    moments = [sum(cpu for sidecar, cpu in init if sidecar) + sum(running)]
    for index, (_, cpu) in enumerate(init):
        moments.append(cpu + sum(before for sidecar, before in init[:index] if sidecar))
    found = container_requests(asked).get("cpu", Quantity.parse("0"))
    assert found.value == max(moments)
