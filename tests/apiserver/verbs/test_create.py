"""Creating objects: what the server sets, what it refuses, what it tells."""

from __future__ import annotations

import pytest

from drakit.api import DeviceClaim, DeviceRequest, ExactDeviceRequest, ObjectMeta, ResourceClaim, ResourceClaimSpec
from drakit.api.exchange import OneObject, Request
from tests.apiserver.calls import CLAIMS, CLASSES, NAMESPACES, PODS, namespace, on_loop, serving
from tests.builders.documents import claim_document, class_document, pod_document

REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


@on_loop
async def test_a_new_object_gets_what_only_the_server_sets() -> None:
    async with serving() as api:
        sent = class_document(
            "gpu", "true", uid="mine", generation=9, creationTimestamp="2001-01-01T00:00:00Z", selfLink="/x"
        )
        made = await api.create(CLASSES, sent)
        metadata = made.body["metadata"]
        assert made.code == 201
        assert metadata["uid"] != "mine"
        assert metadata["generation"] == 1
        assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
        assert metadata["resourceVersion"]
        assert "selfLink" not in metadata


@on_loop
async def test_defaults_and_status_are_in_the_answer_and_in_the_store() -> None:
    async with serving() as api:
        made = await api.create(CLAIMS, {**claim_document("a"), "status": {"reservedFor": [{"resource": "pods"}]}})
        read = await api.get(f"{CLAIMS}/a")
        assert made.body["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
        assert made.body["status"] == {}
        assert read.body == made.body


@on_loop
async def test_raw_json_that_must_be_an_object_is_refused_as_something_else() -> None:
    async with serving() as api:
        entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": 5}
        pod = pod_document("a", {"containers": [{"name": "c", "image": "i"}]}, managedFields=[entry])
        refused = [
            await api.create(PODS, pod),
            await api.create(REVISIONS, {"metadata": {"name": "a"}, "revision": 1, "data": [1]}),
        ]
        assert [each.code for each in refused] == [400, 400]
        assert refused[0].message.endswith("got `int` - at `$.metadata.managedFields[0].fieldsV1`")
        assert refused[1].message.endswith("got `array` - at `$.data`")


@on_loop
async def test_a_name_that_is_taken_is_a_conflict() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a"))
        again = await api.create(CLAIMS, claim_document("a"))
        assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
        assert again.message == 'resourceclaims.resource.k8s.io "a" already exists'


@on_loop
async def test_a_generated_name_begins_with_what_was_asked_and_fits() -> None:
    async with serving() as api:
        sent = claim_document("")
        sent["metadata"] = {"generateName": "x" * 70 + "-"}
        names = [(await api.create(CLAIMS, sent)).body["metadata"]["name"] for _ in range(3)]
        assert all(len(name) == 63 and name.startswith("x" * 58) for name in names)
        assert len(set(names)) == 3


@on_loop
async def test_a_dry_run_answers_like_a_create_and_stores_nothing() -> None:
    async with serving() as api:
        made = await api.create(CLAIMS, claim_document("a"), dryRun="All")
        assert made.code == 201
        assert "resourceVersion" not in made.body["metadata"]
        assert (await api.get(f"{CLAIMS}/a")).code == 404
        await api.create(CLAIMS, claim_document("a"))
        assert (await api.create(CLAIMS, claim_document("a"), dryRun="All")).code == 409


@on_loop
async def test_an_unknown_field_is_refused_told_or_ignored() -> None:
    sent = {**claim_document("a"), "extra": 1}
    async with serving() as api:
        strict = await api.create(CLAIMS, sent, fieldValidation="Strict")
        assert strict.code == 400
        assert 'strict decoding error: unknown field "extra"' in strict.message
        warned = await api.create(CLAIMS, sent)
        assert (warned.code, warned.response.warnings) == (201, ('unknown field "extra"',))
        assert "extra" not in warned.body
        ignored = await api.create(CLAIMS, {**sent, "metadata": {"name": "b"}}, fieldValidation="Ignore")
        assert (ignored.code, ignored.response.warnings) == (201, ())


@on_loop
async def test_a_pod_is_kept_whole_with_fields_that_nobody_here_models() -> None:
    sent = pod_document(
        "p", {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}], "dnsConfig": {"options": [{"name": "ndots"}]}}
    )
    sent["spec"]["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 3}}}
    async with serving() as api:
        await api.create(PODS, sent)
        spec = (await api.get(f"{PODS}/p")).body["spec"]
        assert spec["hostAliases"] == [{"ip": "10.0.0.1", "hostnames": ["a"]}]
        assert spec["dnsConfig"] == {"options": [{"name": "ndots"}]}
        assert spec["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 3}}}


@on_loop
async def test_a_namespace_that_is_not_there_takes_nothing() -> None:
    async with serving() as api:
        path = CLAIMS.replace("default", "nowhere")
        refused = await api.create(path, claim_document("a"))
        assert (refused.code, refused.message) == (404, 'namespaces "nowhere" not found')


@on_loop
async def test_a_namespace_that_is_being_deleted_takes_nothing_new() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, namespace("team"))
        await api.delete(f"{NAMESPACES}/team")
        refused = await api.create(CLAIMS.replace("default", "team"), claim_document("a"))
        assert refused.code == 403
        assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"apiVersion": "resource.k8s.io/v1beta1"}, "does not match the expected API version"),
        ({"kind": "DeviceClass"}, "unknown conversion"),
        ({"kind": "Pod", "apiVersion": "v1"}, "converting (v1.Pod) to (resource.ResourceClaim): unknown conversion"),
        ({"kind": "Nonsense"}, 'no kind "Nonsense" is registered'),
        ({"metadata": {"name": "a", "namespace": "other"}}, "does not match the namespace sent on the request"),
        ({"metadata": {"name": "a", "resourceVersion": "7"}}, "resourceVersion should not be set"),
        ({"spec": []}, "cannot unmarshal array into Go struct field ResourceClaim.spec"),
    ],
)
def test_what_does_not_fit_the_path_is_a_bad_request(change: dict[str, object], said: str) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            refused = await api.create(CLAIMS, {**claim_document("a"), **change})
            assert refused.code == 400
            assert said in refused.message

    run()


