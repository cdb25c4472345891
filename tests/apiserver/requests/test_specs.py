"""Objects with equal specs share what was read of them, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from drakit.allocator.search.reader import signature
from drakit.api.codec import specs
from drakit.api.exchange import Request
from drakit.api.objects.plain import encode_hook
from drakit.apiserver import Server, Settings, build_server
from drakit.base.clock import FakeClock
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, PODS, SERVICE_ACCOUNTS, TAINT_RULES, Client, InProcess
from drakit.store import MemoryStore, RecordPage
from tests.apiserver.calls import on_loop
from tests.builders.documents import claim_document, pod_document, request_of

Plain = dict[str, Any]


def pod_with_ports(name: str, **spec: Any) -> Plain:
    containers = [{"name": "main", "image": "pause", "args": ["a"], "ports": [{"containerPort": 80}]}]
    return pod_document(name, {"containers": containers, **spec}, namespace="default")


def claim_for(name: str, count: int = 1) -> Plain:
    return claim_document(name, request_of("gpu", count=count), namespace="default")


class EncodedValues:
    """Encodes as the real encoder does, and has what was encoded since the last look."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def encode(self, value: object) -> bytes:
        self.values.append(value)
        return msgspec.json.encode(value, enc_hook=encode_hook)

    def count(self) -> int:
        count = len(self.values)
        self.values.clear()
        return count


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> EncodedValues:
    values = EncodedValues()
    monkeypatch.setattr(specs, "_ENCODER", values)
    return values


async def post(server: Server, document: Plain) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    body, headers = msgspec.json.encode(document), {"content-type": "application/json"}
    answer = await server.handle(Request(method="POST", path=path, headers=headers, body=body))
    assert answer.code == 201


async def stored(client: Client, name: str) -> Plain:
    return dict((await client.get(PODS, name, namespace="default")).document)


@on_loop
async def test_the_second_pod_of_a_template_is_as_the_first() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store)))
        for name in ("a", "b"):
            await client.create(pod_with_ports(name))
        one, two = await stored(client, "a"), await stored(client, "b")
        assert one["spec"] == two["spec"]
        assert one["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
        assert one["metadata"]["managedFields"] == two["metadata"]["managedFields"]


@on_loop
async def test_what_a_client_does_to_its_document_afterwards_changes_no_pod() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store)))
        sent = pod_with_ports("a")
        await client.create(sent)
        sent["spec"]["containers"][0]["args"].append("b")
        await client.create(pod_with_ports("b"))
        assert (await stored(client, "b"))["spec"]["containers"][0]["args"] == ["a"]


@on_loop
async def test_what_admission_and_writes_add_to_one_pod_is_not_in_the_next() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store, settings=Settings(enable_plugins=("ServiceAccount",)))))
        found = await client.find(SERVICE_ACCOUNTS, "default", namespace="default")
        if found is None:
            await client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        for name in ("a", "b", "c"):
            made = await client.create(pod_with_ports(name))
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
            await client.create(pod_with_ports(name, colour="red"))
        assert told == ['unknown field "spec.colour"'] * 2


@on_loop
async def test_a_struct_that_shares_its_spec_with_the_stored_claim_changes_only_what_it_changes() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store)))
        made = await client.create(claim_for("c"))
        before = store_value(await store.list("/registry/resource.k8s.io/resourceclaims/"))
        await client.update(replace(made, metadata=replace(made.metadata, finalizers=("example.com/f",))))
        after = store_value(await store.list("/registry/resource.k8s.io/resourceclaims/"))
        assert after["spec"] == before["spec"]
        assert after["metadata"]["finalizers"] == ["example.com/f"]
        owned = after["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]
        assert owned["f:finalizers"] == {".": {}, 'v:"example.com/f"': {}}


@on_loop
async def test_server_and_allocator_encode_the_spec_of_a_template_once_per_claim(encoded: EncodedValues) -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store)))
        made = [await client.create(claim_for(name)) for name in ("a", "b")]
        known = signature(made[0].spec.devices, {})
        encoded.count()
        third = await client.create(claim_for("c"))
        assert signature(third.spec.devices, {}) == known
        assert encoded.count() == 1  # what the client sent, to find the shared one
        assert third.spec is made[1].spec


@on_loop
async def test_an_object_without_a_spec_shares_none() -> None:
    async with MemoryStore() as store:
        client = Client(InProcess(await build_server(store)))
        for name in ("a", "b"):
            document = claim_for(name)
            del document["spec"]
            assert (await client.create(document)).spec.devices.requests == ()
        assert specs.SPECS.find(CLAIMS.kind, b"null") is None


@on_loop
async def test_claims_that_differ_in_one_number_have_specs_of_their_own() -> None:
    async with MemoryStore() as store:
        server = await build_server(store)
        client = Client(InProcess(server))
        for count in (1, 2):
            await post(server, claim_for(f"sent-{count}", count))
            await client.create(claim_for(f"handed-{count}", count))
        found = {each.metadata.name: each.spec.devices for each in (await client.list(CLAIMS)).items}
        assert found["sent-1"] == found["handed-1"]
        assert found["sent-2"] == found["handed-2"]
        assert found["sent-1"] != found["sent-2"]


def store_value(page: RecordPage) -> Plain:
    value: Plain = msgspec.json.decode(page.records[0].value)
    return value


@on_loop
async def test_equal_taint_rules_begin_each_at_its_own_time() -> None:
    clock = FakeClock()
    spec = {
        "deviceSelector": {"driver": "equal-rules.example.com"},
        "taint": {"key": "maintenance", "effect": "NoExecute"},
    }
    async with MemoryStore() as store:
        server = await build_server(store, clock=clock, settings=Settings(gates=FeatureGates.all_on()))
        client, begun = Client(InProcess(server)), []
        for name in ("first", "second"):
            rule = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": name}}
            await client.create({**rule, "spec": spec})
            begun.append((await client.get(TAINT_RULES, name)).spec.taint.time_added)
            clock.advance(60)
        assert begun == ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"]
