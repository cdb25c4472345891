"""Quotas in the server: what is charged, when, and that no crowd gets past a limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from drakit.api.objects.plain import Plain
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.store import Conflict
from tests.apiserver.admission.objects import QUOTAS, disabled, limit, used
from tests.apiserver.admission.quota import COUNT, DEVICES, devices
from tests.apiserver.calls import CLAIMS, CLASSES, PODS, Api, on_loop, serving
from tests.builders.documents import claim_document, class_document, pod_document

EXPLICIT = "requests.example.com/gpu"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/gpu.example.com"


async def named_class(api: Api) -> None:
    made = class_document("gpu.example.com", "true")
    made["spec"]["extendedResourceName"] = "example.com/gpu"
    assert (await api.create(CLASSES, made)).code == 201


@on_loop
async def test_a_claim_is_charged_and_the_next_one_refused() -> None:
    async with serving() as api:
        await limit(api, {DEVICES: "3", COUNT: "9"})
        assert (await api.create(CLAIMS, devices("a", 2))).code == 201
        answer = await api.create(CLAIMS, devices("b", 2))
        assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
        assert answer.message == (
            f'resourceclaims.resource.k8s.io "b" is forbidden: exceeded quota: q, requested: {DEVICES}=2, used: '
            f"{DEVICES}=2, limited: {DEVICES}=3"
        )
        assert await used(api) == {DEVICES: "2", COUNT: "1"}


@on_loop
async def test_nothing_counts_until_somebody_has_counted() -> None:
    async with serving() as api:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {COUNT: "0"}}}
        await api.create(QUOTAS, quota)
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201


@on_loop
async def test_a_limit_whose_usage_is_not_known_refuses() -> None:
    async with serving() as api:
        await limit(api, {COUNT: "5"}, used={})
        answer = await api.create(CLAIMS, claim_document("a"))
        assert (answer.code, answer.message) == (
            403,
            f'resourceclaims.resource.k8s.io "a" is forbidden: status unknown for quota: q, resources: {COUNT}',
        )


@on_loop
async def test_all_quotas_are_charged_or_none() -> None:
    async with serving() as api:
        await limit(api, {COUNT: "5"}, name="a-wide")
        await limit(api, {DEVICES: "1"}, name="b-narrow")
        assert (await api.create(CLAIMS, devices("a", 2))).code == 403
        assert await used(api, "a-wide") == {COUNT: "0"}
        assert (await api.create(CLAIMS, devices("b", 1))).code == 201
        assert (await used(api, "a-wide"), await used(api, "b-narrow")) == ({COUNT: "1"}, {DEVICES: "1"})


@on_loop
async def test_a_dry_run_is_judged_and_charges_nothing() -> None:
    async with serving() as api:
        await limit(api, {COUNT: "1"})
        assert (await api.create(CLAIMS, claim_document("a"), dryRun="All")).code == 201
        assert await used(api) == {COUNT: "0"}
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
        assert (await api.create(CLAIMS, claim_document("b"), dryRun="All")).code == 403


@on_loop
async def test_what_is_invalid_is_told_before_the_quota_is_asked() -> None:
    async with serving() as api:
        await limit(api, {COUNT: "0"})
        assert (await api.create(CLAIMS, devices("a", -1))).code == 422
        assert await used(api) == {COUNT: "0"}


@on_loop
async def test_an_update_that_uses_no_more_is_not_charged() -> None:
    async with serving() as api:
        await limit(api, {COUNT: "1", DEVICES: "1"})
        await api.create(CLAIMS, claim_document("a"))
        assert (await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"a": "b"}}})).code == 200
        assert await used(api) == {COUNT: "1", DEVICES: "1"}


@on_loop
async def test_a_class_with_a_name_counts_three_ways() -> None:
    async with serving() as api:
        await named_class(api)
        await limit(api, {DEVICES: "9", EXPLICIT: "9", IMPLICIT: "9"})
        await api.create(CLAIMS, devices("a", 2))
        assert await used(api) == {DEVICES: "2", EXPLICIT: "2", IMPLICIT: "2"}


@on_loop
async def test_the_claim_of_a_pods_extended_resources_is_not_charged_twice() -> None:
    async with serving() as api:
        await named_class(api)
        await limit(api, {DEVICES: "9", EXPLICIT: "9", IMPLICIT: "9"})
        made = pod_document("p")
        made["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}
        uid = (await api.create(PODS, made)).body["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        special = {
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [owner],
        }
        assert (await api.create(CLAIMS, devices("a", 1, **special))).code == 201
        assert await used(api) == {DEVICES: "1", EXPLICIT: "1", IMPLICIT: "1"}
        await api.create(CLAIMS, devices("b", 1, **special))
        assert await used(api) == {DEVICES: "2", EXPLICIT: "2", IMPLICIT: "2"}


async def pod_asking(api: Api, name: str, resource: str) -> Plain:
    """A pod that asks for one device by a name, and the metadata of the claim that a scheduler makes for it."""
    made = pod_document(name)
    made["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    answer = await api.create(PODS, made)
    assert answer.code == 201
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": answer.body["metadata"]["uid"], "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    return {"annotations": annotations, "ownerReferences": [owner]}


@on_loop
async def test_the_worked_example_of_extended_resources_comes_out_as_5_4_4_in_the_server() -> None:
    async with serving() as api:
        await named_class(api)
        await limit(api, {EXPLICIT: "5", IMPLICIT: "4", DEVICES: "4"})
        await pod_asking(api, "by-plugin", "example.com/gpu")
        explicit = await pod_asking(api, "explicit", "example.com/gpu")
        implicit = await pod_asking(api, "implicit", IMPLICIT.removeprefix("requests."))
        for name, metadata in (("e", explicit), ("i", implicit), ("by-name", {}), ("of-template", {})):
            assert (await api.create(CLAIMS, devices(name, 1, **metadata))).code == 201
        assert await used(api) == {EXPLICIT: "5", IMPLICIT: "4", DEVICES: "4"}
        refused = await api.create(CLAIMS, devices("one-more", 1))
        assert refused.code == 403
        for name in (EXPLICIT, IMPLICIT, DEVICES):
            assert f"{name}=1" in refused.message
        assert await used(api) == {EXPLICIT: "5", IMPLICIT: "4", DEVICES: "4"}


@on_loop
async def test_a_claim_that_only_says_it_is_a_pods_is_charged() -> None:
    async with serving() as api:
        await named_class(api)
        await limit(api, {EXPLICIT: "9"})
        made = pod_document("p")
        made["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}
        await api.create(PODS, made)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "other", "controller": True}
        special = {
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "ownerReferences": [owner],
        }
        await api.create(CLAIMS, devices("a", 1, **special))
        assert await used(api) == {EXPLICIT: "2"}


@on_loop
async def test_pods_are_held_to_what_they_ask_for() -> None:
    async with serving() as api:
        await limit(api, {"requests.cpu": "1", "pods": "5"})
        silent = await api.create(PODS, pod_document("a"))
        assert silent.message == 'pods "a" is forbidden: failed quota: q: must specify requests.cpu for: ctr'
        asking = pod_document("b")
        asking["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "600m"}}
        assert (await api.create(PODS, asking)).code == 201
        assert await used(api) == {"requests.cpu": "600m", "pods": "1"}
        resize = {"spec": {"containers": [{"name": "ctr", "resources": {"requests": {"cpu": "1100m"}}}]}}
        strategic = "application/strategic-merge-patch+json"
        answer = await api.patch(f"{PODS}/b/resize", resize, content=strategic)
        assert answer.code == 403
        assert answer.message == (
            'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: '
            "requests.cpu=1"
        )


@on_loop
async def test_a_scope_is_about_pods() -> None:
    async with serving() as api:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
        await api.create(QUOTAS, {**quota, "spec": {"hard": {"pods": "0"}, "scopes": ["BestEffort"]}})
        status = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
        await api.patch(f"{QUOTAS}/q/status", status)
        asking = pod_document("a")
        asking["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
        assert (await api.create(PODS, asking)).code == 201
        assert (await api.create(PODS, pod_document("b"))).code == 403
        assert (await api.create(CLAIMS, claim_document("c"))).code == 201


@on_loop
async def test_any_kind_can_be_counted_and_events_never_are() -> None:
    async with serving() as api:
        await limit(api, {"count/configmaps": "1", "configmaps": "5", "count/events": "0"})
        maps = "/api/v1/namespaces/default/configmaps"
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        assert (await api.create(maps, made)).code == 201
        assert (await api.create(maps, {**made, "metadata": {"name": "b"}})).code == 403
        involved = {"kind": "Pod", "name": "p", "namespace": "default"}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": involved}
        assert (await api.create("/api/v1/namespaces/default/events", event)).code == 201
        assert await used(api) == {"configmaps": "1", "count/configmaps": "1", "count/events": "0"}


@on_loop
async def test_a_crowd_never_gets_past_a_limit() -> None:
    async with serving() as api:
        await limit(api, {DEVICES: "20"}, name="a")
        await limit(api, {COUNT: "17"}, name="b")
        answers = await asyncio.gather(*(api.create(CLAIMS, claim_document(f"c{index}")) for index in range(60)))
        made = (await api.get(CLAIMS)).names
        assert sorted(each.code for each in answers) == [201] * 17 + [403] * 43
        assert len(made) == 17
        assert (await used(api, "a"), await used(api, "b")) == ({DEVICES: "17"}, {COUNT: "17"})


class Rival:
    """Another server: changes a quota right before this one writes it."""

    def __init__(self, api: Api, name: str, status: Plain, *, times: int) -> None:
        self._objects = api.server.context.objects
        self._plain = ObjectStore.update
        self._name = name
        self._status = status
        self._times = times

    async def update(self, old: StoredObject, document: Plain, **options: Any) -> StoredObject:
        if old.kind.kind == "ResourceQuota" and old.name == self._name and self._times:
            self._times -= 1
            await self._plain(self._objects, old, {**old.document, "status": self._status})
        return await self._plain(self._objects, old, document, **options)


@on_loop
async def test_a_quota_that_changes_meanwhile_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as api:
        await limit(api, {COUNT: "2"})
        rival = Rival(api, "q", {"hard": {COUNT: "2"}, "used": {COUNT: "1"}}, times=1)
        monkeypatch.setattr(api.server.context.objects, "update", rival.update)
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
        assert await used(api) == {COUNT: "2"}


@on_loop
async def test_what_was_charged_is_given_back_when_another_quota_fills_up_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as api:
        await limit(api, {COUNT: "5"}, name="a")
        await limit(api, {DEVICES: "5"}, name="b")
        rival = Rival(api, "b", {"hard": {DEVICES: "5"}, "used": {DEVICES: "5"}}, times=1)
        monkeypatch.setattr(api.server.context.objects, "update", rival.update)
        assert (await api.create(CLAIMS, claim_document("x"))).code == 403
        assert (await used(api, "a"), await used(api, "b")) == ({COUNT: "0"}, {DEVICES: "5"})


@on_loop
async def test_a_quota_that_never_holds_still_is_an_error_and_not_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as api:
        await limit(api, {COUNT: "5"})

        async def conflicting(old: StoredObject, document: Plain, **options: Any) -> StoredObject:
            raise Conflict(await api.server.context.objects.store.get(old.key), 0)

        monkeypatch.setattr(api.server.context.objects, "update", conflicting)
        answer = await api.create(CLAIMS, claim_document("a"))
        assert (answer.code, (await api.get(CLAIMS)).names) == (500, [])
        assert "quotas of namespace default are changing too fast to be charged" in answer.message


@on_loop
async def test_without_the_plugin_nothing_is_limited() -> None:
    async with serving(disabled("ResourceQuota")) as api:
        await limit(api, {COUNT: "0"})
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
