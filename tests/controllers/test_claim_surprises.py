"""Claims under odd circumstances: what others change, names that are hard to make, watches with gaps."""

from __future__ import annotations

import asyncio

import pytest

from drakit.api.exchange import Request, Response, StatusContent
from drakit.base.status import failure
from drakit.base.wellknown import POD_CLAIM_ANNOTATION
from drakit.client import CLAIMS, EVENTS, POD_GROUPS, PODS
from tests.builders.cluster import Cluster, on_loop
from tests.builders.manifests import by_name, by_template, claim, pod, pod_group, template
from tests.controllers.claims import allocate, running


async def recorded(it: Cluster, name: str) -> list[str | None]:
    return [each.resource_claim_name for each in (await it.find(PODS, name)).status.resource_claim_statuses]


@on_loop
async def test_a_claim_without_its_annotation_is_still_the_one_that_the_pod_names() -> None:
    async with running() as it:
        await it.create(template(), pod("p", claims=[by_template()]))
        [made] = await it.all(CLAIMS)
        await it.client.patch(made, {"metadata": {"annotations": {POD_CLAIM_ANNOTATION: None}}})
        await it.settle()
        assert [each.metadata.name for each in await it.all(CLAIMS)] == [made.metadata.name]
        assert await recorded(it, "p") == [made.metadata.name]


@on_loop
async def test_a_claim_that_another_leader_has_recorded_meanwhile_is_not_exchanged() -> None:
    async with running() as it:
        inner = it.server.handle
        others: list[str] = []

        async def handle(request: Request) -> Response:
            answer = await inner(request)
            if request.method == "POST" and request.path.endswith("/resourceclaims") and not others:
                others.append("of-the-other-leader")
                asked = await it.client.get(PODS, "p", namespace="default")
                ours = claim(others[0])
                ours["metadata"] |= {
                    "annotations": {POD_CLAIM_ANNOTATION: "g"},
                    "ownerReferences": [
                        {
                            "apiVersion": "v1",
                            "kind": "Pod",
                            "name": "p",
                            "uid": asked.view.metadata.uid,
                            "controller": True,
                        }
                    ],
                }
                await it.client.create(ours)
                status = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": others[0]}]}
                await it.client.patch_status(asked, status)
            return answer

        it.server.handle = handle  # type: ignore[method-assign]
        await it.create(template(), pod("p", claims=[by_template()]))
        await it.run_for(5)
        assert others
        assert await recorded(it, "p") == others


@pytest.mark.parametrize("dot", range(45, 56))
@on_loop
async def test_a_long_name_may_have_a_dot_where_it_is_cut(dot: int) -> None:
    async with running() as it:
        name = f"{'a' * dot}.{'b' * (59 - dot)}"
        await it.create(template(), pod(name, claims=[by_template("entry")]))
        assert len(await recorded(it, name)) == 1


@on_loop
async def test_a_random_name_that_is_taken_is_drawn_again() -> None:
    async with running() as it:
        inner = it.server.handle
        refused: list[str] = []

        async def handle(request: Request) -> Response:
            if request.method == "POST" and request.path.endswith("/resourceclaims") and not refused:
                refused.append(request.path)
                status = failure(409, "AlreadyExists", 'resourceclaims "p-g-xxxxx" already exists')
                return Response(code=409, content=StatusContent(status))
            return await inner(request)

        it.server.handle = handle  # type: ignore[method-assign]
        await it.create(template(), pod("p", claims=[by_template()]))
        await it.run_for(1)
        assert refused
        assert len(await recorded(it, "p")) == 1


@on_loop
async def test_a_group_that_came_back_under_its_name_unseen_does_not_keep_the_old_ones_reservation() -> None:
    async with running() as it:
        await it.create(claim("c"), pod_group("g", [by_name("c")]))
        await allocate(it, "c", await it.find(POD_GROUPS, "g"))
        assert it.running is not None
        informers = it.running.informers
        await informers.stop()
        old = await it.client.get(POD_GROUPS, "g", namespace="default")
        await it.client.delete_object(await it.client.patch(old, {"metadata": {"finalizers": None}}))
        await it.create(pod_group("g", [by_name("c")]))
        informers.of(POD_GROUPS).reflector.version = ""  # as after a 410
        informers.start()
        await it.settle()
        assert (await it.find(CLAIMS, "c")).status.reserved_for == ()


@pytest.mark.parametrize("end", ["a", "-a", ".a"])
@on_loop
async def test_a_pod_with_the_longest_name_is_told_what_is_missing(end: str) -> None:
    async with running() as it:
        name = "a" * 235 + end + "b" * (18 - len(end))
        assert len(name) == 253
        await it.create(pod(name, claims=[by_template()]))
        [event] = await it.all(EVENTS)
        assert (event.involved_object.name, event.reason) == (name, "FailedResourceClaimCreation")


@on_loop
async def test_a_claim_that_is_deleted_before_its_maker_hears_of_it_is_made_again() -> None:
    async with running() as it:
        inner = it.server.handle
        deleted: list[str] = []

        async def handle(request: Request) -> Response:
            response = await inner(request)
            if request.method == "POST" and request.path.endswith("/resourceclaims") and not deleted:
                [made] = await it.all(CLAIMS)
                deleted.append(made.metadata.name)
                await it.client.delete_object(made)
                for _ in range(100):
                    await asyncio.sleep(0)
            return response

        it.server.handle = handle  # type: ignore[method-assign]
        await it.create(template(), pod("p", claims=[by_template()]))
        await it.run_for(1)
        [made] = await it.all(CLAIMS)
        assert made.metadata.name not in deleted
        assert await recorded(it, "p") == [made.metadata.name]


@on_loop
async def test_a_pod_whose_deletion_was_seen_is_not_asked_for_when_its_claim_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as it:
        await it.create(template(), pod("p", claims=[by_template()]))
        [made] = await it.all(CLAIMS)
        await allocate(it, made.metadata.name, await it.find(PODS, "p"))
        inner, asked = it.server.handle, list[str]()

        async def handle(request: Request) -> Response:
            if "watch" not in dict(request.query):
                asked.append(f"{request.method} {request.path.rpartition('/v1/namespaces/default/')[2].split('/')[0]}")
            return await inner(request)

        monkeypatch.setattr(it.server, "handle", handle)
        await it.delete(PODS, "p")
        assert await it.all(CLAIMS) == []
        assert asked[:4] == ["DELETE pods", "PUT resourceclaims", "PUT resourceclaims", "DELETE resourceclaims"]
        assert "GET pods" not in asked
