"""A scheduler sets what a scheduler sets, a driver reports on its own devices on its own node."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from drakit.api.exchange import User
from drakit.apiserver.admission.claimstatus import allocated_node, changed_drivers, runs_on
from drakit.apiserver.auth import identities
from drakit.apiserver.auth.roles.components import driver_binding, driver_role
from drakit.apiserver.serving.bootstrap_roles import ensure
from tests.apiserver.auth.people import ADMIN, Plain, grant, guarded, rule
from tests.apiserver.calls import CLAIMS, Answer, Api, on_loop
from tests.builders.documents import claim_document

GPU, NIC = "gpu.example.com", "nic.example.com"
ON_A = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}]}
DRIVER = identities.account("kube-system", "gpu-driver", node="node-a")


def result(driver: str) -> Plain:
    return {"request": "r", "driver": driver, "pool": "node-a", "device": "dev-0"}


def report(driver: str, **more: Any) -> Plain:
    return {"driver": driver, "pool": "node-a", "device": "dev-0", **more}


ALLOCATED = {"allocation": {"devices": {"results": [result(GPU), result(NIC)]}, "nodeSelector": ON_A}}


async def allocate(api: Api, status: Plain = ALLOCATED) -> Plain:
    await api.create(CLAIMS, claim_document("train"), user=ADMIN)
    answer = await set_status(api, status, ADMIN)
    assert answer.code == 200, answer.body
    return status


async def set_status(api: Api, status: Plain, user: User) -> Answer:
    return await api.update(f"{CLAIMS}/train/status", {**claim_document("train"), "status": status}, user=user)


async def install_driver(api: Api) -> None:
    for document in (driver_role(GPU), driver_binding(GPU, "kube-system", "gpu-driver")):
        await ensure(api.server.context, document)


@on_loop
async def test_a_driver_reports_on_its_own_devices() -> None:
    async with guarded() as api:
        await install_driver(api)
        status = await allocate(api)
        answer = await set_status(api, {**status, "devices": [report(GPU, data={"a": 1})]}, DRIVER)
        assert answer.code == 200
        assert answer.body["status"]["devices"][0]["data"] == {"a": 1}
        assert (await set_status(api, status, DRIVER)).code == 200


@on_loop
async def test_a_driver_cannot_write_change_or_remove_what_another_driver_reports() -> None:
    async with guarded() as api:
        await install_driver(api)
        status = await allocate(api)
        refused = await set_status(api, {**status, "devices": [report(NIC)]}, DRIVER)
        assert refused.code == 422
        assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["status.devices"]
        assert f'"{NIC}" is forbidden' in refused.message
        both = {**status, "devices": [report(GPU), report(NIC, data={"ip": "10.0.0.1"})]}
        await set_status(api, both, ADMIN)
        stolen = copy.deepcopy(both)
        stolen["devices"][1]["data"]["ip"] = "10.6.6.6"
        assert (await set_status(api, stolen, DRIVER)).code == 422
        assert (await set_status(api, {**status, "devices": [report(GPU)]}, DRIVER)).code == 422
        patch = {"status": {"devices": [report(GPU)]}}
        assert (await api.patch(f"{CLAIMS}/train/status", patch, user=DRIVER)).code == 422


@on_loop
async def test_a_driver_on_another_node_or_without_one_is_refused() -> None:
    async with guarded() as api:
        await install_driver(api)
        wanted = {**await allocate(api), "devices": [report(GPU)]}
        for node in ("node-b", ""):
            refused = await set_status(api, wanted, identities.account("kube-system", "gpu-driver", node=node))
            assert refused.code == 422
            assert 'verb="[arbitrary-node:update]"' in refused.message


@on_loop
async def test_a_driver_cannot_allocate_reserve_or_release() -> None:
    async with guarded() as api:
        await install_driver(api)
        status = await allocate(api)
        reserved = {**status, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
        for wanted in (reserved, {}):
            refused = await set_status(api, wanted, DRIVER)
            assert refused.code == 422
            assert 'resource="resourceclaims/binding", verb="update"' in refused.message


@on_loop
async def test_a_scheduler_allocates_and_reserves_but_reports_nothing() -> None:
    async with guarded() as api:
        await api.create(CLAIMS, claim_document("train"), user=ADMIN)
        assert (await set_status(api, ALLOCATED, identities.SCHEDULER)).code == 200
        reserved = {**ALLOCATED, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
        assert (await set_status(api, reserved, identities.SCHEDULER)).code == 200
        assert (await set_status(api, {**reserved, "devices": [report(GPU)]}, identities.SCHEDULER)).code == 422
        assert (await set_status(api, {}, identities.SCHEDULER)).code == 200


@on_loop
async def test_denials_and_broken_rules_come_in_one_answer() -> None:
    async with guarded() as api:
        await grant(api, "alice", rule("get update", "resource.k8s.io", "resourceclaims resourceclaims/status"))
        await allocate(api)
        broken = {**ALLOCATED, "devices": [{"driver": GPU, "pool": "", "device": "dev-0"}]}
        answer = await set_status(api, broken, User(name="alice"))
        fields = [cause["field"] for cause in answer.body["details"]["causes"]]
        assert answer.code == 422
        assert "status.devices" in fields
        assert any(field.startswith("status.devices[0]") for field in fields)


@on_loop
async def test_the_scheduler_touches_no_secrets_and_the_claim_controller_no_slices() -> None:
    async with guarded() as api:
        assert (await api.get("/api/v1/secrets", user=identities.SCHEDULER)).code == 403
        claims = identities.controller("resource-claim-controller")
        assert (await api.get("/apis/resource.k8s.io/v1/resourceslices", user=claims)).code == 403
        assert (await api.get(CLAIMS, user=claims)).code == 200


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"nodeSelectorTerms": []},
        {"nodeSelectorTerms": [*ON_A["nodeSelectorTerms"], *ON_A["nodeSelectorTerms"]]},
        {
            "nodeSelectorTerms": [
                {**ON_A["nodeSelectorTerms"][0], "matchExpressions": [{"key": "a", "operator": "Exists"}]}
            ]
        },
        {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-a"]}]}]},
        {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}]},
        {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["node-a"]}]}]},
    ],
)
def test_only_an_allocation_to_one_node_by_name_has_a_node(selector: Plain) -> None:
    assert allocated_node({"nodeSelector": selector}) == ""
    assert allocated_node({"nodeSelector": ON_A}) == "node-a"


def test_the_node_of_a_token_counts_for_service_accounts_and_when_it_is_one() -> None:
    extra = {"authentication.kubernetes.io/node-name": ("node-a",)}
    assert runs_on(User(name="system:serviceaccount:a:b", extra=extra), "node-a")
    assert not runs_on(User(name="alice", extra=extra), "node-a")
    assert not runs_on(User(name="system:serviceaccount:a", extra=extra), "node-a")
    two = {"authentication.kubernetes.io/node-name": ("node-a", "node-b")}
    assert not runs_on(User(name="system:serviceaccount:a:b", extra=two), "node-a")
    assert not runs_on(User(name="system:serviceaccount:a:b", extra=extra), "")


def test_a_second_entry_of_a_device_counts_as_a_change() -> None:
    assert changed_drivers([report(GPU)], [report(GPU)]) == []
    assert changed_drivers([report(GPU, data=1), report(GPU)], [report(GPU)]) == [GPU]
    assert changed_drivers([report(NIC)], [report(GPU)]) == [GPU, NIC]
    assert changed_drivers([report(GPU, conditions=[])], [report(GPU, conditions=None)]) == []
    assert changed_drivers([report(GPU, data={"a": []})], [report(GPU, data={})]) == [GPU]
    assert changed_drivers([report(GPU, shareID="x")], [report(GPU)]) == [GPU]
