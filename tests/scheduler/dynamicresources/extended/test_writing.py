from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from drakit.api import Pod, ResourceClaim, from_plain
from drakit.api.objects.claims import AllocationResult, ResourceClaimConsumerReference
from drakit.apiserver.auth.identities import SCHEDULER
from drakit.base.errors import DrakitError
from drakit.base.wellknown import CLAIM_FINALIZER
from drakit.client import CLAIMS, PODS, QUOTAS, Client, Forbidden, InProcess
from drakit.scheduler.dynamicresources.extended.requests import ResourceRequests, variant_of
from drakit.scheduler.dynamicresources.extended.special import special_claim
from drakit.scheduler.dynamicresources.extended.writes import Writing
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.scheduler.dynamicresources.extended.faults import Faulty, written
from tests.scheduler.dynamicresources.extended.making import GPU

UNDONE = ["PATCH pods/status", "PUT resourceclaims/status", "PUT resourceclaims", "DELETE resourceclaims"]
CREATES = "scheduler_resourceclaim_creates_total"


class Desk:
    """A pod, and somebody who writes its claim over a line that can fail."""

    def __init__(self, it: Cluster, line: Faulty, pod: Pod) -> None:
        self.it = it
        self.line = line
        self.pod = pod
        self.registry = CollectorRegistry()
        self.client = Client(InProcess(line, SCHEDULER), clock=it.clock)
        self.writing = Writing(self.client, self.registry)
        self.variant: ResourceRequests = variant_of(pod, {GPU: "gpu-class"})
        self.claim = special_claim(pod, self.variant, "in-memory")

    async def write_all(self) -> ResourceClaim:
        """As binding does."""
        made = await self.writing.create(self.pod, self.claim)
        kept = replace(made, metadata=replace(made.metadata, finalizers=(CLAIM_FINALIZER,)))
        made = await self.client.update(kept)
        user = ResourceClaimConsumerReference(resource="pods", name="p", uid=self.pod.metadata.uid)
        given = replace(made.status, allocation=ALLOCATION, reserved_for=(user,))
        made = await self.client.update_status(replace(made, status=given))
        await self.writing.record(self.pod, made, self.variant.mappings)
        self.line.writes.clear()
        return made

    def created(self, status: str) -> float | None:
        return self.registry.get_sample_value(CREATES, {"status": status})

    async def claims(self) -> list[ResourceClaim]:
        return await self.it.all(CLAIMS)

    async def status(self) -> Any:
        return (await self.it.find(PODS, "p")).status.extended_resource_claim_status


ALLOCATION = from_plain(
    AllocationResult,
    {
        "devices": {
            "results": [
                {"request": "container-0-request-0", "driver": "gpu.example.com", "pool": "p", "device": f"d{number}"}
                for number in range(2)
            ]
        }
    },
)


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    async with cluster() as it:
        container = {"name": "c", "image": "i", "resources": {"limits": {GPU: "2"}}}
        meta = {"name": "p", "namespace": "default"}
        await it.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}})
        yield Desk(it, Faulty(InProcess(it.server)), await it.find(PODS, "p"))


def only(what: str) -> Any:
    return lambda request: written(request) == what


@on_loop
async def test_the_claim_is_created_under_a_generated_name() -> None:
    async with desk() as it:
        made = await it.writing.create(it.pod, it.claim)
        assert made.metadata.name.startswith("p-extended-resources-")
        assert made.metadata.uid not in ("", "in-memory")
        assert made.spec == it.claim.spec
        assert it.created("success") == 1


@on_loop
async def test_the_pods_status_tells_of_the_claim_and_is_not_written_twice() -> None:
    async with desk() as it:
        made = await it.writing.create(it.pod, it.claim)
        await it.writing.record(it.pod, made, it.variant.mappings)
        status = await it.status()
        assert status.resource_claim_name == made.metadata.name
        assert status.request_mappings == it.variant.mappings
        await it.writing.record(await it.it.find(PODS, "p"), made, it.variant.mappings)
        assert it.line.writes == ["POST resourceclaims", "PATCH pods/status"]


@on_loop
async def test_everything_is_taken_back_in_the_reverse_order() -> None:
    async with desk() as it:
        made = await it.write_all()
        assert await it.writing.take_back(it.pod, made, recorded=True)
        assert it.line.writes == UNDONE
        assert await it.claims() == []
        assert await it.status() is None


