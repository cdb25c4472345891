"""Warnings behind `--drakit-warnings`: what is accepted and yet will not do what its author hopes."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.apiserver import Settings
from drakit.base.gates import FeatureGates
from tests.apiserver.calls import CLAIMS, PODS, SLICES, Api, on_loop, serving
from tests.builders.documents import claim_document, pod_document, slice_document

RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
STATUS_REQUESTS = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests"


def telling(*, on: bool = True, gates: FeatureGates | None = None) -> Settings:
    return Settings(drakit_warnings=on, gates=gates or FeatureGates.all_on(), runtime_config="api/all=true")


async def warned(server: Api, path: str, body: Any, *, code: int = 201) -> list[str]:
    answer = await server.create(path, body)
    assert answer.code == code, answer.body
    return [text for text in answer.response.warnings if "deprecated" not in text]


def asking(**exactly: Any) -> Any:
    body = claim_document("claim")
    body["spec"] = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", **exactly}}]}}
    return body


def publishing(**device: Any) -> Any:
    body = slice_document("slice")
    body["spec"]["devices"] = [{"name": "d0", **device}]
    return body


@on_loop
async def test_nothing_is_said_without_the_switch() -> None:
    async with serving(telling(on=False)) as server:
        assert await warned(server, CLAIMS, asking(tolerations=[{}])) == []


@on_loop
async def test_an_empty_toleration_is_told_to_say_exists() -> None:
    async with serving(telling()) as server:
        (text,) = await warned(server, CLAIMS, asking(tolerations=[{}]))
        assert text.startswith("spec.devices.requests[0].exactly.tolerations[0]: tolerates only taints without a value")
        assert "operator: Exists" in text


@on_loop
async def test_a_negative_capacity_request_is_accepted_with_a_warning() -> None:
    async with serving(telling()) as server:
        (text,) = await warned(server, CLAIMS, asking(capacity={"requests": {"memory": "-1M"}}))
        assert text == (
            "spec.devices.requests[0].exactly.capacity.requests[memory]: "
            "-1M is less than nothing: no device is allocated for it"
        )


@on_loop
async def test_a_constraint_that_matches_and_differs_is_accepted_with_a_warning() -> None:
    body = asking()
    body["spec"]["devices"]["constraints"] = [{"matchAttribute": "a.example/x", "distinctAttribute": "a.example/x"}]
    async with serving(telling()) as server:
        (text,) = await warned(server, CLAIMS, body)
        assert "spec.devices.constraints[0]: matchAttribute and distinctAttribute exclude each other" in text


@on_loop
async def test_a_constraint_with_neither_attribute_is_refused_as_recorded_with_a_warning_that_fits() -> None:
    body = asking()
    body["spec"]["devices"]["constraints"] = [{"requests": ["gpu"]}]
    async with serving(telling()) as server:
        (text,) = await warned(server, CLAIMS, body, code=422)
        assert (
            text == "spec.devices.constraints[0]: has neither matchAttribute nor distinctAttribute: write one of them"
        )
    async with serving(telling(on=False)) as server:
        assert await warned(server, CLAIMS, body, code=422) == []


@on_loop
@pytest.mark.parametrize(
    ("capacity", "told"),
    [
        ({"value": "8", "requestPolicy": {"default": "-1"}}, "-1 is less than nothing"),
        ({"value": "8", "requestPolicy": {}}, "without a default"),
        ({"value": "8", "requestPolicy": {"default": "0", "validRange": {"min": "-1"}}}, "validRange.min: -1"),
        ({"value": "-8"}, "-8 is less than nothing"),
    ],
)
async def test_an_odd_policy_is_accepted_with_a_warning(capacity: Any, told: str) -> None:
    async with serving(telling()) as server:
        found = await warned(server, SLICES, publishing(allowMultipleAllocations=True, capacity={"memory": capacity}))
        assert any(told in text for text in found), found


@on_loop
async def test_a_capacity_with_and_without_the_domain_of_the_driver_is_accepted_with_a_warning() -> None:
    body = publishing()
    driver = body["spec"]["driver"]
    body["spec"]["devices"][0]["capacity"] = {"memory": {"value": "1"}, f"{driver}/memory": {"value": "2"}}
    body["spec"]["devices"][0]["attributes"] = {"model": {"string": "a"}, f"{driver}/model": {"string": "b"}}
    async with serving(telling()) as server:
        found = await warned(server, SLICES, body)
        assert [text.partition(":")[0] for text in found] == [
            f"spec.devices[0].attributes[{driver}/model]",
            f"spec.devices[0].capacity[{driver}/memory]",
        ]


@on_loop
async def test_a_rule_whose_gate_is_off_is_told_to_do_nothing() -> None:
    body = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": {"driver": "d"}, "taint": {"key": "k", "effect": "NoSchedule"}},
    }
    async with serving(telling(gates=FeatureGates.defaults())) as server:
        (text,) = await warned(server, RULES, body)
        assert text == "this rule taints nothing: the feature gate DRADeviceTaintRules is off"


@on_loop
async def test_a_pool_status_request_whose_gate_is_off_is_told_to_get_no_answer() -> None:
    body = {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourcePoolStatusRequest",
        "metadata": {"name": "r"},
        "spec": {"driver": "d"},
    }
    async with serving(telling(gates=FeatureGates.defaults())) as server:
        (text,) = await warned(server, STATUS_REQUESTS, body)
        assert text == "this request is not answered: the feature gate DRAResourcePoolStatus is off"


@on_loop
async def test_a_field_that_is_dropped_is_named_with_its_gate() -> None:
    gates = FeatureGates.parse("DRAConsumableCapacity=false")
    async with serving(telling(gates=gates)) as server:
        found = await warned(server, CLAIMS, asking(capacity={"requests": {"memory": "1"}}))
        assert found == [
            "spec.devices.requests[0].exactly.capacity: dropped: the feature gate DRAConsumableCapacity is off"
        ]


@on_loop
async def test_an_update_is_not_warned_of_what_was_said_at_creation() -> None:
    async with serving(telling()) as server:
        body = asking(tolerations=[{}])
        name = body["metadata"]["name"]
        await warned(server, CLAIMS, body)
        answer = await server.patch(f"{CLAIMS}/{name}", {"metadata": {"labels": {"a": "b"}}})
        assert answer.code == 200
        assert list(answer.response.warnings) == []


@on_loop
async def test_a_field_that_the_scheduler_does_not_act_on_is_told_at_creation() -> None:
    body = pod_document("p")
    body["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    body["spec"]["os"] = {"name": "linux"}
    async with serving(telling()) as server:
        found = await warned(server, PODS, body)
        assert [text.partition(":")[0] for text in found] == [
            "spec.os",
            "spec.volumes[0].persistentVolumeClaim",
        ]


@on_loop
async def test_affinity_and_spread_are_acted_on_and_not_told() -> None:
    body = pod_document("p")
    term = {"topologyKey": "zone", "labelSelector": {}}
    body["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    body["spec"]["topologySpreadConstraints"] = [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ]
    async with serving(telling()) as server:
        assert await warned(server, PODS, body) == []


@on_loop
async def test_a_container_that_the_pod_does_not_have_is_told_when_a_status_names_it() -> None:
    def charged(*containers: str) -> Any:
        entry = {"resourceClaimName": "c", "containers": [*containers], "resources": {"cpu": "1"}}
        return {"status": {"nodeAllocatableResourceClaimStatuses": [entry]}}

    async with serving(telling()) as server:
        body = pod_document("p", {"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]})
        known = body["spec"]["containers"][0]["name"]
        await server.create(PODS, body)
        first = await server.patch(f"{PODS}/p/status", charged(known))
        assert first.code == 200, first.body
        assert list(first.response.warnings) == []
        second = await server.patch(f"{PODS}/p/status", charged(known, "nobody"))
        assert second.code == 200, second.body
        where = "status.nodeAllocatableResourceClaimStatuses[0].containers[1]"
        assert list(second.response.warnings) == [f'{where}: the pod has no container "nobody"']
