"""Discovery, versions, health, metrics, OpenAPI: everything that is no resource."""

from __future__ import annotations

import re

import pytest

from drakit.apiserver import Settings
from drakit.base.errors import UsageError
from tests.apiserver.calls import CLAIMS, on_loop, serving
from tests.builders.documents import claim_document

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@on_loop
async def test_every_version_of_a_group_is_listed_the_preferred_one_first() -> None:
    async with serving() as api:
        group = (await api.get("/apis/resource.k8s.io")).body
        assert [each["version"] for each in group["versions"]] == ["v1", "v1beta2", "v1beta1", "v1alpha3"]
        assert group["preferredVersion"]["version"] == "v1"


@on_loop
async def test_aggregated_discovery_is_one_document_with_a_tag() -> None:
    async with serving() as api:
        found = await api.get("/apis", accept=AGGREGATED)
        tag = dict(found.response.headers)["etag"]
        assert found.response.content_type == ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        groups = {item["metadata"]["name"]: item for item in found.body["items"]}
        claims = groups["resource.k8s.io"]["versions"][0]["resources"][1]
        assert (claims["resource"], claims["scope"]) == ("resourceclaims", "Namespaced")
        assert [each["subresource"] for each in claims["subresources"]] == ["status"]
        same = await api.get("/apis", accept=AGGREGATED, headers={"if-none-match": tag})
        assert (same.code, same.body) == (304, "")
        core = await api.get("/api", accept=AGGREGATED)
        assert core.body["items"][0]["metadata"] == {}


@on_loop
async def test_a_version_that_is_switched_off_is_not_there() -> None:
    async with serving(Settings(runtime_config="resource.k8s.io/v1beta1=false,api/alpha=false")) as api:
        group = (await api.get("/apis/resource.k8s.io")).body
        assert [each["version"] for each in group["versions"]] == ["v1", "v1beta2"]
        assert (await api.get(CLAIMS.replace("/v1/", "/v1beta1/"))).code == 404
        assert (await api.get("/apis/scheduling.k8s.io/v1alpha2/podgroups")).code == 404


@on_loop
async def test_a_switch_for_a_version_that_nobody_knows_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="unknown group and version"):
        async with serving(Settings(runtime_config="apiextensions.k8s.io/v1=true")):
            pass


@on_loop
async def test_unknown_groups_are_no_page_and_unknown_resources_no_resource() -> None:
    async with serving() as api:
        for path in (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/example.com",
            "/apis/example.com/v1",
            "/nothing",
        ):
            answer = await api.get(path)
            assert (answer.code, answer.body) == (404, "404 page not found\n")
        for path in ("/apis/resource.k8s.io/v9/x", "/api/v1/nothings", "/apis/resource.k8s.io/v1/devicetaintrules"):
            answer = await api.get(path)
            assert (answer.code, answer.body["reason"]) == (404, "NotFound")


@on_loop
async def test_methods_have_their_places() -> None:
    async with serving() as api:
        for method, path in (
            ("POST", f"{CLAIMS}/a"),
            ("PUT", CLAIMS),
            ("PATCH", CLAIMS),
            ("POST", "/apis/resource.k8s.io/v1/resourceclaims"),
            ("DELETE", "/api/v1/namespaces"),
            ("POST", f"{CLAIMS}/a/status"),
        ):
            assert (await api.send(method, path, claim_document("a"))).code == 405, (method, path)
        assert (await api.get(f"{CLAIMS}/a/binding")).code == 404


@on_loop
async def test_health_is_one_word_or_a_list() -> None:
    async with serving() as api:
        for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
            assert (await api.get(path)).body == "ok"
        assert "[+]store ok" in (await api.get("/livez", verbose="")).body
        await api.server.context.objects.store.close()
        broken = await api.get("/readyz")
        assert broken.code == 500
        assert "[-]store failed: the store is closed" in broken.body


