"""What a node's PodResources service tells, over its socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grpc import aio

from drakit.pluginapi import podresources_v1_pb2, podresources_v1_pb2_grpc


async def pod_resources(root: Path) -> list[Any]:
    """All pods that use something."""
    async with aio.insecure_channel(f"unix:{root}/pod-resources/kubelet.sock") as channel:
        stub: Any = podresources_v1_pb2_grpc.PodResourcesListerStub(channel)
        return list((await stub.List(podresources_v1_pb2.ListPodResourcesRequest())).pod_resources)
