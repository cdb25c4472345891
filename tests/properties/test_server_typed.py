"""A client that hands structs over in process and one that sends text leave the same object in the store."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from drakit.api import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceToleration,
    ExactDeviceRequest,
    ObjectMeta,
    OwnerReference,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from drakit.api.exchange import Raw, Request, Response
from drakit.apiserver import Settings, build_server
from drakit.base.clock import FakeClock
from drakit.client import Answered, Client, InProcess
from drakit.store import MemoryStore

Change = tuple[str, Callable[[ResourceClaim], Any]]

good_names = st.sampled_from(["a", "gpu", "b-2", "example.com/x"])
names = good_names | st.sampled_from(["Bad_", "a/b/c", ""])
values = st.sampled_from(["", "v", "w"])
good_texts = st.dictionaries(good_names, values, max_size=3)
texts = good_texts | st.dictionaries(names, values, max_size=3)
tolerations = st.lists(
    st.builds(DeviceToleration, key=st.just("k"), operator=st.sampled_from(["", "Exists", "Equal"])),
    max_size=2,
).map(tuple)
exact = st.builds(
    ExactDeviceRequest,
    device_class_name=st.just("gpu.example.com"),
    allocation_mode=st.sampled_from(["", "ExactCount"]),
    count=st.integers(0, 2),
    tolerations=tolerations,
)
requests = st.lists(
    st.builds(DeviceRequest, name=st.sampled_from(["gpu", "b-2"]), exactly=exact), min_size=1, max_size=2
)
specs = requests.map(lambda some: ResourceClaimSpec(devices=DeviceClaim(requests=tuple(some))))
owners = st.lists(
    st.builds(
        OwnerReference, api_version=st.just("v1"), kind=st.just("Pod"), name=good_names, uid=st.sampled_from("uv")
    ),
    max_size=2,
).map(tuple)
claims = st.builds(
    ResourceClaim,
    metadata=st.builds(
        ObjectMeta,
        generate_name=st.just("claim-"),
        namespace=st.just("default"),
        labels=good_texts,
        annotations=good_texts,
        owner_references=owners,
    ),
    spec=specs,
)
results = st.builds(
    DeviceRequestAllocationResult,
    request=st.sampled_from(["gpu", "b-2"]),
    driver=st.just("gpu.example.com"),
    pool=st.sampled_from(["node-1", "pool"]),
    device=st.sampled_from(["gpu-0", "gpu-1", "Bad_"]),
    tolerations=tolerations,
)
allocations = st.builds(
    AllocationResult, devices=st.builds(DeviceAllocationResult, results=st.lists(results, max_size=2).map(tuple))
)
consumers = st.lists(
    st.builds(
        ResourceClaimConsumerReference, resource=st.just("pods"), name=st.sampled_from("pq"), uid=st.sampled_from("uv")
    ),
    max_size=2,
).map(tuple)
statuses = st.builds(ResourceClaimStatus, allocation=st.none() | allocations, reserved_for=consumers)


def of_metadata(field: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Change]:
    return values.map(
        lambda value: ("update", lambda claim: replace(claim, metadata=replace(claim.metadata, **{field: value})))
    )


changes: st.SearchStrategy[Change] = st.one_of(
    of_metadata("labels", texts),
    of_metadata("annotations", texts),
    of_metadata("finalizers", st.lists(names, max_size=2).map(tuple)),
    specs.map(lambda spec: ("update", lambda claim: replace(claim, spec=spec))),
    statuses.map(lambda status: ("status", lambda claim: replace(claim, status=status))),
    texts.map(lambda some: ("patch", lambda _claim: {"metadata": {"labels": some}})),
    st.just(("update", lambda claim: claim)),
)


class AsText:
    """Sends and gives back bytes, as a connection does."""

    in_process = False
    page_size = 0

    def __init__(self, inner: InProcess) -> None:
        self._inner = inner

    async def handle(self, request: Request) -> Response:
        response = await self._inner.handle(request)
        return msgspec.structs.replace(response, content=Raw(response.content.encode()))

    async def close(self) -> None:
        return


async def story(first: ResourceClaim, then: Sequence[Change], *, as_text: bool) -> list[Any]:
    """What a client is told, and what the store has, after each write."""
    told: list[Any] = []
    clock, uids = FakeClock(), itertools.count()
    async with MemoryStore() as store:
        given_ids = Settings(random=Random(7), new_uid=lambda: f"00000000-0000-4000-8000-{next(uids):012}")
        in_process = InProcess(await build_server(store, clock=clock, settings=given_ids))
        client = Client(AsText(in_process) if as_text else in_process, clock=clock, user_agent="writer")

        async def tell(write: Any) -> Any:
            clock.advance(1.0)
            try:
                found = await write
            except Answered as failure:
                found = None
                told.append(str(failure))
            page = await store.list("/registry/resource.k8s.io/resourceclaims/")
            told.append([json.loads(record.value) for record in page.records])
            return found

        claim = await tell(client.create(first))
        for way, change in then if claim is not None else ():
            made = change(claim)
            if way == "patch":
                written = await tell(client.patch(claim, made))
            else:
                written = await tell(client.update(made, subresource="status" if way == "status" else ""))
            claim = written or claim
            told.append(claim)
    return told


@settings(max_examples=60, deadline=None)
@given(claims, st.lists(changes, min_size=2, max_size=6))
def test_structs_and_text_leave_the_same_objects(first: ResourceClaim, then: list[Change]) -> None:
    typed = asyncio.run(story(first, then, as_text=False))
    assert typed == asyncio.run(story(first, then, as_text=True))
