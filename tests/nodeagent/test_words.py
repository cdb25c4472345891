"""What a kubelet was recorded to say and to do in cases that the flows replayed elsewhere do not have."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import AsyncMock

import pytest
from msgspec.structs import replace

from drakit.client import CLAIMS, PODS, metadata_of
from drakit.nodeagent.claims.devices import ClaimUse, uses
from drakit.nodeagent.plugins.contract import PluginInfo
from tests.builders.objects import pod_of
from tests.conformance.nodeflows.scripted import ScriptedRegistration
from tests.conformance.nodeflows.stage import NAMESPACE
from tests.nodeagent.scene import GPU, Scene, on_loop, scene

FAILED = "FailedPrepareDynamicResources"
PREFIX = "Failed to prepare dynamic resources: prepare dynamic resources: "
NIC = "nic.example.com"
INVALID = f"plugin validation failed with err: invalid supported gRPC versions of DRA driver plugin {GPU} at endpoint "
NONE_KNOWN = (
    '{endpoint}: none of services supported by the plugin (["v1alpha3.DRAPlugin"]) are supported by the kubelet '
    '(["v1.DRAPlugin" "v1beta1.DRAPlugin"])'
)


async def _refusal(it: Scene) -> str:
    (told, *_) = it.events(FAILED)
    assert told.startswith(PREFIX)
    assert it.container()["state"]["waiting"]["message"] == told
    return told.removeprefix(PREFIX)


# Registration


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"type": "FooPlugin"}, "no handler registered for plugin type: FooPlugin at socket {socket}"),
        ({"versions": []}, INVALID + "{endpoint}: empty list of supported gRPC services (aka supported versions)"),
        ({"versions": ["v1alpha3.DRAPlugin"]}, INVALID + NONE_KNOWN),
    ],
)
@on_loop
async def test_a_plugin_that_cannot_be_used_is_told_why_and_asked_again(about: dict[str, Any], words: str) -> None:
    async with scene() as it:
        driver = await it.made(**about)
        await it.it.run_for(0.5)
        (told,) = [each.request for each in it.it.calls if each.method == "NotifyRegistrationStatus"]
        expected = words.format(socket=driver.registration, endpoint=driver.endpoint)
        assert told == {"plugin_registered": False, "error": f"RegisterPlugin error -- {expected}"}
        await it.it.run_for(1.0)
        assert [each.method for each in it.it.calls].count("GetInfo") == 2


@pytest.mark.parametrize(("late", "gaps"), [(False, [1, 2, 3, 5]), (True, [2, 3, 4, 5])])
@on_loop
async def test_a_plugin_is_asked_again_when_a_kubelet_would_after_a_refusal_and_after_a_timeout(
    late: bool, gaps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene() as it:
        clock, asked, get_info = it.it.clock, list[float](), ScriptedRegistration.get_info

        async def noted(peer: ScriptedRegistration) -> PluginInfo:
            asked.append(clock.monotonic())
            if late:
                await clock.sleep(3.0)
            return await get_info(peer)

        monkeypatch.setattr(ScriptedRegistration, "get_info", noted)
        await it.made(versions=["v1alpha3.DRAPlugin"])
        await it.it.run_for(sum(gaps) + 0.5)
        assert [after - before for before, after in itertools.pairwise(asked)] == pytest.approx(gaps)
        told = [each for each in it.it.calls if each.method == "NotifyRegistrationStatus"]
        assert len(told) == (0 if late else len(asked))


@on_loop
async def test_an_unknown_service_beside_a_known_one_is_passed_over() -> None:
    async with scene() as it:
        await it.made(versions=["v9.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAPlugin", "v1alpha1.DRAResourceHealth"])
        await it.start()
        (call,) = [each for each in it.it.calls if each.method == "NodePrepareResources"]
        assert (call.service, call.deadline) == ("v1beta1", 45.0)


@on_loop
async def test_a_plugin_whose_first_answer_breaks_something_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as it:
        assert it.it.agent is not None
        handler, failures = it.it.agent.drivers, [ValueError("embedded null byte")]
        register = handler.register

        def fails_once(info: PluginInfo, endpoint: str, socket: str) -> None:
            if failures:
                raise failures.pop()
            register(info, endpoint, socket)

        monkeypatch.setattr(handler, "register", fails_once)
        await it.driver()
        await it.it.run_for(2.0)
        assert list(handler.names()) == [GPU]


# Claims


@on_loop
async def test_a_claim_that_is_reserved_and_not_allocated_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of ours keeps such a claim: somebody else's may, for a moment."""
    async with scene() as it:
        await it.driver()
        await it.pod()
        await it.claim(pod="pod")
        found = await it.it.client.get(CLAIMS, "claim", namespace=NAMESPACE)
        lost = replace(found, status=replace(found.status, allocation=None))
        assert [each.name for each in lost.status.reserved_for] == ["pod"]
        assert it.it.agent is not None
        # This is the one reader of the agent's claims.
        monkeypatch.setattr(it.it.agent.preparation._admission, "_get", AsyncMock(return_value=lost))
        await it.bind()
        assert "is not allowed to use ResourceClaim claim" in await _refusal(it)
        assert (it.calls(), it.records()) == ([], [])


