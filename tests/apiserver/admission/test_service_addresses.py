"""Services get addresses and node ports, keep them, and give them back."""

from __future__ import annotations

import asyncio
import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from unittest import mock

from drakit.api.exchange import Request
from drakit.apiserver import Server, build_server
from drakit.apiserver.admission.plugins.service_addresses import NODE_PORTS, RANGE
from drakit.apiserver.admission.plugins.serviceledger import ServiceLedger
from drakit.apiserver.kinds.served import known_kind
from drakit.store.etcd import EtcdAccess, EtcdStore
from tests.apiserver.calls import Api, on_loop, serving
from tests.builders.etcd import etcd_cluster

SERVICE = known_kind("v1", "Service")
SERVICES = "/api/v1/namespaces/default/services"


def service(name: str, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports, **spec}}


async def made(api: Api, name: str, **spec: Any) -> dict[str, Any]:
    answer = await api.create(SERVICES, service(name, **spec))
    assert answer.code == 201, answer.body
    found: dict[str, Any] = answer.body["spec"]
    return found


def node_ports(spec: dict[str, Any]) -> list[int]:
    return [port["nodePort"] for port in spec["ports"] if "nodePort" in port]


@on_loop
async def test_every_service_gets_an_address_of_its_own() -> None:
    async with serving() as api:
        specs = [await made(api, f"s{number}") for number in range(8)]
        addresses = [spec["clusterIP"] for spec in specs]
        assert len(set(addresses)) == 8
        assert all(ip_address(address) in RANGE for address in addresses)
        first = specs[0]
        assert (first["clusterIPs"], first["ipFamilies"], first["ipFamilyPolicy"]) == (
            [addresses[0]], ["IPv4"], "SingleStack"
        )  # fmt: skip
        assert node_ports(first) == []


@on_loop
async def test_an_address_that_is_asked_for_is_given_once() -> None:
    async with serving() as api:
        assert (await made(api, "a", clusterIP="10.96.0.10"))["clusterIPs"] == ["10.96.0.10"]
        refused = await api.create(SERVICES, service("b", clusterIP="10.96.0.10"))
        assert (refused.code, refused.message) == (
            422,
            (
                'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.10"]: '
                "failed to allocate IP 10.96.0.10: provided IP is already allocated"
            ),
        )
        assert (await api.delete(f"{SERVICES}/a")).code == 200
        assert (await made(api, "b", clusterIP="10.96.0.10"))["clusterIP"] == "10.96.0.10"


@on_loop
async def test_headless_services_and_external_names_have_no_address() -> None:
    async with serving() as api:
        headless = await made(api, "h", clusterIP="None", selector={"a": "b"})
        assert (headless["clusterIPs"], headless["ipFamilies"]) == (["None"], ["IPv4"])
        free = await made(api, "f", clusterIP="None")
        assert (free["ipFamilies"], free["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
        assert "clusterIP" not in await made(api, "e", type="ExternalName", externalName="a.example.com")


@on_loop
async def test_node_ports_are_given_to_types_that_have_them() -> None:
    async with serving() as api:
        one = await made(api, "one", type="NodePort")
        two = await made(api, "two", type="LoadBalancer", externalTrafficPolicy="Local")
        given = [*node_ports(one), *node_ports(two), two["healthCheckNodePort"]]
        assert len(set(given)) == 5
        assert all(port in NODE_PORTS for port in given)
        assert node_ports(await made(api, "three", type="LoadBalancer", allocateLoadBalancerNodePorts=False)) == []


@on_loop
async def test_an_update_that_does_not_mention_them_keeps_them() -> None:
    async with serving() as api:
        before = await made(api, "s", type="NodePort")
        after = (await api.update(f"{SERVICES}/s", service("s", type="NodePort", selector={"a": "b"}))).body["spec"]
        assert after["clusterIP"] == before["clusterIP"]
        assert node_ports(after) == node_ports(before)


@on_loop
async def test_a_service_that_becomes_internal_loses_its_node_ports() -> None:
    async with serving() as api:
        before = await made(api, "s", type="NodePort")
        after = (await api.patch(f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}})).body["spec"]
        assert (after["clusterIP"], node_ports(after)) == (before["clusterIP"], [])


