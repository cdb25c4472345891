"""How pods end: their deadline, the order of their containers, the node's end; and containers added to look inside."""

from __future__ import annotations

import asyncio
from typing import Any

from drakit.client import PODS
from drakit.nodeagent.node.shutdown import end_pods
from tests.conformance.nodeflows.stage import NAMESPACE
from tests.nodeagent.scene import Scene, on_loop, scene

Plain = dict[str, Any]


@on_loop
async def test_a_pod_ends_when_its_active_deadline_is_over_and_lets_its_claim_go() -> None:
    async with scene() as it:
        await it.driver()
        await it.pod(activeDeadlineSeconds=30)
        await it.claim(pod="pod")
        await it.bind()
        await it.it.run_for(29.0)
        assert it.state()["phase"] == "Running"
        await it.it.run_for(2.0)
        message = "Pod was active on the node longer than the specified deadline"
        assert (it.state()["phase"], it.state()["reason"], it.state()["message"]) == (
            "Failed",
            "DeadlineExceeded",
            message,
        )
        ready = next(each for each in it.state()["conditions"] if each["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "PodFailed")
        assert it.events("DeadlineExceeded") == [message]
        assert it.calls() == ["prepare", "unprepare"]


@on_loop
async def test_the_active_deadline_counts_on_while_the_agent_is_away_and_for_a_pod_that_waits() -> None:
    async with scene() as it:
        await it.pod(activeDeadlineSeconds=30)
        await it.claim(pod="pod")
        await it.bind()
        await it.it.run_for(10.0)
        await it.it.stop_agent()
        it.it.clock.advance(15.0)
        await it.it.start_agent()
        await it.it.run_for(4.0)
        assert it.state()["phase"] == "Pending"
        await it.it.run_for(2.0)
        assert it.state()["reason"] == "DeadlineExceeded"
        assert it.calls() == []


async def debug(it: Scene, name: str, **about: Any) -> None:
    found = await it.it.client.get(PODS, "pod", namespace=NAMESPACE)
    known = found.document["spec"].get("ephemeralContainers") or []
    added = {"name": name, "image": "busybox", "command": ["sh"], "terminationMessagePolicy": "File", **about}
    change = {"spec": {"ephemeralContainers": [*known, added]}}
    await it.it.client.patch(found, change, subresource="ephemeralcontainers")
    await it.it.settle()


async def ephemeral(it: Scene) -> list[Plain]:
    found = await it.it.client.get(PODS, "pod", namespace=NAMESPACE)
    return list(found.document["status"].get("ephemeralContainerStatuses") or ())


def _stops(it: Scene) -> list[tuple[str, str]]:
    """Pods and containers, in the order in which they were stopped."""
    return [(each.pod, each.container) for each in it.it.cri if each.method == "StopContainer"]


@on_loop
async def test_sidecars_are_stopped_after_the_containers_that_they_serve_the_last_one_first() -> None:
    async with scene() as it:
        await it.driver()
        sidecars = [{"name": name, "image": "i", "restartPolicy": "Always"} for name in ("one", "two", "three")]
        await it.pod(initContainers=sidecars)
        await it.claim(pod="pod")
        await it.bind()
        await it.delete()
        await it.it.run_for(5.0)
        assert [container for _, container in _stops(it)] == ["main", "three", "two", "one"]
        assert it.it.deleted == ["pod"]


@on_loop
async def test_a_node_that_goes_down_ends_critical_pods_after_all_others_have_ended() -> None:
    async with scene() as it:
        slow = {"env": [{"name": "STOP_AFTER", "value": "3"}]}
        await it.pod("critical", claims=(), priorityClassName="system-node-critical")
        await it.pod("regular", claims=(), container=slow, terminationGracePeriodSeconds=10)
        await it.bind("critical", "regular")
        assert it.it.agent is not None
        ending = asyncio.create_task(end_pods(it.it.agent.workers.all(), it.it.clock, grace=30.0, critical=10.0))
        await it.it.run_for(2.0)
        assert _stops(it) == [("regular", "main")]
        await it.it.run_for(10.0)
        assert _stops(it) == [("regular", "main"), ("critical", "main")]
        await ending
        assert [it.state(each)["reason"] for each in ("regular", "critical")] == ["Terminated"] * 2


@on_loop
async def test_a_node_that_goes_down_takes_no_more_pods() -> None:
    async with scene() as it:
        await it.driver()
        assert it.it.agent is not None
        it.it.agent.state.shutting_down = "node is shutting down"
        await it.start()
        assert (it.state()["phase"], it.state()["reason"]) == ("Failed", "NodeShutdown")
        assert it.calls() == []


@on_loop
async def test_an_ephemeral_container_starts_in_the_running_pod_without_its_devices() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        await debug(it, "debugger")
        made = [each for each in it.it.cri if each.container == "debugger"]
        assert [each.method for each in made] == ["CreateContainer", "StartContainer"]
        assert made[0].about["CDI_devices"] == []
        (status,) = await ephemeral(it)
        assert "running" in status["state"]
        assert it.calls() == ["prepare"]
        paths = {each[4] for each in it.it.events if each[2] == "Started"}
        assert "spec.ephemeralContainers{debugger}" in paths


@on_loop
async def test_an_ephemeral_container_shares_the_processes_of_its_target() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        await debug(it, "debugger", targetContainerName="main")
        found = {each.name: each for each in await it.it.runtime.containers()}
        assert it.it.runtime.targets == {found["debugger"].id: found["main"].id}


@on_loop
async def test_an_ephemeral_container_waits_for_a_target_that_has_not_been_started() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        await debug(it, "debugger", targetContainerName="nobody")
        await it.it.run_for(0.9)
        assert it.events("Failed") == ["Error: unable to find target container nobody"]
        await it.it.run_for(0.2)
        (status,) = await ephemeral(it)
        reason = {"reason": "CreateContainerConfigError", "message": "unable to find target container nobody"}
        assert status["state"]["waiting"] == reason


@on_loop
async def test_an_ephemeral_container_runs_once_and_does_not_keep_the_pod() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        await debug(it, "one")
        it.it.runtime.exit(3, pod="pod", name="one")
        await it.it.run_for(60.0)
        await debug(it, "two")
        first, second = await ephemeral(it)
        assert first["state"]["terminated"]["exitCode"] == 3
        assert first["restartCount"] == 0
        assert "running" in second["state"]
        assert it.state()["phase"] == "Running"
        await it.restart()
        assert sum(each.method == "StartContainer" for each in it.it.cri) == 3
        await it.delete()
        await it.it.run_for(5.0)
        assert it.it.deleted == ["pod"]
        stopped = {each.container for each in it.it.cri if each.method == "StopContainer"}
        assert stopped == {"main", "two"}


@on_loop
async def test_an_ephemeral_container_starts_beside_an_init_container_that_hangs() -> None:
    async with scene() as it:
        await it.driver()
        init = [{"name": "slow", "image": "busybox", "command": ["sleep", "inf"]}]
        await it.pod(initContainers=init)
        await it.claim(pod="pod")
        await it.bind()
        await debug(it, "debugger")
        assert it.it.runtime.running("pod", "debugger") is not None
        assert it.it.runtime.running("pod", "main") is None
