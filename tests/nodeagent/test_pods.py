"""What the agent does for a pod, one sentence each."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.client import CLAIMS, PODS, SLICES
from drakit.nodeagent.claims.checkpoint import FILE
from drakit.nodeagent.claims.records import ClaimRecord
from tests.conformance.nodeflows.stage import NAMESPACE
from tests.nodeagent.scene import GPU, on_loop, scene

PREPARE_FAILED = "FailedPrepareDynamicResources"


@on_loop
async def test_a_pod_that_is_deleted_during_a_slow_prepare_starts_and_ends_in_order() -> None:
    async with scene() as it:
        (await it.driver()).delay = 5.0
        await it.start()
        await it.delete()
        await it.it.run_for(10.0)
        assert it.cri() == ["RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "StopPodSandbox"]
        assert it.calls() == ["prepare", "unprepare"]
        assert it.it.deleted == ["pod"]


@on_loop
async def test_two_pods_of_one_claim_that_start_together_both_call() -> None:
    async with scene() as it:
        (await it.driver()).delay = 1.0
        await it.pod("one")
        await it.pod("two")
        await it.claim()
        await it.reserve("claim", "one", "two")
        await it.bind("one", "two")
        await it.it.run_for(3.0)
        assert it.calls() == ["prepare", "prepare"]
        await it.delete("one")
        await it.it.run_for(2.0)
        assert it.calls("unprepare") == []
        await it.delete("two")
        await it.it.run_for(2.0)
        assert it.calls("unprepare") == ["unprepare"]


@on_loop
async def test_a_prepare_waits_for_an_unprepare_under_way() -> None:
    async with scene() as it:
        driver = await it.driver()
        await it.start("one")
        await it.pod("two")
        driver.delay = 5.0
        await it.delete("one", grace=0)
        await it.reserve("claim", "two")
        await it.bind("two")
        await it.it.run_for(2.0)
        assert it.calls() == ["prepare", "unprepare"]
        driver.delay = 0.0
        await it.it.run_for(5.0)
        assert it.calls() == ["prepare", "unprepare", "prepare"]
        assert it.state("two")["phase"] == "Running"


@on_loop
async def test_a_restarted_agent_makes_no_call_for_a_running_pod_and_one_for_the_next_pod_of_the_claim() -> None:
    async with scene() as it:
        await it.driver()
        await it.start("one")
        await it.restart()
        await it.it.run_for(100.0)
        assert it.calls() == ["prepare"]
        await it.pod("two")
        await it.reserve("claim", "one", "two")
        await it.bind("two")
        assert it.calls() == ["prepare", "prepare"]


@on_loop
async def test_after_a_reboot_everything_is_prepared_anew_and_the_restart_is_counted() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        await it.it.stop_agent()
        it.it.runtime.forget()
        await it.it.start_agent()
        assert it.calls() == ["prepare", "prepare"]
        assert it.container()["restartCount"] == 1
        assert it.container()["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"


@on_loop
async def test_a_container_restarts_with_its_devices_while_the_server_is_away() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        it.it.line.away = True
        it.it.runtime.exit(1)
        await it.it.run_for(2.0)
        made = [each.about["CDI_devices"] for each in it.it.cri if each.method == "CreateContainer"]
        assert made == [[f"{GPU}/dev=claim"]] * 2
        it.it.line.away = False
        await it.it.run_for(60.0)
        assert it.container()["restartCount"] == 1


@on_loop
async def test_the_waiting_message_tells_the_cause_and_a_registration_wakes_the_pod_at_once() -> None:
    async with scene() as it:
        await it.start()
        assert "DRA driver gpu.example.com is not registered" in it.container()["state"]["waiting"]["message"]
        before = it.it.clock.monotonic()
        await it.driver()
        assert it.state()["phase"] == "Running"
        assert it.it.clock.monotonic() == before


@on_loop
async def test_a_change_of_a_claim_is_seen_within_a_second_however_long_the_pod_has_waited() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod()
        await it.claim()
        await it.bind()
        await it.it.run_for(65.5)
        assert it.events(PREPARE_FAILED)
        await it.reserve("claim", "pod")
        await it.it.run_for(1.0)
        assert it.state()["phase"] == "Running"


@on_loop
async def test_a_claim_that_comes_late_is_seen_within_a_second() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod()
        await it.bind()
        await it.it.run_for(65.5)
        await it.claim(pod="pod")
        await it.it.run_for(1.0)
        assert it.state()["phase"] == "Running"


@on_loop
async def test_a_change_of_a_claim_wakes_the_pod_at_once_where_the_process_has_a_cache_of_claims() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod()
        await it.claim()
        await it.bind()
        await it.it.run_for(65.5)
        old = await it.it.client.get(CLAIMS, "claim", namespace=NAMESPACE)
        await it.reserve("claim", "pod")
        assert it.it.agent is not None
        it.it.agent.on_claim(old, await it.it.client.get(CLAIMS, "claim", namespace=NAMESPACE))
        await it.it.settle()
        assert it.state()["phase"] == "Running"


@on_loop
async def test_an_entry_of_the_status_wakes_the_pod_at_once() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod(claims=(), resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": await it.uid("pod"), "controller": True}
        await it.claim("made", pod="pod", ownerReferences=[owner])
        await it.bind()
        assert any("ResourceClaim not created yet" in each for each in it.events(PREPARE_FAILED))
        found = await it.it.client.get(PODS, "pod", namespace=NAMESPACE)
        entry = {"name": "gpu", "resourceClaimName": "made"}
        await it.it.client.patch_status(found, {"resourceClaimStatuses": [entry]})
        await it.it.settle()
        assert it.state()["phase"] == "Running"
        assert it.state()["resourceClaimStatuses"] == [entry]


@on_loop
async def test_an_entry_that_needs_no_claim_is_passed_over() -> None:
    async with scene() as it:
        await it.pod(claims=(), resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
        found = await it.it.client.get(PODS, "pod", namespace=NAMESPACE)
        await it.it.client.patch_status(found, {"resourceClaimStatuses": [{"name": "gpu"}]})
        await it.bind()
        assert it.state()["phase"] == "Running"


@on_loop
async def test_a_failed_unprepare_makes_an_event_and_is_tried_again() -> None:
    async with scene() as it:
        driver = await it.driver()
        await it.start()
        driver.failures = ["busy", "busy"]
        await it.delete()
        await it.it.run_for(1.5)
        assert it.state()["phase"] == "Running"
        await it.it.run_for(5.0)
        assert it.events("FailedUnprepareDynamicResources")
        assert it.calls("unprepare") == ["unprepare"] * 3
        assert it.it.deleted == ["pod"]


@on_loop
async def test_a_driver_that_is_gone_leaves_the_pod_stuck_until_it_is_back() -> None:
    async with scene() as it:
        driver = await it.driver()
        await it.start()
        await it.lose(driver)
        await it.delete()
        await it.it.run_for(120.0)
        assert it.it.deleted == []
        assert any("is not registered" in each for each in it.events("FailedUnprepareDynamicResources"))
        driver.start_service()
        it.it.directory.put(driver.registration, driver)
        await it.it.settle()
        assert it.it.deleted == ["pod"]


@pytest.mark.parametrize("grace", [0, 30])
@on_loop
async def test_of_a_pod_that_is_gone_no_worker_is_left(grace: int) -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        assert it.it.agent is not None
        assert len(it.it.agent.workers.all()) == 1
        await it.delete(grace=grace)
        await it.it.run_for(40.0)
        assert it.calls() == ["prepare", "unprepare"]
        assert it.it.agent.workers.all() == []


@on_loop
async def test_a_pod_that_was_deleted_by_force_while_the_agent_was_away_is_ended_and_unprepared() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        await it.it.stop_agent()
        await it.delete(grace=0)
        await it.it.start_agent()
        await it.it.run_for(2.0)
        assert it.cri()[-2:] == ["StopContainer", "StopPodSandbox"]
        assert it.calls() == ["prepare", "unprepare"]


@pytest.mark.parametrize("restarted", [False, True])
@on_loop
async def test_a_pod_that_ended_leaves_nothing_in_the_runtime_when_it_is_deleted(restarted: bool) -> None:
    """Of a pod that has ended the object is gone at once: nobody waits for the agent."""
    async with scene() as it:
        await it.driver()
        await it.pod(restartPolicy="Never")
        await it.claim()
        await it.reserve("claim", "pod")
        await it.bind("pod")
        it.it.runtime.exit(0)
        await it.it.run_for(2.0)
        assert it.state()["phase"] == "Succeeded"
        if restarted:
            await it.restart()
        assert await it.it.runtime.sandboxes() != []
        await it.delete()
        await it.it.run_for(2.0)
        assert await it.it.runtime.sandboxes() == []


@on_loop
async def test_a_claim_of_a_pod_that_nobody_remembers_is_unprepared_at_the_start() -> None:
    async with scene() as it:
        await it.driver()
        await it.it.stop_agent()
        lost = ClaimRecord("uid", "lost", NAMESPACE, pods={"pod-uid": None}, drivers={GPU: None})
        from drakit.nodeagent.claims.checkpoint import Checkpoint

        Checkpoint(it.it.paths.root).save([lost])
        await it.it.start_agent()
        await it.it.run_for(2.0)
        assert it.calls() == ["unprepare"]


@on_loop
async def test_a_damaged_checkpoint_is_set_aside_and_the_driver_asked_again_when_a_device_is_needed() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        await it.it.stop_agent()
        (it.it.paths.root / FILE).write_text("{not json")
        await it.it.start_agent()
        assert [each.name for each in it.it.paths.root.glob(f"{FILE}.damaged-*")]
        assert it.calls() == ["prepare"]
        it.it.runtime.exit(1)
        await it.it.run_for(1.0)
        assert it.calls() == ["prepare", "prepare"]
        assert it.container()["restartCount"] == 1
        await it.delete()
        await it.it.run_for(2.0)
        assert it.calls("unprepare") == ["unprepare"]


@on_loop
async def test_a_claim_under_two_names_is_sent_once_and_the_container_gets_its_devices_for_each() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod(claims=("claim", "claim"))
        await it.claim(pod="pod")
        await it.bind()
        request = next(each.request for each in it.it.calls if each.method == "NodePrepareResources")
        assert [claim["name"] for claim in request["claims"]] == ["claim"]
        assert it.state()["phase"] == "Running"


@on_loop
async def test_a_template_claim_of_somebody_else_is_refused_and_the_agent_stays_up() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod(claims=(), resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
        await it.claim("made", pod="pod")
        found = await it.it.client.get(PODS, "pod", namespace=NAMESPACE)
        entry = {"name": "gpu", "resourceClaimName": "made"}
        await it.it.client.patch_status(found, {"resourceClaimStatuses": [entry]})
        await it.bind()
        assert any(each.endswith("(Pod is not owner)") for each in it.events(PREPARE_FAILED))
        it.it.check_alive()


@on_loop
async def test_an_extended_resource_that_nobody_provides_is_refused() -> None:
    async with scene() as it:
        resources = {"limits": {"example.com/gpu": "1"}}
        await it.pod(claims=(), container={"resources": resources})
        await it.bind()
        assert it.state()["phase"] == "Failed"
        assert it.state()["reason"] == "OutOfexample.com/gpu"
        assert [each["type"] for each in it.state()["conditions"]] == ["PodScheduled"]


@on_loop
async def test_a_claim_that_takes_too_much_of_the_node_turns_the_pod_away_in_the_kubelets_words() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod("small", claims=(), container={"resources": {"requests": {"cpu": "100m"}}})
        await it.bind("small")
        await it.pod("large")
        await it.claim(pod="large")
        found = await it.it.client.get(PODS, "large", namespace=NAMESPACE)
        taken = {"resourceClaimName": "claim", "containers": ["main"], "resources": {"cpu": "1k"}}
        await it.it.client.patch_status(found, {"nodeAllocatableResourceClaimStatuses": [taken]})
        await it.bind("large")
        words = "Node didn't have enough resource: cpu, requested: 1000000, used: 100, capacity: 2000"
        assert it.state("large")["reason"] == "OutOfcpu"
        assert it.state("large")["message"] == f"Pod was rejected: {words}"
        assert it.events("OutOfcpu") == [words]
        assert it.calls() == []


@on_loop
async def test_a_critical_pod_drives_out_others_until_it_fits() -> None:
    async with scene() as it:
        for name in ("one", "two"):
            await it.pod(name, claims=(), container={"resources": {"requests": {"cpu": "900m"}}})
            await it.bind(name)
        await it.pod(
            "critical",
            claims=(),
            priorityClassName="system-node-critical",
            container={"resources": {"requests": {"cpu": "1"}}},
        )
        await it.bind("critical")
        await it.it.run_for(3.0)
        assert it.state("critical")["phase"] == "Running"
        ended = [name for name in ("one", "two") if it.state(name)["phase"] == "Failed"]
        assert len(ended) == 1
        assert it.state(ended[0])["reason"] == "Preempting"


@on_loop
async def test_slices_of_a_driver_go_thirty_seconds_after_it_went_and_stay_when_it_is_back_sooner() -> None:
    async with scene() as it:
        driver = await it.driver()
        spec: dict[str, Any] = {"driver": GPU, "nodeName": "node-1", "devices": [{"name": "gpu-0"}]}
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
        slice_ = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}}
        await it.it.client.create({**slice_, "spec": {**spec, "pool": pool}})
        driver.stop_service()
        await it.it.run_for(29.0)
        driver.start_service()
        await it.it.run_for(60.0)
        assert len(await it.it.client.list(SLICES)) == 1
        await it.lose(driver)
        await it.it.run_for(31.0)
        assert len(await it.it.client.list(SLICES)) == 0


@on_loop
async def test_the_newest_connected_instance_is_called_and_the_older_one_when_it_goes() -> None:
    async with scene() as it:
        old, new = await it.driver(instance="a"), await it.driver(instance="b")
        await it.start("one", "claim-1")
        await it.lose(new)
        await it.start("two", "claim-2")
        called = [(each.method, each.instance) for each in it.it.calls if each.method == "NodePrepareResources"]
        assert called == [("NodePrepareResources", "b"), ("NodePrepareResources", "a")]
        assert old.serving


@on_loop
async def test_after_an_unprepare_that_failed_in_part_the_next_pod_of_the_claim_calls_prepare_again() -> None:
    """One of two drivers has let the claim go."""
    async with scene() as it:
        await it.driver()
        nic = await it.driver("nic.example.com")
        for name in ("one", "two"):
            await it.pod(name)
        await it.claim(drivers=(GPU, nic.name))
        await it.reserve("claim", "one", "two")
        await it.bind("one")
        nic.failures = ["busy"]
        await it.delete("one")
        assert it.calls() == ["prepare", "prepare", "unprepare", "unprepare"]
        await it.bind("two")
        await it.it.run_for(3.0)
        assert it.calls()[4:] == ["prepare", "prepare"]
        assert it.state("two")["phase"] == "Running"


@pytest.mark.parametrize(
    ("policy", "code", "phase", "restarts"),
    [
        ("Always", 0, "Running", 1),
        ("OnFailure", 0, "Succeeded", 0),
        ("OnFailure", 1, "Running", 1),
        ("Never", 1, "Failed", 0),
        ("Never", 0, "Succeeded", 0),
    ],
)
@on_loop
async def test_a_container_that_has_ended_starts_again_by_the_restart_policy(
    policy: str, code: int, phase: str, restarts: int
) -> None:
    async with scene() as it:
        await it.driver()
        await it.pod(restartPolicy=policy)
        await it.claim(pod="pod")
        await it.bind()
        it.it.runtime.exit(code)
        await it.it.run_for(3.0)
        assert (it.state()["phase"], it.container()["restartCount"]) == (phase, restarts)
        assert it.calls() == ["prepare"] + ["unprepare"] * (phase != "Running")


@on_loop
async def test_an_older_instance_is_called_while_the_newer_one_is_registered_and_has_no_connection() -> None:
    async with scene() as it:
        await it.driver(instance="a")
        new = await it.driver(instance="b")
        new.stop_service()
        await it.it.settle()
        await it.start("one", "claim-1")
        new.start_service()
        await it.it.settle()
        await it.start("two", "claim-2")
        called = [each.instance for each in it.it.calls if each.method == "NodePrepareResources"]
        assert called == ["a", "b"]


@on_loop
async def test_pod_resources_shows_the_devices_of_the_requests_that_a_container_names_each_with_its_own_ids() -> None:
    async with scene() as it:
        driver = await it.driver()
        devices = [
            {"request_names": [name], "pool_name": "pool", "device_name": name, "cdi_device_ids": [f"x.com/d={name}"]}
            for name in ("other", "gpu")
        ]
        driver._one = lambda claim: {"devices": devices}  # type: ignore[method-assign]  # noqa: ARG005
        await it.pod(container={"resources": {"claims": [{"name": "gpu-0", "request": "gpu"}]}})
        await it.claim(pod="pod")
        await it.bind()
        assert it.it.agent is not None
        (claim,) = it.it.agent.listing.all()[0].containers[0].dynamic_resources
        (shown,) = claim.claim_resources
        assert (shown.device_name, [each.name for each in shown.cdi_devices]) == ("gpu", ["x.com/d=gpu"])


@on_loop
async def test_a_container_that_cannot_be_started_is_counted() -> None:
    async with scene() as it:
        await it.driver()
        it.it.runtime._failure = lambda _pod, _container: "runtime broken"
        await it.start()
        counted = [value for name, _, value in it.it.metrics() if name == "kubelet_started_containers_errors_total"]
        assert counted == [1.0]
        await it.it.run_for(1.5)
        assert it.container()["state"]["waiting"]["reason"] == "CreateContainerError"