@on_loop
async def test_a_dry_run_shows_an_address_and_takes_none() -> None:
    async with serving() as api:
        shown = await api.create(SERVICES, service("s"), dryRun="All")
        assert ip_address(shown.body["spec"]["clusterIP"]) in RANGE
        assert (await api.get(f"{SERVICES}/s")).code == 404


@on_loop
async def test_a_write_of_a_service_reads_no_other_services() -> None:
    async with serving() as api:
        for number in range(30):
            await made(api, f"s{number}", type="NodePort")
        store, read = api.server.context.objects.store, []
        listed = store.list

        async def counted(prefix: str, **options: Any) -> Any:
            read.append(prefix)
            return await listed(prefix, **options)

        with mock.patch.object(store, "list", counted):
            before = await made(api, "one-more", type="NodePort")
            changed = {**service("one-more", type="NodePort"), "metadata": {"name": "one-more", "labels": {"a": "b"}}}
            assert (await api.send("PUT", f"{SERVICES}/one-more", changed)).body["spec"] == before
        assert [prefix for prefix in read if "services" in prefix] == []


@on_loop
async def test_addresses_of_services_that_were_there_before_the_server_are_known() -> None:
    async with serving() as api:
        taken = await made(api, "old", clusterIP="10.96.0.20", type="NodePort")
        other = await build_server(api.server.context.objects.store)
        refused = await other.handle(
            Request(method="POST", path=SERVICES, body=json.dumps(service("b", clusterIP="10.96.0.20")).encode())
        )
        assert refused.code == 422
        # What this server writes, the other one knows by its watch.
        await made(api, "new", clusterIP="10.96.0.21")
        await asyncio.sleep(0)
        refused = await other.handle(
            Request(method="POST", path=SERVICES, body=json.dumps(service("b", clusterIP="10.96.0.21")).encode())
        )
        assert refused.code == 422
        await other.close()
        assert node_ports(taken)


def test_the_ledger_knows_whose_an_address_and_a_port_is() -> None:
    ledger = ServiceLedger()
    for number, port in enumerate(NODE_PORTS):
        spec = {"ports": [{"nodePort": port}], "clusterIP": f"10.97.{number // 250}.{number % 250}"}
        ledger.put(SERVICE, {"metadata": {"name": f"s{number}", "namespace": "default"}, "spec": spec})
    assert all(ledger.is_used(port, ("default", "other")) for port in NODE_PORTS)
    assert not ledger.is_used(NODE_PORTS[5], ("default", "s5"))
    ledger.put(SERVICE, {"metadata": {"name": "s5", "namespace": "default"}, "spec": {}})
    assert not ledger.is_used(NODE_PORTS[5], ("default", "other"))
    ledger.remove(SERVICE, "default", "s6")
    ledger.remove(SERVICE, "default", "s6")
    assert not ledger.is_used("10.97.0.6", ("default", "other"))


async def posted(server: Server, body: dict[str, Any]) -> int:
    return (await server.handle(Request(method="POST", path=SERVICES, body=json.dumps(body).encode()))).code


@on_loop
async def test_an_address_that_another_server_on_the_same_etcd_has_just_given_is_taken(tmp_path: Path) -> None:
    with etcd_cluster(tmp_path) as (member,):
        access = EtcdAccess(endpoints=(member.client,))
        async with (
            await EtcdStore.open(access) as store, await EtcdStore.open(access) as other,
            await build_server(store) as here, await build_server(other) as there,
        ):  # fmt: skip
            for number in range(10, 20):
                address = f"10.96.0.{number}"
                codes = [
                    await posted(here, service(f"h{number}", clusterIP=address)),
                    await posted(there, service(f"t{number}", clusterIP=address)),
                ]
                assert codes == [201, 422]
