"""What of a pod counts when the node decides whether it fits."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import Pod
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.nodeagent.pods.admission import NodeFit
from tests.builders.objects import pod_of

GPU = "example.com/gpu"


def taking(name: str, cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def claimed(*containers: str) -> dict[str, Any]:
    entry = {"resourceClaimName": "x", "resources": {"cpu": "2"}, "containers": list(containers)}
    return {"nodeAllocatableResourceClaimStatuses": [entry]}


def short(pod: Pod, cpu: str, *others: Pod, gpu: str = "0") -> list[tuple[str, str]]:
    """What is missing on a node of so much cpu, and how much of it the pod asks for."""
    amounts = {"cpu": cpu, "pods": "10", GPU: gpu}
    fit = NodeFit(lambda: {name: Quantity.parse(each) for name, each in amounts.items()}, FeatureGates.all_on())
    return [(each.resource, str(each.requested)) for each in fit.shortages(pod, others)]


SIDECAR = taking("sidecar", "500m", restartPolicy="Always")


@pytest.mark.parametrize(
    ("pod", "needs"),
    [
        (pod_of(taking("a", "1"), taking("b", "1")), "2"),
        (pod_of(taking("a", "1"), initContainers=[taking("i", "3"), taking("j", "2")]), "3"),
        (pod_of(taking("a", "1"), initContainers=[SIDECAR, taking("i", "3")]), "3500m"),
        (pod_of(taking("a", "1"), initContainers=[SIDECAR]), "1500m"),
        (pod_of(taking("a", "1"), overhead={"cpu": "250m"}), "1250m"),
        (pod_of(taking("a", "1"), resources={"requests": {"cpu": "3"}}), "3"),
        (pod_of(taking("a", "1"), taking("b", "1"), status=claimed("a", "b")), "4"),
    ],
    ids=["containers", "init peak", "sidecar and init", "sidecar", "overhead", "pod level first", "a claim once"],
)
def test_the_whole_footprint_of_a_pod_counts(pod: Pod, needs: str) -> None:
    assert short(pod, needs) == []
    less = str(Quantity.parse(needs) - Quantity.parse("1m"))
    assert short(pod, less) == [("cpu", needs)]


def test_what_is_there_counts_in_the_same_way() -> None:
    there = pod_of(taking("a", "1"), status=claimed("a"))
    assert short(pod_of(taking("b", "1")), "4", there) == []
    assert short(pod_of(taking("b", "1")), "3", there) == [("cpu", "1")]


def test_an_extended_resource_is_checked_unless_a_claim_provides_it() -> None:
    asking = {"name": "a", "resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}
    mapping = {"containerName": "a", "resourceName": GPU, "requestName": "r"}
    provided = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping]}}
    assert short(pod_of(asking), "1") == [(GPU, "1")]
    assert short(pod_of(asking), "1", gpu="1") == []
    assert short(pod_of(asking, status=provided), "1") == []
