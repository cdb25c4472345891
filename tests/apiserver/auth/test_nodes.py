"""A node reaches what its own pods need, and nothing of other nodes."""

from __future__ import annotations

from typing import Any

from drakit.api.exchange import User
from drakit.apiserver.auth import identities
from drakit.apiserver.auth.nodes.authorizer import node_of
from tests.apiserver.auth.people import ADMIN, NODE_A, NODE_B, guarded
from tests.apiserver.calls import CLAIMS, CLASSES, PODS, SLICES, Api, on_loop
from tests.builders.documents import claim_document, pod_document, slice_document

SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
UNRELATED = "no relationship found between node 'node-a' and this object"


async def run_pod(api: Api, name: str, node: str = "node-a", **spec: Any) -> None:
    answer = await api.create(PODS, pod_document(name, {"nodeName": node, **spec}), user=ADMIN)
    assert answer.code == 201, answer.body


def test_a_node_is_known_by_name_and_group_together() -> None:
    assert node_of(NODE_A) == "node-a"
    assert node_of(User(name="system:node:node-a")) is None
    assert node_of(User(name="node-a", groups=("system:nodes",))) is None


@on_loop
async def test_a_node_reads_the_claims_of_its_pods() -> None:
    async with guarded() as api:
        for name in ("mine", "theirs"):
            await api.create(CLAIMS, claim_document(name), user=ADMIN)
        await run_pod(api, "p", resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
        assert (await api.get(f"{CLAIMS}/mine", user=NODE_A)).code == 200
        assert (await api.get(f"{CLAIMS}/mine", user=NODE_B)).code == 403
        refused = await api.get(f"{CLAIMS}/theirs", user=NODE_A)
        assert refused.message.endswith(UNRELATED)
        assert (await api.get(CLAIMS, user=NODE_A)).message.endswith("can only get individual resources of this type")
        await api.delete(f"{PODS}/p", user=ADMIN, gracePeriodSeconds="0")
        assert (await api.get(f"{CLAIMS}/mine", user=NODE_A)).code == 403


@on_loop
async def test_a_claim_of_a_template_is_reached_when_the_status_names_it() -> None:
    async with guarded() as api:
        await api.create(CLAIMS, claim_document("p-gpu-x1"), user=ADMIN)
        await run_pod(api, "p", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpus"}])
        assert (await api.get(f"{CLAIMS}/p-gpu-x1", user=NODE_A)).code == 403
        status = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x1"}]}}
        await api.patch(f"{PODS}/p/status", status, user=ADMIN)
        assert (await api.get(f"{CLAIMS}/p-gpu-x1", user=NODE_A)).code == 200


@on_loop
async def test_a_node_never_writes_the_status_of_a_claim() -> None:
    async with guarded() as api:
        await api.create(CLAIMS, claim_document("mine"), user=ADMIN)
        await run_pod(api, "p", resourceClaims=[{"name": "gpu", "resourceClaimName": "mine"}])
        assert (await api.patch(f"{CLAIMS}/mine/status", {"status": {}}, user=NODE_A)).code == 403


@on_loop
async def test_a_node_writes_its_own_slices_only() -> None:
    async with guarded() as api:
        assert (await api.create(SLICES, slice_document("own", "dev-0"), user=NODE_A)).code == 201
        assert (await api.create(SLICES, slice_document("other", "dev-0", node="node-b"), user=NODE_A)).code == 403
        await api.create(SLICES, slice_document("other", "dev-0", node="node-b"), user=ADMIN)
        change = {"metadata": {"labels": {"a": "b"}}}
        assert (await api.patch(f"{SLICES}/own", change, user=NODE_A)).code == 200
        for method, path in (("GET", "other"), ("DELETE", "other"), ("GET", "none")):
            assert (await api.send(method, f"{SLICES}/{path}", user=NODE_A)).message.endswith(UNRELATED)
        assert (await api.patch(f"{SLICES}/other", change, user=NODE_A)).code == 403
        steal = {"spec": {"nodeName": "node-b"}}
        assert (await api.patch(f"{SLICES}/own", steal, user=NODE_A)).code in (403, 422)


@on_loop
async def test_a_node_lists_slices_and_pods_of_its_own_alone() -> None:
    async with guarded() as api:
        await run_pod(api, "p")
        await run_pod(api, "q", node="node-b")
        for path in (SLICES, "/api/v1/pods"):
            assert (await api.get(path, user=NODE_A, fieldSelector="spec.nodeName=node-a")).code == 200
            assert (await api.get(path, user=NODE_A, fieldSelector="spec.nodeName=node-b")).code == 403
            assert (await api.get(path, user=NODE_A, fieldSelector="spec.nodeName!=node-a")).code == 403
            assert (await api.get(path, user=NODE_A)).code == 403
        assert (await api.get(f"{PODS}/p", user=NODE_A)).code == 200
        assert (await api.get(f"{PODS}/q", user=NODE_A)).code == 403


@on_loop
async def test_a_node_reads_the_secrets_and_maps_that_its_pods_mount() -> None:
    async with guarded() as api:
        for path, kind in ((SECRETS, "Secret"), (MAPS, "ConfigMap")):
            for name in ("env", "volume", "projected", "unused"):
                await api.create(path, {"kind": kind, "apiVersion": "v1", "metadata": {"name": name}}, user=ADMIN)
        env = [{"secretRef": {"name": "env"}}, {"configMapRef": {"name": "env"}}]
        sources = [{"secret": {"name": "projected"}}, {"configMap": {"name": "projected"}}]
        volumes: list[dict[str, Any]] = [
            {"name": "a", "secret": {"secretName": "volume"}},
            {"name": "b", "configMap": {"name": "volume"}},
            {"name": "c", "projected": {"sources": sources}},
        ]
        container = {"name": "main", "image": "registry.example.com/app:1", "envFrom": env}
        await run_pod(api, "p", containers=[container], volumes=volumes)
        for path in (SECRETS, MAPS):
            for name in ("env", "volume", "projected"):
                assert (await api.get(f"{path}/{name}", user=NODE_A)).code == 200, (path, name)
            assert (await api.get(f"{path}/unused", user=NODE_A)).code == 403
            assert (await api.get(path, user=NODE_A)).message.endswith("No Object name found")
            assert (await api.get(path, user=NODE_A, fieldSelector="metadata.name=env")).code == 200


@on_loop
async def test_a_mirror_pod_opens_nothing() -> None:
    async with guarded() as api:
        await api.create(SECRETS, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}}, user=ADMIN)
        mirror = pod_document("m", {"nodeName": "node-a", "volumes": [{"name": "v", "secret": {"secretName": "s"}}]})
        mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
        await api.create(PODS, mirror, user=ADMIN)
        assert (await api.get(f"{SECRETS}/s", user=NODE_A)).code == 403


