"""What is known of special claims while caches lag behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from prometheus_client import CollectorRegistry

from drakit.api import Pod, ResourceClaim
from drakit.api.podclaims import pod_consumer
from drakit.client import CLAIMS, CLASSES, PODS, Client, InProcess
from drakit.informers import Informers
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.dynamicresources.extended import Extended, ExtendedAttempt, begin_attempt
from drakit.scheduler.dynamicresources.extended.requests import variant_of
from drakit.scheduler.dynamicresources.extended.special import special_claim, to_create
from drakit.scheduler.dynamicresources.state.context import PluginContext
from drakit.scheduler.dynamicresources.state.needs import PodNeeds
from drakit.scheduler.framework import Handle
from tests.builders.schedulercluster import SchedulingCluster, cluster, on_loop
from tests.scheduler.dynamicresources.extended import making
from tests.scheduler.dynamicresources.extended.stage import CLASS, GATES, GPU, asking, gpu_class


class Bench:
    """Caches that see only what a test shows them."""

    def __init__(self, it: SchedulingCluster, pod: Pod, claim: ResourceClaim) -> None:
        client = Client(InProcess(it.server), clock=it.clock)
        self.it, self.pod, self.claim = it, pod, claim
        self.informers = Informers(client, clock=it.clock)
        handle = Handle(
            client,
            self.informers,
            SchedulerCache(),
            clock=it.clock,
            gates=GATES,
            registry=CollectorRegistry(),
            random=Random(1),
            new_uid=lambda: "in-memory",
        )
        self.context = PluginContext(handle)
        found = Extended.shared(handle, self.context)
        assert found is not None
        self.extended = found

    def begin(self) -> tuple[PodNeeds, ExtendedAttempt]:
        state = PodNeeds()
        attempt = begin_attempt(self.context, self.extended, state, self.pod)
        assert attempt is not None
        return state, attempt


@asynccontextmanager
async def bench() -> AsyncIterator[Bench]:
    """A pod with a special claim, both known; the cache of claims will hear of nothing more."""
    async with cluster(GATES) as it:
        await it.create(gpu_class(), asking(gpu=1))
        pod = await it.pod("p")
        claim = await it.client.create(to_create(special_claim(pod, variant_of(pod, {GPU: CLASS}), "")))
        made = Bench(it, pod, claim)
        made.informers.of(CLASSES).put(await it.client.get(CLASSES, CLASS))
        made.informers.of(PODS).put(await it.client.get(PODS, "p", namespace="default"))
        made.informers.of(CLAIMS).put(claim)
        yield made


@on_loop
async def test_a_claim_of_an_earlier_attempt_is_a_need_from_the_beginning() -> None:
    async with bench() as it:
        state, _ = it.begin()
        assert [(need.claim, need.special, need.consumer) for need in state.needs] == [
            (it.claim, True, pod_consumer(it.pod))
        ]


@on_loop
async def test_a_claim_that_was_taken_back_is_not_found_again_though_the_cache_still_shows_it() -> None:
    async with bench() as it:
        state, attempt = it.begin()
        await attempt.undo(state)
        assert await it.it.all(CLAIMS) == []
        assert it.context.claims.controlled_by(it.pod.metadata.uid) == [it.claim]
        assert it.extended.stored(it.pod) is None
        assert it.begin()[0].needs == []
        assert state.needs == []


@on_loop
async def test_a_claim_that_made_way_is_not_found_again_though_the_cache_still_shows_it() -> None:
    async with bench() as it:
        state, attempt = it.begin()
        status = await attempt.make_way(state)
        assert status is not None
        assert status.message == "deletion of ResourceClaim completed"
        assert it.extended.stored(it.pod) is None


@on_loop
async def test_what_is_remembered_of_a_pod_goes_with_it() -> None:
    async with bench() as it:
        state, attempt = it.begin()
        await attempt.undo(state)
        pods = it.informers.of(PODS)
        pods.remove(await it.it.client.get(PODS, "p", namespace="default"))
        assert it.extended.stored(it.pod) is not None


@on_loop
async def test_others_learn_which_resources_devices_provide() -> None:
    async with bench() as it:
        handle = it.context.handle.extended_resources
        assert handle.is_backed_by_class(GPU, making.node_with("a"))
        assert handle.is_backed_by_class(GPU, making.node_with("a", gpu="0"))
        assert not handle.is_backed_by_class(GPU, making.node_with("a", gpu="1"))
        assert not handle.is_backed_by_class("example.com/other", making.node_with("a"))
        assert handle.totals("example.com/other", making.node_with("a")) == (0, 0)
