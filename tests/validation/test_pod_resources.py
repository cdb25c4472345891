"""Resources of the pod itself, ephemeral containers, and what a status says of containers."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api import Partial, Pod
from drakit.validation import validate_create, validate_status_update

CONTAINER = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}}


def errors(**spec: Any) -> list[str]:
    document = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [CONTAINER], **spec},
    }  # fmt: skip
    return list(map(str, validate_create(Partial.of(Pod, document))))


COVERS = "must be greater than or equal to aggregate container requests of 2"
WITHIN = "must be less than or equal to pod limits of 2"
KINDS = 'supported values: "cpu", "hugepages-", "memory"'


@pytest.mark.parametrize(
    ("resources", "path", "told"),
    [
        ({"requests": {"cpu": "1"}}, "requests[cpu]", f'Invalid value: "1": {COVERS}'),
        ({"limits": {"cpu": "2"}}, "containers[0][cpu].limits", f'Invalid value: "3": {WITHIN}'),
        (
            {"requests": {"cpu": "4"}, "limits": {"cpu": "3"}},
            "requests",
            'Invalid value: "4": must be less than or equal to cpu limit of 3',
        ),
        ({"limits": {"pods": "1"}}, "limits[pods]", f'Unsupported value: "pods": {KINDS}'),
    ],
)
def test_pod_level_resources_that_do_not_fit_are_refused_as_kubernetes_does(
    resources: Any, path: str, told: str
) -> None:
    assert errors(resources=resources) == [f"spec.resources.{path}: {told}"]


def test_pod_level_resources_that_cover_the_containers_are_taken() -> None:
    assert errors(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "4", "memory": "1Gi"}}) == []


def test_no_pod_is_created_with_ephemeral_containers_and_they_get_no_resources() -> None:
    ephemeral = {"name": "debug", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    assert errors(ephemeralContainers=[ephemeral]) == [
        "spec.ephemeralContainers: Forbidden: cannot be set on create",
        "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
    ]


def test_the_keys_of_a_node_allocatable_status_are_checked() -> None:
    claims = [{"name": "c", "resourceClaimName": "claim"}]
    entry = {"resourceClaimName": "claim", "containers": ["main"], "resources": {"example.com/gpu": "1"}}
    document = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "resourceVersion": "1"},
        "spec": {"containers": [CONTAINER], "resourceClaims": claims},
    }  # fmt: skip
    told = {**document, "status": {"nodeAllocatableResourceClaimStatuses": [entry]}}
    found = validate_status_update(Partial.of(Pod, told), Partial.of(Pod, document))
    where = "status.nodeAllocatableResourceClaimStatuses[0].resources[example.com/gpu]"
    assert [str(each) for each in found] == [
        f'{where}: Invalid value: "example.com/gpu": must be a node allocatable resource name'
    ]
