"""Every verb, in process and over sockets: the two must not differ."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import pytest

from drakit.api import Event, ObjectMeta, ObjectReference, Partial, Pod, ResourceClaim, ResourceClaimStatus
from drakit.api.objects.claims import AllocationResult
from drakit.base import errors
from drakit.base.errors import UsageError
from drakit.client import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    EVENTS,
    JSON_PATCH,
    NODES,
    PODS,
    REPLICA_SETS,
    STRATEGIC,
    AlreadyExists,
    Client,
    Conflict,
    Invalid,
    NotFound,
    NotServed,
    Rejected,
    bind,
    evict,
    get_scale,
    metadata_of,
    request_token,
    resource,
    set_scale,
)
from tests.builders.documents import pod_document
from tests.builders.objects import claim_to_send, class_of
from tests.client.servers import config_map, in_process, names, on_loop, over_http

Serving = Callable[[], AbstractAsyncContextManager[Client]]


@pytest.fixture(params=[in_process, over_http], ids=["in process", "over http"])
def serving(request: pytest.FixtureRequest) -> Serving:
    made: Serving = request.param
    return made


@on_loop
async def test_a_struct_goes_in_and_the_stored_struct_comes_out(serving: Serving) -> None:
    async with serving() as client:
        created = await client.create(claim_to_send("train"))
        assert isinstance(created, ResourceClaim)
        assert created.metadata.uid
        assert created.metadata.resource_version
        assert created.spec.devices.requests[0].exactly is not None
        assert created.spec.devices.requests[0].exactly.count == 1  # the server's default
        assert await client.get(CLAIMS, "train", namespace="default") == created


@on_loop
async def test_a_document_goes_in_and_comes_out_whole_with_a_view(serving: Serving) -> None:
    async with serving() as client:
        document = pod_document("web", namespace="default")
        document["spec"]["hostname"] = "unmodelled"
        created = await client.create(document)
        found = await client.get(PODS, "web", namespace="default")
        assert isinstance(found, Partial)
        assert isinstance(found.view, Pod)
        assert found == created
        assert found.document["spec"]["hostname"] == "unmodelled"
        assert found.document["apiVersion"] == "v1"


@on_loop
async def test_a_view_may_be_created_but_not_written_back(serving: Serving) -> None:
    async with serving() as client:
        event = Event(
            metadata=ObjectMeta(name="e", namespace="default"),
            involved_object=ObjectReference(kind="Pod", namespace="default", name="web"),
            reason="Scheduled",
        )
        created = await client.create(event)
        assert isinstance(created, Event)
        assert created.reason == "Scheduled"
        assert (await client.get(EVENTS, "e", namespace="default")).view == created
        with pytest.raises(UsageError, match="a view has not every field"):
            await client.update(created)


@on_loop
async def test_lists_are_whole_however_small_the_pages_are(serving: Serving) -> None:
    async with serving() as client:
        for index in range(7):
            await client.create(claim_to_send(f"c{index}", team="a" if index % 2 else "b"))
        for size in (0, 1, 3, 7, 100):
            found = await client.list(CLAIMS, page_size=size)
            assert names(found.items) == [f"c{index}" for index in range(7)]
            assert found.resource_version == found.items[-1].metadata.resource_version
        assert names((await client.list(CLAIMS, labels={"team": "a"}, page_size=2)).items) == ["c1", "c3", "c5"]
        assert names((await client.list(CLAIMS, labels="team!=a")).items) == ["c0", "c2", "c4", "c6"]
        assert names((await client.list(CLAIMS, fields={"metadata.name": "c4"})).items) == ["c4"]
        assert len(await client.list(CLAIMS, namespace="elsewhere")) == 0


@on_loop
async def test_lists_of_documents_say_what_their_items_are(serving: Serving) -> None:
    async with serving() as client:
        await client.create(config_map("a", x="1"))
        found = await client.list(CONFIG_MAPS, namespace="default", fields="metadata.name=a")
        assert [(each.document["kind"], each.view.data) for each in found] == [("ConfigMap", {"x": "1"})]


@on_loop
async def test_an_update_of_an_old_version_conflicts(serving: Serving) -> None:
    async with serving() as client:
        old = await client.create(claim_to_send("train"))
        new = msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, labels={"a": "b"}))
        assert (await client.update(new)).metadata.labels == {"a": "b"}
        with pytest.raises(Conflict, match="please apply your changes to the latest version") as caught:
            await client.update(new)
        assert isinstance(caught.value, errors.Conflict)
        assert isinstance(caught.value, errors.Retryable)


@on_loop
async def test_the_status_is_written_apart(serving: Serving) -> None:
    async with serving() as client:
        created = await client.create(claim_to_send("train"))
        status = ResourceClaimStatus(allocation=AllocationResult())
        updated = await client.update_status(msgspec.structs.replace(created, status=status))
        assert updated.status.allocation is not None
        assert (await client.get(CLAIMS, "train", namespace="default")).status.allocation is not None


@on_loop
async def test_patches_of_all_types(serving: Serving) -> None:
    async with serving() as client:
        first = await client.create(claim_to_send("train", a="1"))
        merged = await client.patch(first, {"metadata": {"labels": {"b": "2"}}})
        assert merged.metadata.labels == {"a": "1", "b": "2"}
        stepped = await client.patch(
            merged, [{"op": "replace", "path": "/metadata/labels/a", "value": "9"}], kind=JSON_PATCH
        )
        assert stepped.metadata.labels == {"a": "9", "b": "2"}
        strategic = await client.patch(stepped, {"metadata": {"finalizers": ["x.example.com/y"]}}, kind=STRATEGIC)
        assert strategic.metadata.finalizers == ("x.example.com/y",)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/merge-patch+json", {"metadata": {"labels": {"b": "2"}}}),
        (STRATEGIC, {"metadata": {"labels": {"b": "2"}}}),
        (JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"b": "2"}}]),
    ],
)
@on_loop
async def test_a_patch_of_a_claim_that_has_moved_on_conflicts(serving: Serving, kind: str, body: Any) -> None:
    async with serving() as client:
        first = await client.create(claim_to_send("train"))
        await client.patch(first, {"metadata": {"labels": {"a": "1"}}})
        with pytest.raises(Conflict):
            await client.patch(first, body, kind=kind)
        again = await client.patch(first, body, kind=kind, versioned=False)
        assert again.metadata.labels["b"] == "2"


@on_loop
async def test_a_patch_made_for_a_predecessor_conflicts(serving: Serving) -> None:
    async with serving() as client:
        first = await client.create(pod_document("web", namespace="default"))
        await client.delete(PODS, "web", namespace="default", grace=0)
        second = await client.create(pod_document("web", namespace="default"))
        with pytest.raises(Conflict, match=r"metadata\.uid"):
            await client.patch(first, {"metadata": {"labels": {"a": "1"}}})
        assert (await client.patch(second, {"metadata": {"labels": {"a": "1"}}})).view.metadata.labels == {"a": "1"}


@on_loop
async def test_a_patch_of_a_claim_must_say_which_claim_it_is_for(serving: Serving) -> None:
    async with serving() as client:
        first = await client.create(claim_to_send("train"))
        body: dict[str, Any] = {"metadata": {"labels": {"a": "1"}}}
        with pytest.raises(UsageError, match="uid and resourceVersion"):
            await client.patch_named(CLAIMS, "train", body, namespace="default")
        with pytest.raises(UsageError, match="comes from no server"):
            await client.patch(claim_to_send("train"), body)
        body["metadata"] |= {"uid": first.metadata.uid, "resourceVersion": first.metadata.resource_version}
        assert (await client.patch_named(CLAIMS, "train", body, namespace="default")).metadata.labels == {"a": "1"}
        await client.create(config_map("cm"))
        changed = await client.patch_named(CONFIG_MAPS, "cm", {"data": {"x": "y"}}, namespace="default")
        assert changed.view.data == {"x": "y"}


@on_loop
async def test_apply_makes_and_then_owns(serving: Serving) -> None:
    async with serving() as client:
        wanted = config_map("settings", colour="red")
        await client.apply(wanted, manager="one")
        with pytest.raises(Conflict, match='conflict with "one"'):
            await client.apply(config_map("settings", colour="blue"), manager="two")
        forced = await client.apply(config_map("settings", colour="blue"), manager="two", force=True)
        assert forced.view.data == {"colour": "blue"}
        managers = {entry.manager for entry in forced.view.metadata.managed_fields}
        assert "two" in managers


@on_loop
async def test_apply_to_an_object_that_has_moved_on_conflicts(serving: Serving) -> None:
    async with serving() as client:
        first = await client.create(claim_to_send("train"))
        await client.patch(first, {"metadata": {"labels": {"a": "1"}}})
        labelled = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "train", "namespace": "default", "labels": {"b": "2"}},
        }
        with pytest.raises(Conflict):
            await client.apply(labelled, of=first)
        assert (await client.apply(labelled)).metadata.labels == {"a": "1", "b": "2"}


@on_loop
async def test_mutate_reads_again_on_a_conflict(serving: Serving) -> None:
    async with serving() as client:
        first = await client.create(claim_to_send("train"))
        await client.patch(first, {"metadata": {"labels": {"a": "1"}}})
        seen: list[str] = []

        def label(found: ResourceClaim) -> ResourceClaim:
            seen.append(found.metadata.resource_version)
            labels = {**found.metadata.labels, "b": "2"}
            return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, labels=labels))

        changed = await client.mutate(CLAIMS, "train", label, namespace="default", start=first)
        assert changed.metadata.labels == {"a": "1", "b": "2"}
        assert len(seen) == 2
        same = await client.mutate(CLAIMS, "train", lambda _: None, namespace="default")
        assert same == changed


@on_loop
async def test_mutate_keeps_what_the_view_does_not_show(serving: Serving) -> None:
    async with serving() as client:
        document = pod_document("web", namespace="default")
        document["spec"]["hostname"] = "unmodelled"
        await client.create(document)

        def label(found: Partial[Pod]) -> dict[str, Any]:
            metadata = {**found.document["metadata"], "labels": {"a": "1"}}
            return {**found.document, "metadata": metadata}

        changed = await client.mutate(PODS, "web", label, namespace="default")
        assert changed.document["spec"]["hostname"] == "unmodelled"
        assert changed.view.metadata.labels == {"a": "1"}


@on_loop
async def test_deleting_by_name_by_object_and_by_selector(serving: Serving) -> None:
    async with serving() as client:
        first = await client.create(claim_to_send("one", team="a"))
        for name, team in (("two", "a"), ("three", "b"), ("four", "b")):
            await client.create(claim_to_send(name, team=team))
        with pytest.raises(Conflict):
            await client.delete(CLAIMS, "two", namespace="default", uid=first.metadata.uid)
        await client.delete_object(first)
        await client.delete_object(first)  # gone already: that is what was wanted
        with pytest.raises(NotFound):
            await client.delete(CLAIMS, "one", namespace="default")
        await client.delete_all(CLAIMS, namespace="default", labels={"team": "b"})
        assert names((await client.list(CLAIMS)).items) == ["two"]


@on_loop
async def test_a_deletion_that_waits_for_a_finalizer_shows_the_object(serving: Serving) -> None:
    async with serving() as client:
        held = claim_to_send("held")
        held = msgspec.structs.replace(
            held, metadata=msgspec.structs.replace(held.metadata, finalizers=("a.example.com/b",))
        )
        await client.create(held)
        marked = await client.delete(CLAIMS, "held", namespace="default")
        assert marked is not None
        assert marked.metadata.deletion_timestamp


@on_loop
async def test_a_dry_run_writes_nothing(serving: Serving) -> None:
    async with serving() as client:
        made = await client.create(claim_to_send("train"), dry_run=True)
        assert made.metadata.uid
        assert await client.find(CLAIMS, "train", namespace="default") is None


@on_loop
async def test_pods_are_bound_and_evicted(serving: Serving) -> None:
    async with serving() as client:
        made = await client.create(pod_document("web", namespace="default"))
        await bind(client, made, "node-a")
        bound = await client.get(PODS, "web", namespace="default")
        assert bound.view.spec.node_name == "node-a"
        with pytest.raises(Conflict, match="already assigned"):
            await bind(client, made, "node-b")
        await evict(client, bound)
        gone = await client.find(PODS, "web", namespace="default")
        assert gone is None or gone.view.metadata.deletion_timestamp


@on_loop
async def test_scales_and_tokens(serving: Serving) -> None:
    async with serving() as client:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod_document("x", namespace="default")["spec"]}
        await client.create(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {"name": "rs", "namespace": "default"},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template},
            }
        )
        scaled = await set_scale(client, REPLICA_SETS, "rs", 3, namespace="default")
        assert scaled["spec"]["replicas"] == 3
        assert (await get_scale(client, REPLICA_SETS, "rs", namespace="default"))["spec"]["replicas"] == 3
        assert (await client.get(REPLICA_SETS, "rs", namespace="default")).view.spec.replicas == 3
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}
        await client.create(account)
        issued = await request_token(client, "robot", namespace="default", seconds=600)
        assert issued.token.count(".") == 2
        assert issued.expires.startswith("2026-01-01T00:10:00")


@on_loop
async def test_a_watch_tells_what_happens_in_order(serving: Serving) -> None:
    async with serving() as client:
        first = await client.create(claim_to_send("a"))
        async with client.watch(CLAIMS, since=first.metadata.resource_version) as changes:
            await client.create(claim_to_send("b"))
            await client.patch(first, {"metadata": {"labels": {"x": "y"}}})
            await client.delete(CLAIMS, "b", namespace="default")
            told = [await anext(changes) for _ in range(3)]
        objects = [change.object for change in told]
        assert [change.type for change in told] == ["ADDED", "MODIFIED", "DELETED"]
        assert [each.metadata.name for each in objects if each is not None] == ["b", "a", "b"]
        assert all(each is not None and each.metadata.resource_version == told[index].resource_version
                   for index, each in enumerate(objects))  # fmt: skip
        assert objects[1] is not None
        assert objects[1].metadata.labels == {"x": "y"}


@on_loop
async def test_a_streaming_list_ends_with_a_bookmark(serving: Serving) -> None:
    async with serving() as client:
        await client.create(config_map("a"))
        await client.create(config_map("b"))
        seen: list[tuple[str, str]] = []
        async with client.watch(CONFIG_MAPS, namespace="default", initial=True) as changes:
            async for change in changes:
                seen.append((change.type, metadata_of(change.object).name if change.object else ""))
                if change.initial_end:
                    break
        assert ("ADDED", "a") in seen
        assert seen[-1] == ("BOOKMARK", "")


@on_loop
async def test_a_watch_selects(serving: Serving) -> None:
    async with serving() as client:
        await client.create(claim_to_send("a", team="x"))
        async with client.watch(CLAIMS, namespace="default", labels={"team": "y"}) as changes:
            await client.create(claim_to_send("b", team="y"))
            change = await anext(changes)
        assert change.object is not None
        assert change.object.metadata.name == "b"


@on_loop
async def test_refusals_are_exceptions_that_say_what_to_do(serving: Serving) -> None:
    async with serving() as client:
        await client.create(claim_to_send("train"))
        with pytest.raises(AlreadyExists, match='"train" already exists'):
            await client.create(claim_to_send("train"))
        with pytest.raises(NotFound, match='pods "nobody" not found') as missing:
            await client.get(PODS, "nobody", namespace="default")
        assert isinstance(missing.value, errors.Terminal)
        assert missing.value.status.code == 404
        with pytest.raises(Invalid) as broken:
            await client.create(ResourceClaim(metadata=ObjectMeta(name="B_", namespace="default")))
        assert [str(error.path) for error in broken.value.errors] == ["metadata.name"]
        assert broken.value.errors[0].body.startswith('Invalid value: "B_": a lowercase RFC 1123 subdomain')
        assert isinstance(broken.value, errors.InvalidObject)
        with pytest.raises(Rejected, match="unable to parse requirement"):
            await client.list(CLAIMS, labels="a in b")


@on_loop
async def test_what_is_not_served_is_told_from_what_is_not_there(serving: Serving) -> None:
    async with serving() as client:
        with pytest.raises(NotServed):
            await client.document("/apis/nowhere.example.com/v1")
        assert await client.serves(CLAIMS)
        assert "major" in await client.document("/version")
        assert await client.text("/readyz") == "ok"


@on_loop
async def test_objects_of_the_cluster_need_no_namespace_and_others_do(serving: Serving) -> None:
    async with serving() as client:
        await client.create(class_of("gpu.example.com"))
        assert (await client.get(CLASSES, "gpu.example.com")).metadata.name == "gpu.example.com"
        assert (await client.find(NODES, "nowhere")) is None
        with pytest.raises(UsageError, match="a namespace is needed"):
            await client.get(PODS, "web")


@on_loop
async def test_writes_are_owned_by_the_clients_field_manager() -> None:
    async with in_process() as client:
        named = Client(client.transport, clock=client.clock, field_manager="scheduler", user_agent="drakit/1 (x)")
        made = await named.create(claim_to_send("train"))
        assert [entry.manager for entry in made.metadata.managed_fields] == ["scheduler"]


@on_loop
async def test_warnings_are_passed_on(serving: Serving) -> None:
    told: list[str] = []
    async with serving() as client:
        warned = Client(client.transport, clock=client.clock, on_warning=told.append)
        old = {**msgspec.to_builtins(config_map("x")), "spec": {"unknown": 1}}
        await warned.create(old)
    assert told == ['unknown field "spec"']


def test_a_resource_is_found_by_any_name_that_kubectl_knows() -> None:
    assert resource("ResourceClaim") is CLAIMS
    assert resource("po") is PODS
    assert resource("resourceclaims.v1beta1.resource.k8s.io") is CLAIMS
