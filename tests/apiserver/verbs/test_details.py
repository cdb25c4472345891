"""Small things that a real server does, each seen there: what is cleared, kept, refused and left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drakit.api.exchange import EventStream, Request
from drakit.apiserver import Settings
from drakit.base.gates import FeatureGates
from tests.apiserver.calls import CLAIMS, CLASSES, NAMESPACES, PODS, TABLE, Api, namespace, on_loop, serving
from tests.builders.documents import class_document, document, pod_document

APPLY = "application/apply-patch+yaml"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@on_loop
async def test_a_namespace_on_a_cluster_scoped_object_is_cleared() -> None:
    async with serving() as api:
        lost = class_document("a")
        lost["metadata"]["namespace"] = "elsewhere"
        for answer in (
            await api.create(CLASSES, lost),
            await api.update(f"{CLASSES}/a", lost),
            await api.patch(f"{CLASSES}/a", {"metadata": {"namespace": "elsewhere"}}),
            await api.patch(f"{CLASSES}/a", lost, content=APPLY, fieldManager="me"),
        ):
            assert answer.code in (200, 201)
            assert "namespace" not in answer.body["metadata"]


@on_loop
async def test_head_is_no_method_of_resources() -> None:
    async with serving() as api:
        for path in (NAMESPACES, f"{NAMESPACES}/default"):
            answer = await api.send("HEAD", path)
            assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")


@on_loop
async def test_a_generation_is_kept_by_kinds_that_have_none() -> None:
    async with serving() as api:
        made = await api.create(CONFIGMAPS, document("ConfigMap", "c", api="v1", generation=7))
        assert made.body["metadata"]["generation"] == 7
        changed = await api.patch(f"{CONFIGMAPS}/c", {"metadata": {"generation": 9}, "data": {"a": "b"}})
        assert changed.body["metadata"]["generation"] == 7
        refused = await api.create(CONFIGMAPS, document("ConfigMap", "d", api="v1", generation=-1))
        assert refused.message.endswith("metadata.generation: Invalid value: -1: must be greater than or equal to 0")
        counted = await api.create(CLASSES, class_document("a", generation=7))
        assert counted.body["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("path", "kind", "nest"),
    [
        (CLASSES, "DeviceClass", lambda config: {"config": config}),
        (CLAIMS, "ResourceClaim", lambda config: {"devices": {"config": config}}),
        (
            CLAIMS.replace("claims", "claimtemplates"),
            "ResourceClaimTemplate",
            lambda config: {"spec": {"devices": {"config": config}}},
        ),
    ],
)
def test_opaque_parameters_are_as_long_as_they_were_sent(path: str, kind: str, nest: Any) -> None:
    @on_loop
    async def run() -> None:
        config = [{"opaque": {"driver": "a.example.com", "parameters": "PARAMETERS"}}]
        body = json.dumps(document(kind, "q", nest(config)))
        fits, spaced = (
            b'{"a":"%b"}' % (b"x" * 10_200),
            b'{%b"a":"%b"}' % (b" " * 300, b"x" * 10_000),
        )
        async with serving() as api:
            refused = await api.create(path, body.encode().replace(b'"PARAMETERS"', spaced), dryRun="All")
            assert refused.code == 422
            assert "opaque.parameters: Too long: may not be more than 10240 bytes" in refused.message
            taken = await api.create(path, body.encode().replace(b'"PARAMETERS"', fits), dryRun="All")
            assert taken.code == 201, taken.body

    run()


@on_loop
async def test_a_scheduling_group_without_a_name_is_invalid() -> None:
    gates = FeatureGates(frozenset({"GenericWorkload"}))
    async with serving(Settings(gates=gates)) as api:
        refused = await api.create(PODS, pod_document("p", {"schedulingGroup": {}, "containers": [CONTAINER]}))
        assert refused.code == 422
        assert refused.message.endswith("podGroupName: Invalid value: null: must specify one of: `podGroupName`")


CONTAINER = {"name": "c", "image": "i"}


async def watched(api: Api, path: str, accept: str) -> list[dict[str, Any]]:
    query = (("watch", "true"), ("timeoutSeconds", "1"))
    response = await api.server.handle(Request(method="GET", path=path, query=query, headers={"accept": accept}))
    assert isinstance(response.content, EventStream)
    lines = b""
    async for chunk in response.content.lines():
        lines += chunk
        api.clock.advance(1.0)
    return [json.loads(line) for line in lines.splitlines()]


@on_loop
async def test_tables_of_a_watch_have_columns_once() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, namespace("a"))
        first, *rest = await watched(api, NAMESPACES, TABLE)
        assert first["object"]["columnDefinitions"]
        assert rest
        assert {event["object"]["columnDefinitions"] for event in rest} == {None}


@on_loop
async def test_aggregated_discovery_says_group_and_version_only_where_they_differ() -> None:
    async with serving() as api:
        groups = (await api.get("/apis", accept=AGGREGATED)).body["items"]
        core = (await api.get("/api", accept=AGGREGATED)).body["items"]
        assert [group["metadata"] for group in core] == [{}]
        assert all(list(group["metadata"]) == ["name"] for group in groups)
        kinds = [each for group in (*groups, *core) for version in group["versions"] for each in version["resources"]]
        assert all(each["responseKind"]["group"] == each["responseKind"]["version"] == "" for each in kinds)
        scale = next(
            each["responseKind"]
            for kind in kinds
            if kind["resource"] == "deployments"
            for each in kind["subresources"]
            if each["subresource"] == "scale"
        )
        assert scale == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


@on_loop
async def test_both_discoveries_have_the_same_groups() -> None:
    async with serving() as api:
        plain = (await api.get("/apis")).body["groups"]
        aggregated = (await api.get("/apis", accept=AGGREGATED)).body["items"]
        assert [each["name"] for each in plain] == [each["metadata"]["name"] for each in aggregated]
        for group in plain:
            for version in group["versions"]:
                served = (await api.get(f"/apis/{version['groupVersion']}")).body["resources"]
                assert served or group["name"] == "apiextensions.k8s.io"


@on_loop
async def test_custom_resources_are_not_there_and_not_promised() -> None:
    async with serving() as api:
        assert (await api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")).code == 404
        assert (await api.get("/apis/apiextensions.k8s.io/v1")).body["resources"] == []


@on_loop
async def test_taint_rules_are_stored_in_the_version_of_a_real_server() -> None:
    gates = FeatureGates(frozenset({"DRADeviceTaintRules"}))
    async with serving(Settings(gates=gates)) as api:
        resources = (await api.get("/apis/resource.k8s.io/v1beta2")).body["resources"]
        hashes = {each["name"]: each.get("storageVersionHash") for each in resources}
        assert hashes["devicetaintrules"] == "DJ3UJ0fj8MI="
        assert hashes["resourceclaims"] == "wgAZaHcZxUg="


@on_loop
async def test_yaml_has_its_keys_in_the_order_of_go_and_its_quotes() -> None:
    annotations = {"k10": "1", "k2": "yes", "K": "2026-11-16T21:56:33Z", "a.b": "x: y", "star": "*", "text": "a\nb\n"}
    async with serving() as api:
        await api.create(NAMESPACES, {**namespace("a"), "metadata": {"name": "a", "annotations": annotations}})
        text = (await api.get(f"{NAMESPACES}/a", accept="application/yaml")).response.content.encode().decode()
    assert text.startswith(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  annotations:\n    K: \"2026-11-16T21:56:33Z\"\n    a.b: 'x: y'\n"
        '    k2: "yes"\n    k10: "1"\n    star: \'*\'\n    text: |\n      a\n      b\n  creationTimestamp: "'
    )
    assert text.index("spec:") < text.index("status:")


@on_loop
async def test_a_body_in_another_format_is_told_what_is_accepted() -> None:
    async with serving() as api:
        refused = await api.create(NAMESPACES, b"a", content="text/css")
        assert refused.code == 415
        assert refused.message.endswith("application/json, application/yaml, application/vnd.kubernetes.protobuf")
