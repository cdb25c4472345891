"""The client speaks the newest version of the resource group that a server has, and shows one internal form."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from drakit.api import Device, ObjectMeta, ResourcePool, ResourceSlice, ResourceSliceSpec
from drakit.apiserver import Settings
from drakit.client import CLAIMS, POOL_STATUS_REQUESTS, SLICES, TAINT_RULES, Client, NotServed
from tests.builders.objects import claim_to_send
from tests.client.servers import in_process, on_loop, over_http

Serving = Callable[[Settings], AbstractAsyncContextManager[Client]]

WITHOUT = {
    "v1": "",
    "v1beta2": "resource.k8s.io/v1=false",
    "v1beta1": "resource.k8s.io/v1=false,resource.k8s.io/v1beta2=false",
}


@pytest.fixture(params=[in_process, over_http], ids=["in process", "over http"])
def serving(request: pytest.FixtureRequest) -> Serving:
    made: Serving = request.param
    return made


def a_slice() -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name="slice"),
        spec=ResourceSliceSpec(
            driver="gpu.example.com",
            node_name="node-a",
            pool=ResourcePool(name="node-a", generation=1, resource_slice_count=1),
            devices=(Device(name="gpu-0"),),
        ),
    )


@pytest.mark.parametrize("version", WITHOUT)
@on_loop
async def test_the_newest_version_is_spoken_and_never_seen(serving: Serving, version: str) -> None:
    async with serving(Settings(runtime_config=WITHOUT[version])) as client:
        assert await client.version_of(CLAIMS) == version
        made = await client.create(claim_to_send("train"))
        assert made.api_version == "resource.k8s.io/v1"
        request = made.spec.devices.requests[0]
        assert request.exactly is not None
        assert request.exactly.device_class_name == "gpu.example.com"
        assert await client.get(CLAIMS, "train", namespace="default") == made
        assert (await client.list(CLAIMS)).items == (made,)
        published = await client.create(a_slice())
        assert [device.name for device in published.spec.devices] == ["gpu-0"]
        async with client.watch(SLICES) as changes:
            change = await anext(changes)
        assert change.object == published


@on_loop
async def test_an_update_goes_in_the_servers_version(serving: Serving) -> None:
    async with serving(Settings(runtime_config=WITHOUT["v1beta1"])) as client:
        made = await client.create(claim_to_send("train"))
        patched = await client.patch(made, {"metadata": {"labels": {"a": "1"}}})
        assert (await client.update_status(patched)).metadata.labels == {"a": "1"}
        assert (await client.update(patched)).spec == made.spec


@on_loop
async def test_kinds_of_the_group_have_versions_of_their_own(serving: Serving) -> None:
    async with serving(Settings()) as client:
        assert await client.version_of(TAINT_RULES) == "v1beta2"
        assert await client.version_of(POOL_STATUS_REQUESTS) == "v1beta2"
    async with serving(Settings(runtime_config="resource.k8s.io/v1beta2=false")) as client:
        assert await client.version_of(TAINT_RULES) == "v1alpha3"


@on_loop
async def test_a_server_without_the_group_is_told_apart(serving: Serving) -> None:
    none = ",".join(f"resource.k8s.io/{version}=false" for version in ("v1", "v1beta2", "v1beta1", "v1alpha3"))
    async with serving(Settings(runtime_config=none)) as client:
        assert not await client.serves(CLAIMS)
        with pytest.raises(NotServed, match="in none of v1, v1beta2, v1beta1"):
            await client.list(CLAIMS)


@on_loop
async def test_a_document_is_sent_in_the_version_that_it_is_written_in(serving: Serving) -> None:
    old = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "ResourceClaim",
        "metadata": {"name": "old", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu.example.com"}]}},
    }
    async with serving(Settings()) as client:
        made = await client.create(old)
        assert made.api_version == "resource.k8s.io/v1"
        assert made.spec.devices.requests[0].exactly.device_class_name == "gpu.example.com"
