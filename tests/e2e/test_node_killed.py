"""Agent, driver, server and machine fail while a pod comes and goes: processes of their own, killed by signal 9."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from drakit.client import CLAIMS, PODS, SLICES, Client
from drakit.nodeagent.claims.checkpoint import FILE, decode
from drakit.nodeagent.runtimes.shim.supervise import boot_id
from tests.builders.powercut import power_cut
from tests.e2e.moodydriver import NAME
from tests.e2e.nodemachine import (
    NODE,
    Machine,
    driver,
    gone,
    in_phase,
    kill,
    make_claims,
    make_class,
    node_cluster,
    of_driver,
    pod_with,
    prepared,
    there,
    told,
)
from tests.e2e.processes import Following, following
from tests.e2e.reached import PATIENCE, reached, until

Plain = dict[str, Any]


class Hands:
    """The test's hands on the processes of one node."""

    def __init__(self, machine: Machine, stack: ExitStack) -> None:
        self.machine = machine
        self.moods = machine.root / "moods"
        self.moods.mkdir()
        self._stack = stack
        self._agent: Following | None = None
        self._driver: driver | None = None

    def start_agent(self) -> None:
        self._agent = self._stack.enter_context(following("node", *self.machine.agent(), killed=True))

    def start_driver(self) -> None:
        where = f"directory={self.moods}"
        self._driver = driver(self.machine, "tests.e2e.moodydriver:MoodyDriver", "--set", where)
        self._stack.enter_context(self._driver)

    def kill_agent(self) -> None:
        assert self._agent is not None
        kill(self._agent.process)

    def kill_driver(self) -> None:
        assert self._driver is not None
        kill(self._driver.process)

    def feel(self, mood: str, text: str = "") -> None:
        """From the next call on; those that have come are forgotten."""
        (self.moods / f"called-{mood.partition('-')[2]}").unlink(missing_ok=True)
        (self.moods / mood).write_text(text)

    def stop_feeling(self, mood: str) -> None:
        (self.moods / mood).unlink()

    async def called(self, call: str) -> None:
        """Until the driver has been called; it forgets the call."""
        await there((self.moods / f"called-{call}").exists)
        (self.moods / f"called-{call}").unlink()


@pytest.fixture(scope="module")
def hands() -> Iterator[Hands]:
    with node_cluster(agent=False) as machine, ExitStack() as stack:
        made = Hands(machine, stack)
        made.start_agent()
        made.start_driver()
        asyncio.run(_class(machine))
        yield made


async def _class(machine: Machine) -> None:
    async with reached(machine.server.kubeconfig) as client:
        await make_class(client, NAME)
        await until(client, SLICES, of_driver(NAME), namespace="")


async def begin(client: Client, name: str, script: str, **spec: Any) -> None:
    """A pod with a claim, for the scheduler to place."""
    await make_claims(client, name, "moody")
    await client.create(pod_with(name, script, "moody", **spec))


async def end(client: Client, name: str, root: Path) -> None:
    await client.delete(PODS, name, namespace="default")
    await gone(client, name)
    assert decode((root / FILE).read_bytes()) == []
    assert prepared(root) == 0
    await client.delete(CLAIMS, f"{name}-moody", namespace="default")


async def running(client: Client, name: str) -> Plain:
    found = await until(client, PODS, in_phase(name, "Running"), namespace="default")
    status: Plain = found.document["status"]["containerStatuses"][0]
    return status


def log_file(root: Path, pod: str, attempt: int = 0) -> str:
    found = list(root.glob(f"logs/default_{pod}_*/main/{attempt}.log"))
    return found[0].read_text() if found else ""