@on_loop
async def test_a_claim_that_is_not_allocated_is_refused() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod()
        made = await it.claim(pod="pod")
        found = await it.it.client.get(CLAIMS, "claim", namespace=NAMESPACE)
        await it.it.client.patch_status(found, {"reservedFor": None})
        found = await it.it.client.get(CLAIMS, "claim", namespace=NAMESPACE)
        await it.it.client.patch_status(found, {"allocation": None})
        await it.bind()
        uid = it.it.uids.recorded(made.metadata.uid)
        assert (await _refusal(it)).startswith("pod pod (")
        assert (await _refusal(it)).endswith(f"is not allowed to use ResourceClaim claim ({uid})")
        assert it.calls() == []


@on_loop
async def test_one_absent_driver_of_two_keeps_the_other_from_being_called_and_nothing_is_remembered() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod(claims=("one", "two"))
        await it.claim("one", pod="pod")
        await it.claim("two", drivers=(NIC,), pod="pod")
        await it.bind()
        assert await _refusal(it) == f"DRA driver {NIC} is not registered"
        assert (it.calls(), it.records()) == ([], [])
        await it.delete()
        assert (it.it.deleted, it.calls()) == (["pod"], [])


@on_loop
async def test_a_pod_of_another_group_or_of_none_may_not_use_the_claim_of_a_group() -> None:
    async with scene() as it:
        await it.driver()
        for group in ("g", "h"):
            about = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
            spec: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}
            made = await it.it.client.create(
                {**about, "metadata": {"name": group, "namespace": NAMESPACE}, "spec": spec}
            )
        await it.claim()
        found = await it.it.client.get(CLAIMS, "claim", namespace=NAMESPACE)
        # The uid of a group is not compared, as recorded: here it is that of another one.
        user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": metadata_of(made).uid}
        await it.it.client.patch_status(found, {"reservedFor": [user]})
        await it.pod("mine", schedulingGroup={"podGroupName": "g"})
        await it.pod("other", schedulingGroup={"podGroupName": "h"})
        await it.pod("none")
        await it.bind("mine", "other", "none")
        assert [it.state(each)["phase"] for each in ("mine", "other", "none")] == ["Running", "Pending", "Pending"]
        assert it.calls() == ["prepare"]
        await it.it.run_for(2.0)
        # A refused pod shows the health of a claim that is prepared for others, and has none of its devices.
        shown = it.container("other")["allocatedResourcesStatus"]
        assert [each["health"] for each in shown[0]["resources"]] == ["Unknown"]
        assert it.it.agent is not None
        listed = {each.name: list(each.containers[0].dynamic_resources) for each in it.it.agent.listing.all()}
        assert [len(listed[each]) for each in ("mine", "other", "none")] == [1, 0, 0]


@on_loop
async def test_a_mapping_to_a_request_that_the_claim_does_not_have_gives_no_device() -> None:
    async with scene() as it:
        await it.driver()
        await it.extended("nothing")
        await it.bind()
        assert it.state()["phase"] == "Running"
        assert it.calls() == ["prepare"]
        (created,) = [each for each in it.it.cri if each.method == "CreateContainer"]
        assert created.about["CDI_devices"] == []


def test_of_the_mappings_of_a_container_those_of_resources_that_it_asks_for_count() -> None:
    """Names of requests say nothing. No server of ours keeps the first mapping: somebody else's may."""
    asking = {"name": "main", "resources": {"limits": {"example.com/gpu": "1"}}}
    mappings = [
        {"containerName": "main", "resourceName": "example.com/nic", "requestName": "container-0-request-0"},
        {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "container-7-request-3"},
        {"containerName": "other", "resourceName": "example.com/gpu", "requestName": "container-0-request-1"},
    ]
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "claim", "requestMappings": mappings}}
    pod = pod_of(asking, status=status)
    assert list(uses(pod, pod.spec.containers[0])) == [ClaimUse("claim", "", "container-7-request-3")]


@on_loop
async def test_a_checkpoint_entry_that_is_lost_keeps_a_container_from_its_restart_and_says_so() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        await it.it.stop_agent()
        (it.it.paths.root / "dra_manager_state").unlink()
        await it.it.start_agent()
        it.it.runtime.exit(1)
        await it.it.run_for(1.0)
        words = f"internal error: unable to get claim info for ResourceClaim claim in namespace {NAMESPACE}"
        assert it.container()["state"]["waiting"] == {"reason": "CreateContainerConfigError", "message": words}
        assert f"Error: {words}" in it.events("Failed")
        await it.delete()
        await it.it.run_for(2.0)
        assert it.calls("unprepare") == []


