"""Objects with equal specs share what was read of them, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from drakit.apiserver import Settings, build_server
from drakit.client import PODS, SERVICE_ACCOUNTS, Client, InProcess
from drakit.store import MemoryStore, RecordPage
from tests.apiserver.calls import on_loop

Plain = dict[str, Any]


def pod(name: str, **spec: Any) -> Plain:
    containers = [{"name": "main", "image": "pause", "args": ["a"], "ports": [{"containerPort": 80}]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, **spec},
    }


async def stored(client: Client, name: str) -> Plain:
    return dict((await client.get(PODS, name, namespace="default")).document)


@on_loop
async def test_the_second_pod_of_a_template_is_as_the_first() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store)))
        for name in ("a", "b"):
            await client.create(pod(name))
        one, two = await stored(client, "a"), await stored(client, "b")
        assert one["spec"] == two["spec"]
        assert one["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
        assert one["metadata"]["managedFields"] == two["metadata"]["managedFields"]


@on_loop
async def test_what_a_client_does_to_its_document_afterwards_changes_no_pod() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store)))
        sent = pod("a")
        await client.create(sent)
        sent["spec"]["containers"][0]["args"].append("b")
        await client.create(pod("b"))
        assert (await stored(client, "b"))["spec"]["containers"][0]["args"] == ["a"]


@on_loop
async def test_what_admission_and_writes_add_to_one_pod_is_not_in_the_next() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store, settings=Settings(enable_plugins=("ServiceAccount",)))))
        found = await client.find(SERVICE_ACCOUNTS, "default", namespace="default")
        if found is None:
            await client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        for name in ("a", "b", "c"):
            made = await client.create(pod(name))
            await client.patch(made, {"spec": {"activeDeadlineSeconds": 5}})
        for name in ("a", "b", "c"):
            spec = (await stored(client, name))["spec"]
            assert len(spec["volumes"]) == 1
            mounts = spec["containers"][0]["volumeMounts"]
            assert [mount["name"] for mount in mounts] == [spec["volumes"][0]["name"]]


@on_loop
async def test_an_unknown_field_is_told_of_each_time() -> None:
    async with MemoryStore() as store:
        told: list[str] = []
        client = Client(InProcess(await build_server(store)), on_warning=told.append)
        for name in ("a", "b"):
            await client.create(pod(name, colour="red"))
        assert told == ['unknown field "spec.colour"'] * 2


@on_loop
async def test_a_struct_that_shares_its_spec_with_the_stored_claim_changes_only_what_it_changes() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store)))
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
        document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
        }
        made = await client.create(document)
        before = store_value(await store.list("/registry/resource.k8s.io/resourceclaims/"))
        await client.update(replace(made, metadata=replace(made.metadata, finalizers=("example.com/f",))))
        after = store_value(await store.list("/registry/resource.k8s.io/resourceclaims/"))
        assert after["spec"] == before["spec"]
        assert after["metadata"]["finalizers"] == ["example.com/f"]
        owned = after["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]
        assert owned["f:finalizers"] == {".": {}, 'v:"example.com/f"': {}}


def store_value(page: RecordPage) -> Plain:
    value: Plain = msgspec.json.decode(page.records[0].value)
    return value
