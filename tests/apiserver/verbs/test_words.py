"""What is wrong is told in the words of a kube-apiserver v1.36.4, found by sending both the same requests."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from drakit.apiserver import Settings
from drakit.base.gates import FeatureGates
from tests.apiserver.calls import CLAIMS, CLASSES, MERGE, PODS, SLICES, Answer, on_loop, serving

TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
EVERYTHING = Settings(gates=FeatureGates.all_on())
Plain = dict[str, Any]


def _claim(**exactly: Any) -> Plain:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com", **exactly}}
    return {"metadata": {"name": "it"}, "spec": {"devices": {"requests": [request]}}}


def _template(request: Plain, **metadata: Any) -> Plain:
    spec = {"metadata": metadata, "spec": {"devices": {"requests": [request]}}}
    return {"metadata": {"name": "it"}, "spec": spec}


def _slice(**device: Any) -> Plain:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [{"name": "d", **device}]}
    return {"metadata": {"name": "it"}, "spec": spec}


def _pod(*, resources: Plain | None = None, **spec: Any) -> Plain:
    container = {"name": "c", "image": "i", "resources": resources or {}}
    return {"metadata": {"name": "it"}, "spec": {"containers": [container], **spec}}


def causes(answer: Answer) -> list[tuple[str, str]]:
    return [(each["field"], each["message"]) for each in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (
            CLAIMS,
            _claim(allocationMode=5),
            "ExactDeviceRequest.spec.devices.requests.exactly.allocationMode of type v1.DeviceAllocationMode",
        ),
        (
            CLAIMS.replace("/v1/", "/v1beta1/"),
            {"metadata": {"name": "it"}, "spec": {"devices": {"requests": [{"name": "r", "allocationMode": 5}]}}},
            "DeviceRequest.spec.devices.requests.allocationMode of type v1beta1.DeviceAllocationMode",
        ),
        (
            CLASSES,
            {"metadata": {"name": "it"}, "spec": {"config": [{"opaque": {"driver": 5}}]}},
            "OpaqueDeviceConfiguration.spec.config.DeviceConfiguration.opaque.driver of type string",
        ),
        (
            SLICES,
            _slice(attributes=5),
            "Device.spec.devices.attributes of type map[v1.QualifiedName]v1.DeviceAttribute",
        ),
        (PODS, _pod(restartPolicy=5), "PodSpec.spec.restartPolicy of type v1.RestartPolicy"),
    ],
)
@on_loop
async def test_a_wrong_type_is_told_with_the_name_of_the_type(path: str, body: Plain, words: str) -> None:
    async with serving(EVERYTHING) as api:
        answer = await api.send("POST", path, body)
        assert answer.code == 400
        assert answer.message.endswith(f"json: cannot unmarshal number into Go struct field {words}")


@pytest.mark.parametrize(
    ("path", "body", "times"),
    [
        (CLAIMS, _claim(), {"labels": 4, "uid": 2, "finalizers": 2, "finalizers[0]": 2}),
        (
            TEMPLATES,
            _template({"name": "r", "exactly": {"deviceClassName": "c"}}),
            {"labels": 4, "uid": 2, "finalizers": 2, "finalizers[0]": 2},
        ),
        (SLICES, _slice(), {"labels": 3, "uid": 2, "finalizers": 1, "finalizers[0]": 1}),
    ],
)
@on_loop
async def test_errors_of_metadata_are_told_as_often_as_upstream_tells_them(
    path: str, body: Plain, times: dict[str, int]
) -> None:
    async with serving(EVERYTHING) as api:
        assert (await api.send("POST", path, body)).code == 201
        wrong = {"labels": {"a b": "c"}, "uid": "other", "finalizers": ["x y"]}
        answer = await api.send("PATCH", f"{path}/it", {"metadata": wrong}, content=MERGE)
        told = Counter(field.removeprefix("metadata.") for field, _ in causes(answer))
        assert (answer.code, dict(told)) == (422, times)
        assert answer.message.count("metadata.uid: ") == 1, "the sentence has each error once"


@on_loop
async def test_what_is_wrong_with_a_changed_template_is_told_beside_that_it_may_not_change() -> None:
    async with serving(EVERYTHING) as api:
        await api.send("POST", TEMPLATES, _template({"name": "r", "exactly": {"deviceClassName": "c"}}))
        answer = await api.send("PUT", f"{TEMPLATES}/it", _template({"name": "r", "exactly": {"deviceClassName": ""}}))
        assert [field for field, _ in causes(answer)] == [
            "spec.spec.devices.requests[0].exactly.deviceClassName", "spec",
        ]  # fmt: skip


@on_loop
async def test_an_empty_list_of_finalizers_in_a_template_counts_as_set() -> None:
    async with serving(EVERYTHING) as api:
        request = {"name": "r", "exactly": {"deviceClassName": "c"}}
        answer = await api.send("POST", TEMPLATES, _template(request, finalizers=[]))
        assert causes(answer) == [("spec.metadata.finalizers", "Forbidden: cannot be set")]


@on_loop
async def test_claims_at_the_level_of_the_pod_are_forbidden_and_looked_up() -> None:
    async with serving(EVERYTHING) as api:
        claim = {"name": "a", "resourceClaimName": "a"}
        body = _pod(resourceClaims=[claim], resources={"claims": [{"name": "a"}, {"name": "b"}, {"name": "a"}]})
        body["spec"]["containers"][0]["resources"] = {}
        body["spec"]["resources"] = {"claims": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}
        answer = await api.send("POST", PODS, body)
        assert causes(answer) == [
            ("spec.resources.claims", "Forbidden: claims may not be set for Resources at pod-level"),
            ("spec.resources.claims[1]", 'Not found: "b": must be one of the names in pod.spec.resourceClaims: a'),
            ("spec.resources.claims[2]", 'Duplicate value: "a"'),
        ]


@on_loop
async def test_an_unknown_resource_of_a_container_is_neither_standard_nor_one_of_containers() -> None:
    async with serving(EVERYTHING) as api:
        answer = await api.send("POST", PODS, _pod(resources={"limits": {"gpus": "1"}}))
        assert {message.partition(": must ")[2] for _, message in causes(answer)} == {
            "be a standard resource type or fully qualified", "be a standard resource for containers",
        }  # fmt: skip


@on_loop
async def test_a_null_in_an_object_of_a_list_of_a_merge_patch_is_no_value() -> None:
    async with serving(EVERYTHING) as api:
        await api.send("POST", PODS, _pod())
        status = {"resourceClaimName": "c", "containers": ["c"], "resources": {"cpu": None}}
        patch = {"status": {"nodeAllocatableResourceClaimStatuses": [status]}}
        answer = await api.send("PATCH", f"{PODS}/it/status", patch, content=MERGE)
        assert causes(answer)[-1] == (
            "status.nodeAllocatableResourceClaimStatuses[0].resources", "Required value: must not be empty",
        )  # fmt: skip


@on_loop
async def test_unknown_fields_of_a_patch_are_told_in_the_order_of_their_names() -> None:
    async with serving(EVERYTHING) as api:
        await api.send("POST", CLAIMS, _claim())
        patch = {"status": {"pools": 1, "conditions": 2, "poolCount": 3}}
        answer = await api.send("PATCH", f"{CLAIMS}/it/status", patch, content=MERGE, fieldValidation="Warn")
        assert answer.response.warnings == tuple(
            f'unknown field "status.{name}"' for name in ("conditions", "poolCount", "pools")
        )


@pytest.mark.parametrize(("path", "body"), [(CLAIMS, _claim()), (PODS, _pod())])
@on_loop
async def test_an_update_of_the_status_leaves_the_time_of_deletion_alone(path: str, body: Plain) -> None:
    async with serving(EVERYTHING) as api:
        await api.send("POST", path, body)
        patch = {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}
        answer = await api.send("PATCH", f"{path}/it/status", patch, content=MERGE)
        assert (answer.code, answer.body["metadata"].get("deletionTimestamp")) == (200, None)


@on_loop
async def test_an_update_of_the_status_of_a_deployment_leaves_its_labels_alone() -> None:
    async with serving(EVERYTHING) as api:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": _pod()["spec"]}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        await api.send("POST", DEPLOYMENTS, {"metadata": {"name": "it", "labels": {"x": "y"}}, "spec": spec})
        patch = {"metadata": {"labels": {"x": "changed"}}}
        answer = await api.send("PATCH", f"{DEPLOYMENTS}/it/status", patch, content=MERGE)
        assert (answer.code, answer.body["metadata"]["labels"]) == (200, {"x": "y"})


@on_loop
async def test_an_object_of_another_uid_is_told_by_the_key_that_upstream_keeps_it_under() -> None:
    async with serving(EVERYTHING) as api:
        await api.send("POST", CLAIMS, _claim())
        body = _claim()
        body["metadata"]["uid"] = "other"
        answer = await api.send("PUT", f"{CLAIMS}/it", body)
        assert (answer.code, "Key: /registry/resourceclaims/default/it," in answer.message) == (409, True)


@on_loop
async def test_an_empty_list_in_a_spec_that_may_not_change_is_shown_as_one_and_a_missing_one_as_null() -> None:
    # As recorded in patch-0024; a spec without the list is shown with null in its place.
    async with serving() as api:
        await api.create(CLAIMS, _claim())
        for requests, shown in (({"requests": []}, "[]"), ({"requests": None}, "null"), ({"constraints": []}, None)):
            answer = await api.patch(f"{CLAIMS}/it", {"spec": {"devices": requests}})
            if shown is None:
                assert answer.code == 200
                continue
            value = f'{{"Devices":{{"Requests":{shown},"Constraints":null,"Config":null}}}}'
            assert answer.code == 422
            assert answer.message.endswith(f"is invalid: spec: Invalid value: {value}: field is immutable")