@on_loop
async def test_a_pod_that_failed_at_the_driver_is_listed_with_its_claim_and_without_devices() -> None:
    async with scene() as it:
        driver = await it.driver()
        driver.failures = ["no"] * 3
        await it.start()
        assert it.it.agent is not None
        (dynamic,) = it.it.agent.listing.all()[0].containers[0].dynamic_resources
        assert (dynamic.claim_name, list(dynamic.claim_resources)) == ("claim", [])


@on_loop
async def test_operations_and_claims_in_use_are_counted_also_for_pods_without_claims() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod("bare", claims=())
        await it.bind("bare")
        assert it.counted("dra_operations_duration_seconds_count") == {("PrepareResources", "false"): 1.0}
        await it.start()
        assert it.counted("dra_resource_claims_in_use") == {(GPU,): 1.0, ("<any>",): 1.0}
        method = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
        assert it.counted("dra_grpc_operations_duration_seconds_count") == {(GPU, method, "OK"): 1.0}
        await it.lose(it.drivers[0])
        await it.delete()
        assert it.counted("dra_operations_duration_seconds_count")["UnprepareResources", "true"] >= 1.0
        assert it.counted("dra_resource_claims_in_use")[("<any>",)] == 1.0


# Names that are used again


@on_loop
async def test_a_pod_of_the_same_name_waits_for_nobody_when_the_claim_is_still_prepared_for_the_one_before() -> None:
    """Deleted by force, made again: another uid, the same claim. The old one lets go without a call to the driver."""
    async with scene() as it:
        driver = await it.driver()
        await it.start()
        driver.failures = ["not yet"] * 2
        await it.delete(grace=0)
        await it.pod()
        await it.reserve("claim", "pod")
        await it.bind()
        await it.it.run_for(20.0)
        assert it.state()["phase"] == "Running"
        uid = await it.uid("pod")
        assert [list(each.pods) for each in it.records()] == [[uid]]
        await it.delete()
        await it.it.run_for(5.0)
        assert it.calls()[-1] == "unprepare"
        assert it.records() == []


@on_loop
async def test_a_claim_of_the_same_name_and_another_uid_waits_until_the_old_one_is_let_go() -> None:
    async with scene() as it:
        driver = await it.driver()
        await it.start()
        old = (await it.it.client.get(CLAIMS, "claim", namespace=NAMESPACE)).metadata.uid
        driver.failures = ["not yet"] * 5
        await it.delete(grace=0)
        found = await it.it.client.get(CLAIMS, "claim", namespace=NAMESPACE)
        await it.it.client.patch_status(found, {"reservedFor": None})
        await it.it.client.delete(CLAIMS, "claim", namespace=NAMESPACE)
        await it.start("second")
        words = f"old ResourceClaim with same name claim and different UID {it.it.uids.recorded(old)} still exists "
        assert any(words in each for each in it.events(FAILED))
        await it.it.run_for(60.0)
        assert it.state("second")["phase"] == "Running"
        (record,) = it.records()
        assert (record.uid != old, list(record.pods)) == (True, [await it.uid("second")])


@on_loop
async def test_a_change_to_another_uid_ends_the_pod_of_before() -> None:
    """A watch that begins anew may tell of a deletion and the next pod of the name in one."""
    async with scene() as it:
        await it.driver()
        await it.start()
        await it.pod("next", claims=())
        assert it.it.agent is not None
        old, new = [await it.it.client.get(PODS, each, namespace=NAMESPACE) for each in ("pod", "next")]
        it.it.agent.workers.on_pod(old, new)
        await it.it.run_for(3.0)
        assert it.calls() == ["prepare", "unprepare"]
        assert {each.pod.name for each in await it.it.runtime.containers()} == {"next"}


@on_loop
async def test_a_pod_that_is_gone_before_the_agent_could_read_it_leaves_nothing() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod()
        await it.claim(pod="pod")
        it.it.line.away = True
        await it.bind()
        await it.delete(grace=0)
        it.it.line.away = False
        await it.it.run_for(30.0)
        assert it.it.agent is not None
        assert (it.calls(), it.records(), it.it.agent.workers.all()) == ([], [], [])


# Where drakit differs on purpose


@on_loop
async def test_what_fails_is_tried_again_after_one_second_then_two_and_at_last_every_ten() -> None:
    async with scene() as it:
        driver = await it.driver()
        driver.failures = ["no"] * 6
        await it.start()
        seen = []
        for wait in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
            before = len(it.calls())
            await it.it.run_for(wait - 0.1)
            seen.append(len(it.calls()) - before)
            await it.it.run_for(0.1)
            seen.append(len(it.calls()) - before)
        assert seen == [0, 1] * 6
        assert it.state()["phase"] == "Running"


@on_loop
async def test_a_driver_without_the_health_service_is_asked_for_it_once_per_registration() -> None:
    async with scene() as it:
        driver = await it.driver(health=False)
        await it.it.run_for(60.0)

        def asked() -> int:
            return [each.method for each in it.it.calls].count("NodeWatchResources")

        assert asked() == 1
        await it.lose(driver)
        await it.driver(health=False)
        assert asked() == 2