@on_loop
async def test_kind_and_version_may_be_left_out() -> None:
    async with serving() as api:
        sent = {key: value for key, value in claim_document("a").items() if key not in ("kind", "apiVersion")}
        assert (await api.create(CLAIMS, sent)).code == 201


@on_loop
async def test_a_client_in_the_process_sends_and_gets_structs() -> None:
    exactly = ExactDeviceRequest(device_class_name="gpu.example.com")
    devices = DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=exactly),))
    sent = ResourceClaim(metadata=ObjectMeta(name="a"), spec=ResourceClaimSpec(devices=devices))
    async with serving() as api:
        response = await api.server.handle(Request(method="POST", path=CLAIMS, document=sent))
        assert response.code == 201
        assert isinstance(response.content, OneObject)
        made = response.content.typed
        assert isinstance(made, ResourceClaim)
        assert made.metadata.resource_version
        patched = await api.server.handle(
            Request(
                method="PATCH", path=f"{CLAIMS}/a", headers={"content-type": "application/merge-patch+json"},
                document={"metadata": {"labels": {"a": "b"}}},
            )
        )  # fmt: skip
        assert isinstance(patched.content, OneObject)
        assert patched.content.document["metadata"]["labels"] == {"a": "b"}


@on_loop
async def test_yaml_is_another_way_to_write_a_body() -> None:
    body = b"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n"
    async with serving() as api:
        assert (await api.create(CLASSES, body, content="application/yaml")).code == 201
        assert (await api.create(CLASSES, body, content="text/css")).code == 415


@on_loop
async def test_a_pod_gets_priority_tolerations_and_a_first_status() -> None:
    async with serving() as api:
        made = (await api.create(PODS, pod_document("p"))).body
        assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
        assert made["spec"]["priority"] == 0
        assert [each["key"].rpartition("/")[2] for each in made["spec"]["tolerations"]] == ["not-ready", "unreachable"]


@on_loop
async def test_a_priority_class_gives_pods_its_value_and_its_policy() -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    high = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
    async with serving() as api:
        assert (await api.create(classes, high)).code == 201
        spec = (await api.create(PODS, pod_document("p", {"priorityClassName": "high"}))).body["spec"]
        assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
        refused = await api.create(PODS, pod_document("q", {"priorityClassName": "none"}))
        assert (refused.code, refused.message) == (
            403, 'pods "q" is forbidden: no PriorityClass with name none was found'
        )  # fmt: skip


@on_loop
async def test_managers_of_fields_are_written_down() -> None:
    async with serving() as api:
        made = await api.create(CLASSES, class_document("gpu", "true"), fieldManager="tester")
        (entry,) = made.body["metadata"]["managedFields"]
        assert (entry["manager"], entry["operation"]) == ("tester", "Update")
        assert entry["fieldsV1"] == {"f:spec": {"f:selectors": {}}}


@on_loop
async def test_a_secret_written_as_text_is_read_as_data() -> None:
    async with serving() as api:
        path = "/api/v1/namespaces/default/secrets"
        made = await api.create(path, {"metadata": {"name": "s"}, "stringData": {"key": "value"}})
        assert made.body["data"] == {"key": "dmFsdWU="}
        assert "stringData" not in made.body
