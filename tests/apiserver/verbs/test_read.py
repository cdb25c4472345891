"""Reading: one object, lists, pages, selections, representations."""

from __future__ import annotations

import pytest

from tests.apiserver.calls import ALL_CLAIMS, CLAIMS, NAMESPACES, PODS, SLICES, TABLE, Api, namespace, on_loop, serving
from tests.builders.documents import claim_document, pod_document, slice_document


async def fill(api: Api, count: int) -> None:
    for number in range(count):
        made = await api.create(
            CLAIMS, claim_document(f"c{number}", labels={"parity": "odd" if number % 2 else "even"})
        )
        assert made.code == 201


@on_loop
async def test_a_list_is_of_one_revision_and_its_items_have_no_kind() -> None:
    async with serving() as api:
        await fill(api, 3)
        found = await api.get(CLAIMS)
        assert found.body["kind"] == "ResourceClaimList"
        assert found.names == ["c0", "c1", "c2"]
        assert all("kind" not in item for item in found.body["items"])
        assert found.version == found.body["items"][-1]["metadata"]["resourceVersion"]


@on_loop
async def test_pages_go_on_where_they_stopped_and_see_nothing_that_came_later() -> None:
    async with serving() as api:
        await fill(api, 5)
        first = await api.get(CLAIMS, limit="2")
        assert (first.names, first.body["metadata"]["remainingItemCount"]) == (["c0", "c1"], 3)
        await api.create(CLAIMS, claim_document("c00-late"))
        await api.delete(f"{CLAIMS}/c3")
        second = await api.get(CLAIMS, limit="2", **{"continue": first.body["metadata"]["continue"]})
        last = await api.get(CLAIMS, **{"continue": second.body["metadata"]["continue"]})
        assert second.names + last.names == ["c2", "c3", "c4"]
        assert second.version == last.version == first.version
        assert "continue" not in last.body["metadata"]


@on_loop
async def test_a_page_of_a_selection_is_full_and_counts_nothing() -> None:
    async with serving() as api:
        await fill(api, 6)
        first = await api.get(CLAIMS, limit="2", labelSelector="parity=odd")
        assert first.names == ["c1", "c3"]
        assert "remainingItemCount" not in first.body["metadata"]
        again = {"continue": first.body["metadata"]["continue"]}
        rest = await api.get(CLAIMS, limit="2", labelSelector="parity=odd", **again)
        assert rest.names == ["c5"]


@on_loop
async def test_a_list_at_a_revision_is_as_it_was_then() -> None:
    async with serving() as api:
        await fill(api, 2)
        then = (await api.get(CLAIMS)).version
        await api.delete(f"{CLAIMS}/c0")
        exact = await api.get(CLAIMS, resourceVersion=then, resourceVersionMatch="Exact")
        assert (exact.names, exact.version) == (["c0", "c1"], then)
        newer = await api.get(CLAIMS, resourceVersion=then, resourceVersionMatch="NotOlderThan")
        assert newer.names == ["c1"]


@on_loop
async def test_a_revision_that_nobody_has_reached_is_a_timeout() -> None:
    async with serving() as api:
        for path in (CLAIMS, f"{CLAIMS}/c0"):
            answer = await api.get(path, resourceVersion="99999")
            assert (answer.code, answer.body["reason"]) == (504, "Timeout")
            assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@on_loop
async def test_a_revision_that_is_forgotten_is_expired_and_a_list_may_go_on_from_now() -> None:
    async with serving(history=5) as api:
        await fill(api, 3)
        first = await api.get(CLAIMS, limit="1")
        for _ in range(20):
            await api.create(CLAIMS, claim_document("x"))
            await api.delete(f"{CLAIMS}/x")
        exact = await api.get(CLAIMS, resourceVersion=first.version, resourceVersionMatch="Exact")
        assert (exact.code, exact.body["reason"]) == (410, "Expired")
        late = await api.get(CLAIMS, limit="5", **{"continue": first.body["metadata"]["continue"]})
        assert late.code == 410
        on = await api.get(CLAIMS, limit="5", **{"continue": late.body["metadata"]["continue"]})
        assert on.names == ["c1", "c2"]


@on_loop
async def test_slices_are_selected_by_driver_and_node() -> None:
    async with serving() as api:
        for name, driver, node in (
            ("a", "x.example.com", "n1"),
            ("b", "x.example.com", "n2"),
            ("c", "y.example.com", "n1"),
        ):
            assert (await api.create(SLICES, slice_document(name, "dev-0", driver=driver, node=node))).code == 201
        assert (await api.get(SLICES, fieldSelector="spec.driver=x.example.com")).names == ["a", "b"]
        assert (await api.get(SLICES, fieldSelector="spec.nodeName=n1,spec.driver!=y.example.com")).names == ["a"]
        assert (await api.get(SLICES, fieldSelector="metadata.name=b")).names == ["b"]
        refused = await api.get(SLICES, fieldSelector="spec.pool.name=p")
        assert refused.message.startswith("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice")


