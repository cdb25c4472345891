"""What the parts of Kubernetes that are written in Go ask of the server in their default configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from drakit.api import KINDS
from drakit.api.codec.protobuf import encode_protobuf
from drakit.api.exchange import EventStream, User
from drakit.apiserver import Settings
from drakit.base.gates import FeatureGates
from tests.apiserver.auth.people import ADMIN, NODE_A, guarded
from tests.apiserver.calls import Answer, Api, on_loop, serving
from tests.apiserver.neighbours import NEIGHBOURS, neighbour
from tests.builders.documents import (
    claim_document,
    class_document,
    document,
    node_document,
    pod_document,
    request_of,
    slice_document,
)

Plain = dict[str, Any]
PB = "application/vnd.kubernetes.protobuf"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
STREAMING = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

# What kube-scheduler and kube-controller-manager watch. One that is missing stops the whole scheduler.
WATCHED = {
    "v1": "configmaps endpoints limitranges namespaces nodes persistentvolumeclaims persistentvolumes pods"
    " podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services",
    "apps/v1": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "batch/v1": "cronjobs jobs",
    "autoscaling/v2": "horizontalpodautoscalers",
    "policy/v1": "poddisruptionbudgets",
    "certificates.k8s.io/v1": "certificatesigningrequests",
    "discovery.k8s.io/v1": "endpointslices",
    "networking.k8s.io/v1": "ingresses ingressclasses ipaddresses networkpolicies servicecidrs",
    "storage.k8s.io/v1": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments"
    " volumeattributesclasses",
    "node.k8s.io/v1": "runtimeclasses",
    "resource.k8s.io/v1": "deviceclasses resourceclaims resourceclaimtemplates resourceslices",
    "resource.k8s.io/v1beta2": "devicetaintrules",
    "resource.k8s.io/v1alpha3": "resourcepoolstatusrequests",
    "scheduling.k8s.io/v1": "priorityclasses",
    "scheduling.k8s.io/v1alpha2": "podgroups workloads",
    "rbac.authorization.k8s.io/v1": "clusterroles clusterrolebindings roles rolebindings",
    "admissionregistration.k8s.io/v1": "mutatingwebhookconfigurations validatingwebhookconfigurations"
    " validatingadmissionpolicies validatingadmissionpolicybindings mutatingadmissionpolicies"
    " mutatingadmissionpolicybindings",
    "coordination.k8s.io/v1": "leases",
    "flowcontrol.apiserver.k8s.io/v1": "flowschemas prioritylevelconfigurations",
    "apiregistration.k8s.io/v1": "apiservices",
}
REQUEST = {"devices": {"requests": [request_of()]}}
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}
TAINT = {"deviceSelector": {"driver": "a.example.com"}, "taint": {"key": "k", "effect": "NoSchedule"}}
GROUPS = "scheduling.k8s.io/v1alpha2"
SENT: tuple[Plain, ...] = (
    node_document("n1"),
    slice_document("s", "gpu-0"),
    claim_document("c"),
    pod_document("p"),
    class_document("gpu.example.com"),
    document("ResourceClaimTemplate", "t", {"spec": REQUEST}),
    document("DeviceTaintRule", "r", TAINT, api="resource.k8s.io/v1beta2"),
    document("ResourcePoolStatusRequest", "q", {"driver": "a.example.com"}, api="resource.k8s.io/v1alpha3"),
    document("PodGroup", "g", GANG, api=GROUPS),
    document("Workload", "w", {"podGroupTemplates": [{"name": "workers", **GANG}]}, api=GROUPS),
    {**document("Endpoints", "e", api="v1"), "subsets": [{"addresses": [{"ip": "192.0.2.1"}]}]},
    *(neighbour(plural) for plural in sorted(NEIGHBOURS)),
)


def root(group_version: str) -> str:
    return f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"


def place(sent: Plain) -> str:
    (kind,) = (each for each in KINDS if each.kind == sent["kind"] and each.serves(sent["apiVersion"]))
    inside = "/namespaces/default" if kind.namespaced else ""
    return f"{root(sent['apiVersion'])}{inside}/{kind.plural}"


async def until_bookmark(stream: EventStream) -> tuple[str, Plain]:
    """The version and the annotations of the first bookmark, before which come objects that are there."""
    async for chunk in stream.lines():
        for event in map(json.loads, chunk.splitlines()):
            if event["type"] == "BOOKMARK":
                return event["object"]["apiVersion"], event["object"]["metadata"]["annotations"]
            assert event["type"] == "ADDED"
    raise AssertionError("the watch ended")


@pytest.mark.parametrize("group_version", WATCHED)
@on_loop
async def test_a_streaming_list_of_each_kind_that_they_watch_comes_to_its_end(group_version: str) -> None:
    async with serving(Settings(gates=FeatureGates.all_on())) as api:
        for plural in WATCHED[group_version].split():
            stream = await api.watch(f"{root(group_version)}/{plural}", **STREAMING)
            assert await until_bookmark(stream) == (group_version, {"k8s.io/initial-events-end": "true"})
            await stream.close()


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: str(sent["kind"]))
@on_loop
async def test_a_body_in_protobuf_makes_the_object_that_one_in_json_makes(sent: Plain) -> None:
    async with serving(Settings(gates=FeatureGates.all_on())) as api:
        taken = await api.create(place(sent), encode_protobuf(sent), content=PB, dryRun="All")
        assert taken.code == 201, taken.body
        expected = await api.create(place(sent), sent, dryRun="All")
        assert without_uid(taken) == without_uid(expected)


def without_uid(answer: Answer) -> Plain:
    found: Plain = json.loads(json.dumps(answer.body).replace(answer.body["metadata"]["uid"], "UID"))
    return found


def _named(resources: list[Plain]) -> Iterator[str]:
    for resource in resources:
        yield resource["resource"]
        yield from (f"{resource['resource']}/{each['subresource']}" for each in resource.get("subresources", ()))


@on_loop
async def test_the_two_discoveries_name_the_same_groups_and_resources() -> None:
    async with serving() as api:
        plain, aggregated = [], []
        listed = [version["groupVersion"] for group in (await api.get("/apis")).body["groups"] for version in
                  group["versions"]]  # fmt: skip
        for group_version in ("v1", *listed):
            found = (await api.get(root(group_version))).body["resources"]
            plain.append((group_version, {each["name"] for each in found}))
        for path in ("/api", "/apis"):
            for group in (await api.get(path, accept=AGGREGATED)).body["items"]:
                for version in group["versions"]:
                    name = "/".join(filter(None, (group["metadata"].get("name"), version["version"])))
                    aggregated.append((name, set(_named(version["resources"]))))
        assert plain == aggregated
        assert [name for name, resources in plain if not resources] == ["apiextensions.k8s.io/v1"]


@on_loop
async def test_versions_whose_end_is_not_begun_are_not_warned_of() -> None:
    told: list[str] = []
    async with serving(Settings(gates=FeatureGates.all_on())) as api:
        for group_version, plurals in WATCHED.items():
            for plural in plurals.split():
                told += (await api.get(f"{root(group_version)}/{plural}")).response.warnings
        assert told == ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]


def account(name: str) -> User:
    return User(name=f"system:serviceaccount:kube-system:{name}", groups=("system:serviceaccounts",))


async def asked(api: Api, name: str, method: str, path: str, body: Any = None) -> Answer:
    merge = "application/merge-patch+json"
    return await api.send(method, path, body, content=merge, user=account(name))


@on_loop
async def test_the_controllers_of_nodes_ages_and_of_old_tokens_may_do_their_work() -> None:
    tracking = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
    labelled = {"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": "0"}}}
    async with guarded() as api:
        await api.create("/api/v1/nodes", node_document("n"), user=ADMIN)
        assert (await asked(api, "ttl-controller", "PATCH", "/api/v1/nodes/n", labelled)).code == 200
        assert (await asked(api, "ttl-controller", "DELETE", "/api/v1/nodes/n")).code == 403
        found = await asked(api, "legacy-service-account-token-cleaner", "GET", tracking)
        assert found.body["data"] == {"since": "2026-01-01"}
        assert (await asked(api, "ttl-controller", "GET", tracking)).code == 403


@on_loop
async def test_a_kubelet_writes_its_storage_drivers_in_protobuf() -> None:
    nodes = "/apis/storage.k8s.io/v1/csinodes"
    mine = document("CSINode", "node-a", {"drivers": []}, api="storage.k8s.io/v1")
    async with guarded() as api:
        assert (await api.get(f"{nodes}/node-a", resourceVersion="0", user=NODE_A)).code == 404
        made = await api.create(nodes, encode_protobuf(mine), content=PB, user=NODE_A)
        assert made.code == 201, made.body
        changed = {**made.body, "spec": {"drivers": [{"name": "d.example.com", "nodeID": "a"}]}}
        assert (await api.update(f"{nodes}/node-a", encode_protobuf(changed), content=PB, user=NODE_A)).code == 200


@on_loop
async def test_the_second_openapi_describes_pods_and_their_fields() -> None:
    async with serving() as api:
        pod = (await api.get("/openapi/v2")).body["definitions"]["io.k8s.api.core.v1.Pod"]
        assert {"group": "", "version": "v1", "kind": "Pod"} in pod["x-kubernetes-group-version-kind"]
        assert all(field["description"] for field in pod["properties"].values())
