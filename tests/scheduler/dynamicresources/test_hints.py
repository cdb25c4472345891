"""Which changes wake which pods."""

from __future__ import annotations

from typing import Any

from drakit.api import Pod, PodGroup, from_plain
from drakit.api.objects.claims import ResourceClaim
from drakit.base.gates import FeatureGates
from drakit.scheduler.dynamicresources import DynamicResources
from drakit.scheduler.dynamicresources.hints import Hints
from drakit.scheduler.framework import Action, EventResource, Hint
from tests.builders.manifests import allocation, by_template, pod_group
from tests.builders.manifests import claim as manifest
from tests.builders.podmanifests import pod
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.choosing import Plugins
from tests.scheduler.dynamicresources.scenes import Plain, scene, user


def claim_at(
    name: str = "c", version: int = 1, *, device: str = "", finalizer: str = "", users: int = 0
) -> ResourceClaim:
    plain = manifest(name, uid=f"uid-{name}", resourceVersion=str(version))
    if finalizer:
        plain["metadata"]["finalizers"] = [finalizer]
    plain["status"] = {"reservedFor": [{"resource": "pods", "name": f"x{n}", "uid": f"x{n}"} for n in range(users)]}
    if device:
        plain["status"]["allocation"] = allocation(device)
    return from_plain(ResourceClaim, plain)


def read_pod(document: Plain, uid: str = "uid-p") -> Pod:
    document["metadata"]["uid"] = uid
    return from_plain(Pod, document)


class Asking:
    def __init__(self, plugin: DynamicResources) -> None:
        self.hints = Hints(plugin.context)
        self.claims = plugin.context.claims
        self.plugin = plugin


def asking(plugins: Plugins, *known: ResourceClaim) -> Asking:
    made = Asking(plugins.made[0])
    for each in known:
        made.claims.assume(each)
    return made


@on_loop
async def test_the_own_claim_wakes_a_pod_when_it_comes_and_when_its_status_changes() -> None:
    plugins, p = Plugins(), read_pod(user("p"))
    async with scene(makers=plugins.makers, controllers=()):
        after = asking(plugins, claim_at()).hints.after_claim
        assert after(p, None, claim_at()) is Hint.QUEUE
        assert after(p, claim_at(), claim_at(device="d0")) is Hint.QUEUE
        assert after(p, claim_at(device="d0", users=256), claim_at(device="d0", users=255)) is Hint.QUEUE
        assert after(p, claim_at(), claim_at(finalizer="example.com/x")) is Hint.SKIP


@on_loop
async def test_a_claim_of_others_wakes_a_pod_only_when_it_lets_go_of_devices() -> None:
    plugins, p = Plugins(), read_pod(user("p"))
    async with scene(makers=plugins.makers, controllers=()):
        after = asking(plugins, claim_at()).hints.after_claim
        assert after(p, None, claim_at("o")) is Hint.SKIP
        assert after(p, claim_at("o"), claim_at("o", device="d0")) is Hint.SKIP
        assert after(p, claim_at("o", device="d0", users=1), claim_at("o", device="d0")) is Hint.SKIP
        assert after(p, claim_at("o", device="d0"), claim_at("o")) is Hint.QUEUE
        assert after(p, claim_at("o", device="d0"), None) is Hint.QUEUE
        assert after(p, claim_at("o"), None) is Hint.SKIP


@on_loop
async def test_a_pod_whose_claims_are_not_there_is_woken_by_nobody_elses() -> None:
    plugins, p = Plugins(), read_pod(user("p"))
    async with scene(makers=plugins.makers, controllers=()):
        after = asking(plugins).hints.after_claim
        assert after(p, claim_at("o", device="d0"), claim_at("o")) is Hint.SKIP


@on_loop
async def test_a_pod_is_woken_when_all_of_its_claims_are_recorded_and_there() -> None:
    plugins = Plugins()
    async with scene(makers=plugins.makers, controllers=()):
        plain = pod("p", claims=[by_template()])
        waiting = read_pod(plain)
        plain["status"] = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "c"}]}
        recorded = read_pod(plain)
        ask = asking(plugins)
        assert ask.hints.after_pod(waiting, waiting, recorded) is Hint.SKIP
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
        made = manifest("c", uid="uid-c", resourceVersion="1", ownerReferences=[owner])
        ask.claims.assume(from_plain(ResourceClaim, made))
        assert ask.hints.after_pod(waiting, waiting, recorded) is Hint.QUEUE
        assert ask.hints.after_pod(read_pod(pod("q"), "uid-q"), waiting, recorded) is Hint.SKIP


@on_loop
async def test_a_pod_that_could_not_be_bound_wakes_others_and_one_that_ran_does_not() -> None:
    plugins, p = Plugins(), read_pod(user("p"))
    async with scene(makers=plugins.makers, controllers=()):
        ask = asking(plugins, claim_at())
        gone = read_pod(pod("gone"), "uid-gone")
        assert ask.hints.after_pod_gone(p, gone, None) is Hint.SKIP
        ask.plugin.context.given_back["uid-gone"] = None
        assert ask.hints.after_pod_gone(p, gone, None) is Hint.QUEUE


@on_loop
async def test_a_group_wakes_its_own_pods() -> None:
    plugins = Plugins()
    async with scene(makers=plugins.makers, gates=FeatureGates.all_on(), controllers=()):
        after = asking(plugins).hints.after_group
        group = from_plain(PodGroup, pod_group("pg", []))
        assert after(read_pod(pod("p", group="pg")), None, group) is Hint.QUEUE
        assert after(read_pod(pod("p", group="other")), None, group) is Hint.SKIP
        assert after(read_pod(pod("p")), None, group) is Hint.SKIP


@on_loop
async def test_what_can_help_is_asked_for_by_kind_and_gate() -> None:
    def kinds(plugins: Plugins) -> dict[Any, Action]:
        found: dict[Any, Action] = {}
        for each in plugins.made[0].interests():
            found[each.event.resource] = found.get(each.event.resource, Action(0)) | each.event.action
        return found

    plugins = Plugins()
    async with scene(makers=plugins.makers, controllers=()):
        some = kinds(plugins)
    assert EventResource.TAINT_RULE not in some
    assert EventResource.POD_GROUP not in some
    assert some[EventResource.SLICE] == Action.ADD | Action.UPDATE | Action.DELETE
    plugins = Plugins()
    async with scene(makers=plugins.makers, gates=FeatureGates.all_on(), controllers=()):
        every = kinds(plugins)
    assert every[EventResource.TAINT_RULE] == Action.UPDATE | Action.DELETE
    assert EventResource.POD_GROUP in every