def test_an_agent_that_is_killed_in_prepare_start_stop_and_unprepare_goes_on_each_time(hands: Hands) -> None:
    async def run() -> None:
        root = hands.machine.root
        async with reached(hands.machine.server.kubeconfig) as client:
            hands.feel("hold-prepare")
            waiting = f"until test -e {root}/go; do sleep 0.05; done"
            wait = {"name": "first", "image": "i", "command": ["sh", "-c", waiting]}
            slow = "trap 'sleep 1.5; exit 0' TERM; echo begun $MOOD; while :; do sleep 0.05; done"
            await begin(client, "killed", slow, initContainers=[wait], terminationGracePeriodSeconds=20)
            await hands.called("prepare")
            hands.kill_agent()  # in prepare
            hands.stop_feeling("hold-prepare")
            hands.start_agent()
            await until(client, PODS, _init_runs, namespace="default")
            hands.kill_agent()  # between the init container and the start of the main one
            hands.start_agent()
            (root / "go").touch()
            assert (await running(client, "killed"))["restartCount"] == 0
            await there(lambda: "begun mood-" in log_file(root, "killed"))
            hands.feel("hold-unprepare")
            await client.delete(PODS, "killed", namespace="default")
            await told(client, "killed", "Killing")
            hands.kill_agent()  # while the container takes its time
            hands.start_agent()
            await hands.called("unprepare")
            hands.kill_agent()  # in unprepare
            hands.start_agent()
            assert await client.find(PODS, "killed", namespace="default") is not None
            hands.stop_feeling("hold-unprepare")
            await gone(client, "killed")
            assert decode((root / FILE).read_bytes()) == []
            assert prepared(root) == 0

    asyncio.run(run())


def _init_runs(pod: Any) -> bool:
    statuses = (pod.document.get("status") or {}).get("initContainerStatuses") or ()
    return bool(pod.view.metadata.name == "killed" and any("running" in each["state"] for each in statuses))


def test_a_driver_that_is_killed_in_prepare_and_unprepare_is_called_again(hands: Hands) -> None:
    async def run() -> None:
        async with reached(hands.machine.server.kubeconfig) as client:
            hands.feel("hold-prepare")
            await begin(client, "lost", "sleep 100")
            await hands.called("prepare")
            hands.kill_driver()
            hands.stop_feeling("hold-prepare")
            assert "prepare dynamic resources" in await told(client, "lost", "FailedPrepareDynamicResources")
            hands.start_driver()
            await running(client, "lost")
            hands.feel("hold-unprepare")
            await client.delete(PODS, "lost", namespace="default")
            await hands.called("unprepare")
            hands.kill_driver()
            hands.stop_feeling("hold-unprepare")
            assert "unprepare dynamic resources" in await told(client, "lost", "FailedUnprepareDynamicResources")
            hands.start_driver()
            await gone(client, "lost")
            assert prepared(hands.machine.root) == 0

    asyncio.run(run())


def test_what_a_driver_refuses_is_told_with_the_pod_and_the_claim_and_tried_again(hands: Hands) -> None:
    async def run() -> None:
        async with reached(hands.machine.server.kubeconfig) as client:
            hands.feel("fail-prepare", "no device today")
            await begin(client, "refused", "sleep 100")
            assert "no device today" in await told(client, "refused", "FailedPrepareDynamicResources")
            await until(client, PODS, _waits_for("no device today"), namespace="default")
            hands.stop_feeling("fail-prepare")
            await running(client, "refused")
            hands.feel("fail-unprepare", "not yet")
            await client.delete(PODS, "refused", namespace="default")
            assert "not yet" in await told(client, "refused", "FailedUnprepareDynamicResources")
            assert (await client.get(PODS, "refused", namespace="default")).view.status.phase == "Running"
            # By force: the pod goes at once, and the claim is let go all the same.
            await client.delete(PODS, "refused", namespace="default", grace=0)
            await gone(client, "refused")
            hands.stop_feeling("fail-unprepare")
            await there(lambda: decode((hands.machine.root / FILE).read_bytes()) == [])

    asyncio.run(run())


def test_a_pod_and_a_claim_of_the_same_names_wait_until_the_driver_has_let_the_old_ones_go(hands: Hands) -> None:
    async def run() -> None:
        async with reached(hands.machine.server.kubeconfig) as client:
            await begin(client, "twin", "sleep 100")
            await running(client, "twin")
            [old] = decode((hands.machine.root / FILE).read_bytes())
            hands.feel("fail-unprepare", "not yet")
            await client.delete(PODS, "twin", namespace="default", grace=0)
            await gone(client, "twin")
            await client.delete(CLAIMS, "twin-moody", namespace="default")
            await until_claim_is_gone(client, "twin-moody")
            await begin(client, "twin", "echo with $MOOD; sleep 100")
            wanted = f"old ResourceClaim with same name twin-moody and different UID {old.uid} still exists"
            await until(client, PODS, _waits_for(wanted), namespace="default")
            hands.stop_feeling("fail-unprepare")
            await running(client, "twin")
            [new] = decode((hands.machine.root / FILE).read_bytes())
            claim = await client.get(CLAIMS, "twin-moody", namespace="default")
            pod = await client.get(PODS, "twin", namespace="default")
            assert (new.uid, list(new.pods)) == (claim.metadata.uid, [pod.view.metadata.uid])
            await end(client, "twin", hands.machine.root)

    asyncio.run(run())


