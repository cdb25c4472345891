"""PodGroups made from the template of a Workload."""

from __future__ import annotations

from typing import Any

from tests.apiserver.calls import on_loop, serving

BASE = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default"
POLICY = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def group_from_template(template: str) -> dict[str, Any]:
    reference = {"workload": {"workloadName": "job", "podGroupTemplateName": template}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "group"},
        "spec": {**POLICY, "podGroupTemplateRef": reference},
    }


WORKLOAD = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "Workload",
    "metadata": {"name": "job"},
    "spec": {"podGroupTemplates": [{"name": "workers", **POLICY}]},
}


@on_loop
async def test_a_group_of_a_workload_that_is_not_there_is_refused() -> None:
    async with serving() as api:
        answer = await api.create(f"{BASE}/podgroups", group_from_template("workers"))
        assert (answer.code, answer.message) == (
            403,
            'podgroups.scheduling.k8s.io "group" is forbidden: PodGroup rejected: Workload "job" not found',
        )


@on_loop
async def test_a_group_names_a_template_that_its_workload_has() -> None:
    async with serving() as api:
        assert (await api.create(f"{BASE}/workloads", WORKLOAD)).code == 201
        answer = await api.create(f"{BASE}/podgroups", group_from_template("nobody"))
        assert answer.code == 403
        assert 'PodGroupTemplate "nobody" not found in Workload "job"' in answer.message
        assert (await api.create(f"{BASE}/podgroups", group_from_template("workers"))).code == 201
