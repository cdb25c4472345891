"""The pods that a server knows, from an informer's cache."""

from __future__ import annotations

import asyncio

from drakit.client import PODS
from drakit.informers import Informer
from drakit.nodeagent.server import CachedPods
from tests.builders.documents import pod_document
from tests.client.servers import in_process, on_loop


@on_loop
async def test_the_pods_of_an_informer_are_whole_documents() -> None:
    async with in_process() as client:
        await client.create(pod_document("web", namespace="default"))
        informer = Informer(client, PODS)
        following = asyncio.create_task(informer.run())
        await informer.wait_synced()
        pods = CachedPods(informer)
        found = pods.find("default", "web")
        assert found is not None
        assert found["spec"]["containers"][0]["image"]
        assert pods.find("default", "other") is None
        assert [each["metadata"]["name"] for each in pods.all()] == ["web"]
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
