"""Plugins that are on in Kubernetes and off here: nobody but kube-controller-manager could take back what they add."""

from __future__ import annotations

from random import Random
from typing import Any

from drakit.apiserver import Settings
from tests.apiserver.calls import Api, on_loop, serving

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
VOLUME = {
    "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}},
}  # fmt: skip
CLAIM = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}  # fmt: skip


async def created(api: Api, path: str, document: dict[str, Any]) -> Any:
    answer = await api.create(path, document)
    assert answer.code == 201, answer.body
    return answer.body


def tainted(*taints: dict[str, str]) -> dict[str, Any]:
    spec = {"spec": {"taints": list(taints)}} if taints else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, **spec}


@on_loop
async def test_new_nodes_and_volumes_are_left_as_they_are() -> None:
    async with serving() as api:
        assert "taints" not in (await created(api, "/api/v1/nodes", tainted())).get("spec", {})
        assert "finalizers" not in (await created(api, "/api/v1/persistentvolumes", VOLUME))["metadata"]


@on_loop
async def test_a_new_node_is_not_ready_where_the_plugin_is_on() -> None:
    settings = Settings(random=Random(7), enable_plugins=("TaintNodesByCondition",))
    other = {"key": "k", "value": "v", "effect": "NoExecute"}
    async with serving(settings) as api:
        assert (await created(api, "/api/v1/nodes", tainted(other)))["spec"]["taints"] == [other, NOT_READY]
        assert (await api.delete("/api/v1/nodes/n")).code == 200
        assert (await created(api, "/api/v1/nodes", tainted(NOT_READY)))["spec"]["taints"] == [NOT_READY]


@on_loop
async def test_volumes_and_claims_are_protected_where_the_plugin_is_on() -> None:
    settings = Settings(random=Random(7), enable_plugins=("StorageObjectInUseProtection",))
    async with serving(settings) as api:
        volume = await created(api, "/api/v1/persistentvolumes", VOLUME)
        claim = await created(api, "/api/v1/namespaces/default/persistentvolumeclaims", CLAIM)
        assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        held = await api.delete("/api/v1/persistentvolumes/v")
        assert "deletionTimestamp" in held.body["metadata"]
