"""The official Python client creates, lists, watches and patches every DRA kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from kubernetes import client, config, dynamic, watch

from tests.e2e.processes import Running

NAMESPACE = "default"


class Sample(msgspec.Struct, frozen=True):
    version: str
    kind: str
    spec: Any
    namespaced: bool = False


REQUESTS = [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]
POOL = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
TAINT = {"key": "example.com/bad", "effect": "NoSchedule"}
SAMPLES = (
    Sample("resource.k8s.io/v1", "DeviceClass", {}),
    Sample("resource.k8s.io/v1", "ResourceClaim", {"devices": {"requests": REQUESTS}}, namespaced=True),
    Sample(
        "resource.k8s.io/v1", "ResourceClaimTemplate", {"spec": {"devices": {"requests": REQUESTS}}}, namespaced=True
    ),
    Sample("resource.k8s.io/v1", "ResourceSlice", {"driver": "gpu.example.com", "nodeName": "n1", "pool": POOL}),
    Sample("resource.k8s.io/v1beta2", "DeviceTaintRule", {"taint": TAINT}),
    Sample("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", {"driver": "gpu.example.com"}),
    Sample("resource.k8s.io/v1beta1", "ResourceSlice", {"driver": "gpu.example.com", "nodeName": "n1", "pool": POOL}),
)


@pytest.fixture(scope="module")
def api(server: Running) -> Iterator[client.ApiClient]:
    configuration = client.Configuration()
    load: Any = config.load_kube_config
    load(str(server.kubeconfig), client_configuration=configuration)
    with client.ApiClient(configuration) as made:
        yield made


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.version.partition('/')[2]}-{sample.kind}")
def test_every_kind_is_created_listed_watched_and_patched(api: client.ApiClient, sample: Sample) -> None:
    connect: Any = dynamic.DynamicClient
    resource = connect(api).resources.get(api_version=sample.version, kind=sample.kind)
    where = {"namespace": NAMESPACE} if sample.namespaced else {}
    name = f"py-{sample.kind.lower()}-{sample.version.partition('/')[2]}"
    body = {"apiVersion": sample.version, "kind": sample.kind, "metadata": {"name": name}, "spec": sample.spec}
    made = resource.create(body=body, **where)
    assert made.metadata.uid
    assert name in [item.metadata.name for item in resource.get(**where).items]
    merge = "application/merge-patch+json"
    labels = {"metadata": {"labels": {"seen": "yes"}}}
    assert resource.patch(name=name, body=labels, content_type=merge, **where).metadata.labels.seen == "yes"
    since = made.metadata.resourceVersion
    event = next(resource.watch(resource_version=since, timeout=90, **where))
    assert (event["type"], event["object"].metadata.name) == ("MODIFIED", name)
    resource.delete(name=name, body={}, **where)
    with pytest.raises(dynamic.exceptions.NotFoundError):
        resource.get(name=name, **where)


def test_typed_models_of_the_client_go_in_and_out(api: client.ApiClient) -> None:
    resources: Any = client.ResourceV1Api(api)
    request = client.V1DeviceRequest(
        name="r", exactly=client.V1ExactDeviceRequest(device_class_name="gpu.example.com", count=2)
    )
    spec = client.V1ResourceClaimSpec(devices=client.V1DeviceClaim(requests=[request]))
    body = client.ResourceV1ResourceClaim(metadata=client.V1ObjectMeta(name="typed"), spec=spec)
    made = resources.create_namespaced_resource_claim(NAMESPACE, body)
    assert made.spec.devices.requests[0].exactly.allocation_mode == "ExactCount"
    made.metadata.labels = {"a": "b"}
    replaced = resources.replace_namespaced_resource_claim("typed", NAMESPACE, made)
    assert replaced.metadata.labels == {"a": "b"}
    with pytest.raises(client.ApiException) as stale:
        resources.replace_namespaced_resource_claim("typed", NAMESPACE, made)
    assert stale.value.status == 409
    resources.delete_namespaced_resource_claim("typed", NAMESPACE)


def test_the_client_s_watch_yields_typed_objects(api: client.ApiClient) -> None:
    resources: Any = client.ResourceV1Api(api)
    body = client.V1DeviceClass(metadata=client.V1ObjectMeta(name="typed"), spec=client.V1DeviceClassSpec())
    made = resources.create_device_class(body)
    watching: Any = watch.Watch  # its annotations are not complete
    seen = watching().stream(resources.list_device_class, field_selector="metadata.name=typed", timeout_seconds=5)
    assert next(iter(seen))["object"].metadata.uid == made.metadata.uid
    resources.delete_device_class("typed")


def test_a_pod_is_bound_and_its_status_written(api: client.ApiClient) -> None:
    core: Any = client.CoreV1Api(api)
    container = client.V1Container(name="main", image="registry.example.com/app:1")
    body = client.V1Pod(metadata=client.V1ObjectMeta(name="typed"), spec=client.V1PodSpec(containers=[container]))
    core.create_namespaced_pod(NAMESPACE, body)
    target = client.V1ObjectReference(kind="Node", name="node-a")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="typed"), target=target)
    core.create_namespaced_pod_binding("typed", NAMESPACE, binding, _preload_content=False)
    core.patch_namespaced_pod_status("typed", NAMESPACE, {"status": {"phase": "Running"}})
    found = core.read_namespaced_pod("typed", NAMESPACE)
    assert (found.spec.node_name, found.status.phase) == ("node-a", "Running")
    core.delete_namespaced_pod("typed", NAMESPACE, grace_period_seconds=0)


def test_jobs_are_listed_with_their_models_and_custom_kinds_are_not_there(api: client.ApiClient) -> None:
    container = client.V1Container(name="c", image="i")
    pods = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container], restart_policy="Never"))
    job = client.V1Job(metadata=client.V1ObjectMeta(name="py-job"), spec=client.V1JobSpec(template=pods))
    batch: Any = client.BatchV1Api(api)
    batch.create_namespaced_job(NAMESPACE, job)
    assert "py-job" in [each.metadata.name for each in batch.list_job_for_all_namespaces().items]
    custom: Any = client.ApiextensionsV1Api(api)
    with pytest.raises(client.ApiException) as refused:
        custom.list_custom_resource_definition()
    assert refused.value.status == 404