@on_loop
async def test_metrics_count_requests_by_what_they_were_for() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a"))
        page = (await api.get("/metrics")).body
        assert (
            'apiserver_request_total{code="201",group="resource.k8s.io",resource="resourceclaims",scope="namespace",'
            'subresource="",verb="POST",version="v1"} 1.0'
        ) in page
        assert "apiserver_request_duration_seconds_bucket" in page
        assert "apiserver_storage_objects 7.0" in page


@on_loop
async def test_metrics_name_verbs_as_dashboards_of_kubernetes_do() -> None:
    applied = {**claim_document("a"), "kind": "ResourceClaim"}
    async with serving() as api:
        await api.patch(f"{CLAIMS}/a", applied, content="application/apply-patch+yaml", fieldManager="m")
        await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"a": "b"}}})
        await api.update(f"{CLAIMS}/a", applied)
        await api.get(f"{CLAIMS}/a")
        await api.get(CLAIMS)
        await (await api.watch(CLAIMS)).close()
        await api.delete(f"{CLAIMS}/a")
        await api.send("BREW", "/coffee")
        page = (await api.get("/metrics")).body
        verbs = set(re.findall(r'apiserver_request_total{[^}]*verb="(\w*)"', page))
        assert verbs == {"APPLY", "PATCH", "PUT", "GET", "LIST", "WATCH", "DELETE", "other"}


@on_loop
async def test_paths_that_nobody_serves_do_not_become_labels() -> None:
    async with serving() as api:
        for number in range(20):
            await api.get(f"/apis/evil{number}/v1/x")
        assert "evil" not in (await api.get("/metrics")).body


@on_loop
async def test_openapi_has_an_index_with_hashes_and_documents_behind_it() -> None:
    async with serving() as api:
        index = await api.get("/openapi/v3")
        address = index.body["paths"]["apis/resource.k8s.io/v1"]["serverRelativeURL"]
        path, _, query = address.partition("?")
        document = await api.get(path, hash=query.removeprefix("hash="))
        assert "io.k8s.api.resource.v1.ResourceClaim" in document.body["components"]["schemas"]
        assert ("cache-control", "public, max-age=31536000") in document.response.headers
        tag = dict(index.response.headers)["etag"]
        assert (await api.get("/openapi/v3", headers={"if-none-match": tag})).code == 304
        assert (await api.get("/openapi/v3/apis/none/v1")).code == 404


@on_loop
async def test_the_second_openapi_has_all_kinds_in_json_and_in_protobuf() -> None:
    async with serving() as api:
        found = await api.get("/openapi/v2")
        assert (found.code, found.body["swagger"]) == (200, "2.0")
        assert "io.k8s.api.apps.v1.Deployment" in found.body["definitions"]
        assert "/api/v1/namespaces/{namespace}/pods/{name}" in found.body["paths"]
        asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        binary = (await api.get("/openapi/v2", accept=asked)).response
        assert binary.content_type == asked.replace("@", ".")
        assert binary.content.encode().startswith(b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.4")
        tag = dict(binary.headers)["etag"]
        assert (await api.get("/openapi/v2", accept=asked, headers={"if-none-match": tag})).code == 304


@on_loop
async def test_the_version_says_which_kubernetes_this_is_like() -> None:
    async with serving() as api:
        found = (await api.get("/version")).body
        assert (found["major"], found["minor"]) == ("1", "36")


@on_loop
async def test_groups_of_a_real_server_without_kinds_here_are_announced_and_empty() -> None:
    async with serving() as api:
        names = [group["name"] for group in (await api.get("/apis")).body["groups"]]
        assert len(names) == 20
        assert (await api.get("/apis/apiextensions.k8s.io")).body["preferredVersion"]["version"] == "v1"
        assert (await api.get("/apis/apiextensions.k8s.io/v1")).body["resources"] == []
        assert (await api.get("/apis/autoscaling/v3")).code == 404
