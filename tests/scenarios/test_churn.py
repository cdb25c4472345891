"""An hour of pods that come and go, on a clock that does not wait: memory is flat, and events end."""

from __future__ import annotations

import gc

import pytest

from drakit.api import Device
from drakit.apiserver.serving.eventexpiry import EventExpiry
from drakit.client import EVENTS, PODS
from drakit.testing import AsyncCluster
from tests.builders.documents import DRIVER
from tests.builders.manifests import by_template, template
from tests.builders.podmanifests import device_class, pod

ROUND_SECONDS = 60.0


async def churn(it: AsyncCluster, minutes: int) -> int:
    """So many minutes; the number of objects of the interpreter afterwards."""
    for minute in range(minutes):
        names = [f"p-{minute % 7}-{each}" for each in range(2)]
        await it.create(*(pod(name, claims=[by_template()]) for name in names))
        await it.advance(ROUND_SECONDS / 2)
        for name in names:
            assert (await it.wait_for(name)).spec.node_name == "node-1"
            await it.delete(PODS, name, grace=0)
        await it.advance(ROUND_SECONDS / 2)
    gc.collect()
    return len(gc.get_objects())


@pytest.mark.dra_cluster(nodes=0)
async def test_memory_is_flat_under_an_hour_of_churn(dra_cluster: AsyncCluster) -> None:
    expiry = EventExpiry(dra_cluster.simulated.server.context.objects, dra_cluster.simulated.clock, 600.0)
    await expiry.start()
    await dra_cluster.add_node("node-1", devices={DRIVER: [Device(name="d0"), Device(name="d1")]})
    await dra_cluster.apply(device_class(), template())
    # Until history, caches and events have reached their bounds.
    before = await churn(dra_cluster, 20)
    after = await churn(dra_cluster, 40)
    # The garbage collector remembers owners that are gone, 500 at most, by three objects each. Beside them hardly
    # anything grows: ten objects were measured. How many there are in all depends on what the interpreter set aside.
    assert after - before < 3 * 2 * 40 + 50
    # Twelve minutes' worth of events at most: ten that they live, and what the next round deletes.
    assert 0 < len(await dra_cluster.list(EVENTS)) < 12 * 2 * 6
    await expiry.stop()