@on_loop
async def test_a_node_keeps_its_own_csi_node() -> None:
    async with guarded() as api:
        head = {"kind": "CSINode", "apiVersion": "storage.k8s.io/v1"}
        mine = {**head, "metadata": {"name": "node-a"}, "spec": {"drivers": []}}
        assert (await api.create(CSI_NODES, mine, user=NODE_A)).code == 201
        assert (await api.patch(f"{CSI_NODES}/node-a", {"metadata": {"labels": {"a": "b"}}}, user=NODE_A)).code == 200
        assert (await api.get(f"{CSI_NODES}/node-a", user=NODE_B)).code == 403
        other = {**mine, "metadata": {"name": "node-b"}}
        refused = await api.create(CSI_NODES, other, user=NODE_A)
        assert "can only access CSINode with the same name as the requesting node" in refused.message
        assert (await api.get(CSI_NODES, user=NODE_A)).code == 403


@on_loop
async def test_a_node_keeps_its_own_lease() -> None:
    async with guarded() as api:
        lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "node-a"}}
        assert (await api.create(LEASES, lease, user=NODE_A)).code == 201
        assert (await api.get(f"{LEASES}/node-a", user=NODE_A)).code == 200
        assert (await api.get(f"{LEASES}/node-a", user=NODE_B)).code == 403
        assert (await api.get(LEASES, user=NODE_A)).code == 403
        elsewhere = LEASES.replace("kube-node-lease", "default")
        assert 'in the "kube-node-lease" system namespace' in (await api.create(elsewhere, lease, user=NODE_A)).message


@on_loop
async def test_a_node_reads_its_own_node_even_before_it_is_there() -> None:
    async with guarded() as api:
        assert (await api.get("/api/v1/nodes/node-a", user=NODE_A)).code == 404
        assert "cannot read 'node-b', only its own" in (await api.get("/api/v1/nodes/node-b", user=NODE_A)).message
        assert "cannot read all nodes" in (await api.get("/api/v1/nodes", user=NODE_A)).message
        node = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "node-a"}}
        assert (await api.create("/api/v1/nodes", node, user=NODE_A)).code == 201


@on_loop
async def test_a_node_gets_tokens_for_the_accounts_of_its_pods() -> None:
    async with guarded() as api:
        for name in ("runner", "other"):
            made = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": name}}
            await api.create(ACCOUNTS, made, user=ADMIN)
        await run_pod(api, "p", serviceAccountName="runner")
        uid = (await api.get(f"{PODS}/p", user=ADMIN)).body["metadata"]["uid"]
        bound = {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": uid}}}
        assert (await api.create(f"{ACCOUNTS}/runner/token", bound, user=NODE_A)).code == 201
        assert (await api.create(f"{ACCOUNTS}/runner/token", bound, user=NODE_B)).code == 403
        assert (await api.create(f"{ACCOUNTS}/other/token", bound, user=NODE_A)).code == 403


@on_loop
async def test_a_node_without_the_group_or_with_an_empty_name_is_nobody() -> None:
    async with guarded() as api:
        assert (
            await api.get(SLICES, user=User(name="system:node:node-a"), fieldSelector="spec.nodeName=node-a")
        ).code == 403
        assert (
            'unknown node for user "system:node:"' in (await api.get(CLASSES, user=identities.node_agent(""))).message
        )