@on_loop
async def test_taking_back_twice_is_as_good_as_once() -> None:
    async with desk() as it:
        made = await it.write_all()
        await it.writing.take_back(it.pod, made, recorded=True)
        assert await it.writing.take_back(it.pod, made, recorded=True)


@on_loop
async def test_a_claim_that_was_only_created_is_only_deleted() -> None:
    async with desk() as it:
        made = await it.writing.create(it.pod, it.claim)
        it.line.writes.clear()
        assert await it.writing.take_back(it.pod, made, recorded=False)
        assert it.line.writes == ["DELETE resourceclaims"]


@on_loop
async def test_a_claim_that_could_not_be_deallocated_is_not_deleted() -> None:
    """Found by the simulator, seed 4100: a claim vanished with its devices while it was reserved."""
    async with desk() as it:
        made = await it.write_all()
        it.line.refuse = only("PUT resourceclaims/status")
        assert not await it.writing.take_back(it.pod, made, recorded=True)
        assert it.line.writes == ["PATCH pods/status"]
        (left,) = await it.claims()
        assert (left.status.allocation, left.metadata.finalizers) == (ALLOCATION, (CLAIM_FINALIZER,))


@pytest.mark.parametrize("failing", [each for each in UNDONE if each != "PUT resourceclaims/status"])
def test_taking_back_goes_on_when_a_step_fails(failing: str, caplog: pytest.LogCaptureFixture) -> None:
    @on_loop
    async def run() -> None:
        async with desk() as it:
            made = await it.write_all()
            it.line.refuse = only(failing)
            assert not await it.writing.take_back(it.pod, made, recorded=True)
            assert it.line.writes == [each for each in UNDONE if each != failing]
            assert "the disk is full" in caplog.text

    run()


@pytest.mark.parametrize("failing", UNDONE)
def test_removing_stops_where_a_step_fails_and_can_be_repeated(failing: str) -> None:
    @on_loop
    async def run() -> None:
        async with desk() as it:
            made = await it.write_all()
            it.line.refuse = only(failing)
            with pytest.raises(DrakitError):
                await it.writing.remove(it.pod, made, recorded=True)
            assert it.line.writes == UNDONE[: UNDONE.index(failing)]
            it.line.refuse = lambda _: False
            await it.writing.remove(it.pod, made, recorded=True)
            assert await it.claims() == []

    run()


@on_loop
async def test_a_claim_that_changed_meanwhile_is_taken_back_all_the_same() -> None:
    async with desk() as it:
        made = await it.write_all()
        await it.it.client.patch(made, {"metadata": {"labels": {"touched": "yes"}}})
        assert await it.writing.take_back(it.pod, made, recorded=True)
        assert await it.claims() == []


@on_loop
async def test_a_claim_whose_creation_was_never_answered_is_taken_back() -> None:
    async with desk() as it:
        it.line.lose = only("POST resourceclaims")
        with pytest.raises(DrakitError):
            await it.writing.create(it.pod, it.claim)
        assert len(await it.claims()) == 1
        await it.writing.take_back(it.pod, None, recorded=False)
        assert await it.claims() == []
        assert (it.created("failure"), it.created("success")) == (1, None)


@on_loop
async def test_a_claim_whose_creation_was_never_answered_is_not_made_twice() -> None:
    async with desk() as it:
        it.line.lose = only("POST resourceclaims")
        with pytest.raises(DrakitError):
            await it.writing.create(it.pod, it.claim)
        it.line.lose = lambda _: False
        made = await it.writing.create(it.pod, it.claim)
        assert [each.metadata.uid for each in await it.claims()] == [made.metadata.uid]


@on_loop
async def test_a_refusal_leaves_no_doubt() -> None:
    async with desk() as it:
        await it.it.create(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q", "namespace": "default"},
                "spec": {"hard": {"gpu-class.deviceclass.resource.k8s.io/devices": "1"}},
            }
        )
        quota = await it.it.client.get(QUOTAS, "q", namespace="default")
        await it.it.client.patch_status(quota, {"hard": {"gpu-class.deviceclass.resource.k8s.io/devices": "1"}})
        with pytest.raises(Forbidden):
            await it.writing.create(it.pod, it.claim)
        before = it.line.reads
        await it.writing.take_back(it.pod, None, recorded=False)
        assert it.line.reads == before
        assert it.created("failure") == 1