@on_loop
async def test_all_namespaces_are_listed_together_and_can_be_told_apart() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, namespace("team"))
        await api.create(CLAIMS, claim_document("a"))
        await api.create(CLAIMS.replace("default", "team"), claim_document("b"))
        assert (await api.get(ALL_CLAIMS)).names == ["a", "b"]
        assert (await api.get(ALL_CLAIMS, fieldSelector="metadata.namespace=team")).names == ["b"]
        assert (await api.get(ALL_CLAIMS, fieldSelector="metadata.namespace=team,metadata.name=a")).names == []


@pytest.mark.parametrize(
    "query",
    [
        {"labelSelector": "a b"},
        {"fieldSelector": "metadata.name"},
        {"limit": "x"},
        {"continue": "garbage"},
        {"resourceVersion": "x"},
        {"continue": "e30", "resourceVersion": "5"},
    ],
)
def test_an_option_that_cannot_be_read_is_a_bad_request(query: dict[str, str]) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            assert (await api.get(CLAIMS, **query)).code == 400

    run()


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Nope", "resourceVersion": "1"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"sendInitialEvents": "true"},
        {"watch": "1", "resourceVersionMatch": "NotOlderThan"},
        {"watch": "1", "sendInitialEvents": "true"},
    ],
)
def test_options_that_make_no_sense_together_are_invalid(query: dict[str, str]) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            answer = await api.get(CLAIMS, **query)
            assert (answer.code, answer.body["details"]["kind"]) == (422, "ListOptions")

    run()


@on_loop
async def test_an_object_reads_the_same_in_every_version_but_for_its_shape() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a"))
        old = await api.get(CLAIMS.replace("/v1/", "/v1beta1/") + "/a")
        assert old.body["apiVersion"] == "resource.k8s.io/v1beta1"
        assert old.body["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu.example.com"
        assert old.response.warnings == (
            "resource.k8s.io/v1beta1 ResourceClaim is deprecated in v1.35+, unavailable in v1.38+",
        )
        middle = await api.get(CLAIMS.replace("/v1/", "/v1beta2/") + "/a")
        new = await api.get(f"{CLAIMS}/a")
        assert {**middle.body, "apiVersion": "x"} == {**new.body, "apiVersion": "x"}


@on_loop
async def test_a_table_shows_columns_and_the_metadata_of_each_row() -> None:
    async with serving() as api:
        await api.create(PODS, pod_document("p"))
        table = (await api.get(PODS, accept=TABLE)).body
        assert [column["name"] for column in table["columnDefinitions"]][:3] == ["Name", "Ready", "Status"]
        assert table["rows"][0]["cells"][:3] == ["p", "0/1", "Pending"]
        assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        one = (await api.get(f"{PODS}/p", accept=TABLE, includeObject="Object")).body
        assert one["rows"][0]["object"]["spec"]["containers"][0]["name"] == "ctr"
        assert (await api.get(f"{PODS}/p", accept=TABLE, includeObject="Bad")).code == 400


@on_loop
async def test_metadata_alone_can_be_asked_for() -> None:
    async with serving() as api:
        await fill(api, 1)
        accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        found = (await api.get(CLAIMS, accept=accept)).body
        assert found["kind"] == "PartialObjectMetadataList"
        assert set(found["items"][0]) == {"kind", "apiVersion", "metadata"}


@on_loop
async def test_yaml_can_be_asked_for_and_html_cannot() -> None:
    async with serving() as api:
        await fill(api, 1)
        answer = await api.get(f"{CLAIMS}/c0", accept="application/yaml")
        assert answer.response.content_type == "application/yaml"
        assert "name: c0" in answer.body
        assert (await api.get(f"{CLAIMS}/c0", accept="text/html")).code == 406
        assert (await api.get(f"{CLAIMS}/c0", accept="text/html,*/*;q=0.1")).code == 200


@on_loop
async def test_a_read_in_process_hands_out_the_same_struct_to_everybody() -> None:
    async with serving() as api:
        await fill(api, 1)
        first, second = [(await api.get(f"{CLAIMS}/c0")).response.content for _ in range(2)]
        listed = (await api.get(CLAIMS)).response.content.items[0]  # type: ignore[attr-defined]
        assert first.typed is second.typed is listed.typed  # type: ignore[attr-defined]
        assert first.typed.spec.devices.requests[0].exactly.count == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("path", "field", "words"),
    [
        ("/api/v1/nodes", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("/api/v1/namespaces", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("/api/v1/secrets", "spec.type", "field label not supported: spec.type"),
        ("/api/v1/services", "type", "field label not supported: type"),
        ("/apis/batch/v1/jobs", "type", 'field label "type" not supported for Job'),
        (
            "/apis/certificates.k8s.io/v1/certificatesigningrequests",
            "metadata.namespace",
            "field label not supported: metadata.namespace",
        ),
    ],
)
@on_loop
async def test_a_field_that_cannot_be_selected_is_told_in_the_words_of_its_kind(
    path: str, field: str, words: str
) -> None:
    async with serving() as api:
        answer = await api.get(path, fieldSelector=f"{field}=x")
        assert (answer.code, answer.message) == (400, words)