async def until_claim_is_gone(client: Client, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while await client.find(CLAIMS, name, namespace="default") is not None:  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.05)


def _waits_for(text: str) -> Callable[[Any], bool]:
    def waits(pod: Any) -> bool:
        statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
        return any(text in (each["state"].get("waiting") or {}).get("message", "") for each in statuses)

    return waits


def test_a_container_restarts_with_its_device_while_the_server_stands_still(hands: Hands) -> None:
    async def run() -> None:
        root, server = hands.machine.root, hands.machine.server
        async with reached(server.kubeconfig) as client:
            crash = f"test -e {root}/crash"
            script = f"echo with $MOOD; {crash} && sleep 100; until {crash}; do sleep 0.05; done; exit 1"
            await begin(client, "alone", script, restartPolicy="Always")
            await running(client, "alone")
            os.kill(server.pid, signal.SIGSTOP)
            try:
                (root / "crash").touch()
                await there(lambda: "with mood-" in log_file(root, "alone", 1))
            finally:
                os.kill(server.pid, signal.SIGCONT)
            await until(client, PODS, _restarted("alone"), namespace="default")
            await end(client, "alone", root)

    asyncio.run(run())


def _restarted(name: str) -> Callable[[Any], bool]:
    def restarted(pod: Any) -> bool:
        statuses = (pod.document.get("status") or {}).get("containerStatuses") or ({"restartCount": 0},)
        return bool(pod.view.metadata.name == name and statuses[0]["restartCount"] > 0)

    return restarted


def test_after_a_reboot_everything_is_prepared_anew(hands: Hands) -> None:
    """All processes of the node end at once, and what a machine keeps in memory is empty: CDI files and sockets."""

    async def run() -> None:
        root = hands.machine.root
        async with reached(hands.machine.server.kubeconfig) as client:
            await begin(client, "booted", "echo with $MOOD; sleep 100", restartPolicy="Always")
            await running(client, "booted")
            await hands.called("prepare")
            hands.kill_agent()
            hands.kill_driver()
            power_off(root)
            hands.start_driver()
            hands.start_agent()
            await hands.called("prepare")
            await until(client, PODS, _restarted("booted"), namespace="default")
            await there(lambda: "with mood-" in log_file(root, "booted", 1))
            await end(client, "booted", root)

    asyncio.run(run())


def power_off(root: Path) -> None:
    for running_file in root.glob("runtime/containers/*/running.json"):
        power_cut(json.loads(running_file.read_text())["shim"]["pid"])
    for file in (*root.glob("cdi/*"), *root.glob("plugins/*/*.sock"), *root.glob("plugins_registry/*")):
        file.unlink()
    # What is on the disk is of the boot before: this machine cannot have another boot id.
    now = boot_id()
    for record in root.rglob("*.json"):
        if now in (text := record.read_text()):
            record.write_text(text.replace(now, "the-boot-before"))


def test_a_damaged_checkpoint_is_set_aside_and_the_pod_and_its_claim_go_as_they_should(hands: Hands) -> None:
    async def run() -> None:
        root = hands.machine.root
        async with reached(hands.machine.server.kubeconfig) as client:
            await begin(client, "damaged", "sleep 100")
            await running(client, "damaged")
            hands.kill_agent()
            (root / FILE).write_bytes((root / FILE).read_bytes()[:-3])
            hands.start_agent()
            assert "set aside" in await told(client, NODE, "DRACheckpointDamaged")
            assert list(root.glob(f"{FILE}.damaged-*"))
            await end(client, "damaged", root)

    asyncio.run(run())
