"""What nodes may and may not write, with authorization out of the way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.admission.objects import ACCOUNTS, LEASES, MIRROR, NODES, disabled, node_user
from tests.apiserver.calls import PODS, SLICES, Api, on_loop, serving
from tests.builders.documents import Plain, node_document, pod_document, slice_document

A, B = node_user("node-a"), node_user("node-b")


def mirror(node_uid: str, **spec: Any) -> Plain:
    made = pod_document("m", {"nodeName": "node-a", **spec})
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": node_uid, "controller": True}
    made["metadata"] |= {"annotations": {MIRROR: "x"}, "ownerReferences": [owner]}
    return made


async def running(api: Api, name: str = "p", node_name: str = "node-a") -> Plain:
    made: Plain = (await api.create(PODS, pod_document(name, {"nodeName": node_name}))).body
    return made


@pytest.mark.parametrize("spec", [{"nodeName": "node-b"}, {"allNodes": True}])
@on_loop
async def test_a_node_creates_slices_of_its_own_only(spec: Plain) -> None:
    async with serving() as api:
        made = slice_document("s", "dev-0")
        del made["spec"]["nodeName"]
        made["spec"] |= spec
        answer = await api.create(SLICES, made, user=A)
        assert answer.code == 403
        assert answer.message == (
            'resourceslices.resource.k8s.io "s" is forbidden: can only create ResourceSlice with the same NodeName as '
            "the requesting node"
        )
        assert (await api.create(SLICES, slice_document("own", "dev-0"), user=A)).code == 201


@on_loop
async def test_deleting_a_collection_stops_at_slices_of_other_nodes() -> None:
    async with serving() as api:
        await api.create(SLICES, slice_document("s", "dev-0", node="node-b"))
        answer = await api.delete(SLICES, user=A)
        assert answer.code == 403
        assert "can only delete ResourceSlice with the same NodeName as the requesting node" in answer.message
        assert (await api.get(f"{SLICES}/s")).code == 200


@on_loop
async def test_a_node_that_has_no_name_is_refused() -> None:
    async with serving() as api:
        answer = await api.create(SLICES, slice_document("s", "dev-0"), user=node_user(""))
        assert answer.code == 403
        assert 'could not determine node from user "system:node:"' in answer.message


@on_loop
async def test_a_node_changes_itself_only() -> None:
    async with serving() as api:
        assert (await api.create(NODES, node_document("node-a"), user=A)).code == 201
        answer = await api.patch(f"{NODES}/node-a", {"metadata": {"labels": {"a": "b"}}}, user=B)
        assert answer.message == 'nodes "node-a" is forbidden: node "node-b" is not allowed to modify node "node-a"'


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("example.com/rack", True),
        ("kubernetes.io/hostname", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/anything", True),
        ("mine.kubelet.kubernetes.io/x", True),
        ("node-restriction.kubernetes.io/secure", False),
        ("x.node-restriction.kubernetes.io/secure", False),
        ("kubernetes.io/role", False),
        ("k8s.io/other", False),
    ],
)
@on_loop
async def test_labels_that_draw_work_are_not_a_nodes_to_set(label: str, allowed: bool) -> None:
    async with serving() as api:
        created = await api.create(NODES, node_document("node-a", **{label: "x"}), user=A)
        await api.create(NODES, node_document("node-b"))
        changed = await api.patch(f"{NODES}/node-b", {"metadata": {"labels": {label: "x"}}}, user=B)
        if allowed:
            assert (created.code, changed.code) == (201, 200)
        else:
            assert created.message.endswith(f'node "node-a" is not allowed to set the following labels: {label}')
            assert changed.message.endswith(f"is not allowed to modify labels: {label}")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, "is not allowed to modify taints"),
        (
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "u"}]}},
            "is not allowed to modify ownerReferences",
        ),
    ],
)
@on_loop
async def test_a_node_keeps_its_taints_and_owners(change: Plain, why: str) -> None:
    async with serving() as api:
        await api.create(NODES, node_document("node-a"))
        answer = await api.patch(f"{NODES}/node-a", change, user=A)
        assert (answer.code, answer.message) == (403, f'nodes "node-a" is forbidden: node "node-a" {why}')


@on_loop
async def test_a_node_reports_on_its_own_pods_only() -> None:
    async with serving() as api:
        await running(api)
        phase = {"status": {"phase": "Running"}}
        assert (await api.patch(f"{PODS}/p/status", phase, user=A)).code == 200
        answer = await api.patch(f"{PODS}/p/status", phase, user=B)
        assert answer.message == (
            'pods "p" is forbidden: node "node-b" can only update pod status for pods with spec.nodeName set to itself'
        )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, "cannot update labels through pod status"),
        (
            {"status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "x"}]}},
            "cannot update resource claim statues",
        ),
        (
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "x"}}},
            "cannot update extended resource claim status",
        ),
    ],
)
@on_loop
async def test_what_leads_to_claims_is_not_a_nodes_to_report(change: Plain, why: str) -> None:
    async with serving() as api:
        await running(api)
        answer = await api.patch(f"{PODS}/p/status", change, user=A)
        assert (answer.code, answer.message) == (403, f'pods "p" is forbidden: node "node-a" {why}')


@on_loop
async def test_a_node_deletes_and_evicts_its_own_pods_only() -> None:
    async with serving() as api:
        await running(api)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        deleted, evicted = (
            await api.delete(f"{PODS}/p", user=B),
            await api.create(f"{PODS}/p/eviction", eviction, user=B),
        )
        assert deleted.message.endswith('node "node-b" can only delete pods with spec.nodeName set to itself')
        assert evicted.message.endswith("node node-b can only evict pods with spec.nodeName set to itself")
        assert (await api.create(f"{PODS}/p/eviction", eviction, user=A)).code == 201


@on_loop
async def test_a_node_neither_changes_nor_resizes_pods() -> None:
    async with serving() as api:
        await running(api)
        changed = await api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, user=A)
        resized = await api.patch(f"{PODS}/p/resize", {"spec": {}}, user=A)
        assert changed.message.endswith(
            'unexpected operation "UPDATE", node "node-a" can only create and delete mirror pods'
        )
        assert resized.message.endswith(
            "unexpected pod subresource \"resize\", only 'status' and 'eviction' are allowed"
        )


@on_loop
async def test_a_node_creates_mirror_pods_of_its_own() -> None:
    async with serving() as api:
        uid = (await api.create(NODES, node_document("node-a"))).body["metadata"]["uid"]
        assert (await api.create(PODS, mirror(uid), user=A)).code == 201
        plain = await api.create(PODS, pod_document("p", {"nodeName": "node-a"}), user=A)
        assert plain.message.endswith(
            'pod does not have "kubernetes.io/config.mirror" annotation, node "node-a" can only create mirror pods'
        )


@pytest.mark.parametrize(
    ("spec", "metadata", "why"),
    [
        ({"nodeName": "node-b"}, {}, "can only create pods with spec.nodeName set to itself"),
        ({}, {"ownerReferences": []}, "can only create pods with an owner reference set to itself"),
        ({"serviceAccountName": "x"}, {}, "can not create pods that reference serviceaccounts"),
        ({"imagePullSecrets": [{"name": "s"}]}, {}, "can not create pods that reference secrets"),
        (
            {"volumes": [{"name": "v", "configMap": {"name": "c"}}]},
            {},
            "can not create pods that reference configmaps",
        ),
        (
            {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
            {},
            "can not create pods that reference resourceclaims",
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            {},
            "can not create pods that reference serviceaccounts (via projected volumes)",
        ),
    ],
)
@on_loop
async def test_a_mirror_pod_opens_nothing_to_its_node(spec: Plain, metadata: Plain, why: str) -> None:
    async with serving() as api:
        uid = (await api.create(NODES, node_document("node-a"))).body["metadata"]["uid"]
        made = mirror(uid, **spec)
        made["metadata"] |= metadata
        answer = await api.create(PODS, made, user=A)
        assert (answer.code, answer.message) == (403, f'pods "m" is forbidden: node "node-a" {why}')


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"controller": False}, 'node "node-a" can only create pods with a controller owner reference set to itself'),
        ({"blockOwnerDeletion": True}, 'node "node-a" must not set blockOwnerDeletion on an owner reference'),
        ({"name": "node-b"}, 'node "node-a" can only create pods with an owner reference set to itself'),
        ({"uid": "other"}, "node node-a UID mismatch: expected other got "),
    ],
)
@on_loop
async def test_a_mirror_pod_belongs_to_its_node(change: Plain, why: str) -> None:
    async with serving() as api:
        uid = (await api.create(NODES, node_document("node-a"))).body["metadata"]["uid"]
        made = mirror(uid)
        made["metadata"]["ownerReferences"][0] |= change
        answer = await api.create(PODS, made, user=A)
        assert answer.code == 403
        assert why in answer.message


@on_loop
async def test_a_node_has_one_lease() -> None:
    async with serving() as api:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "node-a"}, "spec": {}}
        assert (await api.create(LEASES, lease, user=A)).code == 201
        other = await api.create(LEASES, lease, user=B)
        elsewhere = await api.create(LEASES.replace("kube-node-lease", "default"), lease, user=A)
        assert other.message.endswith("can only access node lease with the same name as the requesting node")
        assert elsewhere.message.endswith('can only access leases in the "kube-node-lease" system namespace')


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (None, "node requested token not bound to a pod"),
        ({"kind": "Node"}, "node requested token not bound to a pod"),
        ({"uid": ""}, "node requested token with a pod binding without a uid"),
        ({"uid": "other"}, "the UID in the bound object reference (other) does not match the UID in record."),
        ({}, ""),
    ],
)
@on_loop
async def test_a_node_gets_tokens_for_its_pods_only(change: Plain | None, why: str) -> None:
    async with serving() as api:
        await api.create(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        uid = (await api.create(PODS, pod_document("p", {"nodeName": "node-a", "serviceAccountName": "default"}))).body[
            "metadata"
        ]["uid"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}
        spec = {"boundObjectRef": bound | change} if change is not None else {}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = await api.create(f"{ACCOUNTS}/default/token", body, user=A)
        if why:
            assert answer.code == 403
            assert why in answer.message
        else:
            assert answer.code == 201
            other = await api.create(f"{ACCOUNTS}/default/token", body, user=B)
            assert "bound to a pod scheduled on a different node" in other.message


@pytest.mark.parametrize("body", [b"[]", b'{"spec": []}', b'{"spec": {"boundObjectRef": "x"}}', b'"x"'])
@on_loop
async def test_nonsense_instead_of_a_token_request_is_refused(body: bytes) -> None:
    async with serving() as api:
        await api.create(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        assert (await api.create(f"{ACCOUNTS}/default/token", body, user=A)).code in (400, 403)


@on_loop
async def test_others_are_not_held_to_what_nodes_are_and_without_the_plugin_nobody_is() -> None:
    async with serving() as api:
        assert (await api.create(SLICES, slice_document("s", "dev-0", node="node-b"))).code == 201
    async with serving(disabled("NodeRestriction")) as api:
        assert (await api.create(SLICES, slice_document("s", "dev-0", node="node-b"), user=A)).code == 201
