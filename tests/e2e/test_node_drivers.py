"""Drivers and device plugins of one node come late, fall ill, overlap and leave: processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from drakit.client import CLAIMS, NODES, PODS, SLICES, Client, bind
from tests.e2e.moodydriver import NAME
from tests.e2e.nodemachine import (
    CLASSES,
    NODE,
    Machine,
    driver,
    gone,
    in_phase,
    kill,
    log_of,
    make_claims,
    make_class,
    make_classes,
    node_cluster,
    of_driver,
    pod_with,
    prepared,
    there,
    told,
)
from tests.e2e.processes import ROOT
from tests.e2e.pulsingdriver import NAME as PULSING
from tests.e2e.reached import reached, until

FPGA, ASIC = "example.com/fpga", "example.com/asic"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """`gpu` tells of its devices' health, `nic` does not; the moody driver is started by the tests."""
    with node_cluster() as made, ExitStack() as stack:
        asyncio.run(make_classes(made))
        for name in ("gpu", "nic"):
            stack.enter_context(driver(made, name))
        asyncio.run(_published(made))
        yield made


async def _published(machine: Machine) -> None:
    async with reached(machine.server.kubeconfig) as client:
        await make_class(client, NAME)
        for name in ("gpu", "nic"):
            await until(client, SLICES, of_driver(CLASSES[name]), namespace="")


def moody(machine: Machine, instance: str) -> driver:
    """Its calls are seen in the instance's directory."""
    (machine.root / instance).mkdir()
    where = f"directory={machine.root / instance}"
    return driver(machine, "tests.e2e.moodydriver:MoodyDriver", "--set", where, "--pod-uid", instance)


async def run_pod(client: Client, name: str, *kinds: str) -> None:
    await make_claims(client, name, *kinds)
    await client.create(pod_with(name, "env; sleep 1000", *kinds))
    await until(client, PODS, in_phase(name, "Running"), namespace="default")


async def end_pod(client: Client, name: str) -> None:
    await client.delete(PODS, name, namespace="default")
    await gone(client, name)


def test_a_pod_shows_the_health_of_its_devices_and_unknown_for_a_driver_that_does_not_tell(machine: Machine) -> None:
    async def run() -> None:
        control = machine.root / "gpu" / "health"
        async with reached(machine.server.kubeconfig) as client:
            await run_pod(client, "ill", "gpu", "nic")
            well = {"claim:gpu": ("Healthy", ""), "claim:nic": ("Unknown", "")}
            await until(client, PODS, _shows("ill", well), namespace="default")
            claim = await client.get(CLAIMS, "ill-gpu", namespace="default")
            assert claim.status.allocation is not None
            control.write_text(f"{claim.status.allocation.devices.results[0].device} overheated\n")
            ill = {"claim:gpu": ("Unhealthy", "overheated"), "claim:nic": ("Unknown", "")}
            await until(client, PODS, _shows("ill", ill), namespace="default")
            control.unlink()
            await until(client, PODS, _shows("ill", well), namespace="default")
            assert (await client.get(PODS, "ill", namespace="default")).view.status.phase == "Running"
            await end_pod(client, "ill")

    asyncio.run(run())


def _shows(name: str, wanted: dict[str, tuple[str, str]]) -> Callable[[Any], bool]:
    """Whether the pod's container has just this `allocatedResourcesStatus`, with one device each."""

    def shows(pod: Any) -> bool:
        statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
        found = {
            each["name"]: tuple((one["health"], one.get("message", "")) for one in each["resources"])
            for status in statuses
            for each in status.get("allocatedResourcesStatus") or ()
        }
        return bool(pod.view.metadata.name == name and found == {claim: (one,) for claim, one in wanted.items()})

    return shows


def test_a_driver_that_falls_silent_makes_its_device_unknown_and_an_equal_report_healthy(
    machine: Machine,
) -> None:
    """The driver's process stands still: its connection and its health stream stay open, and nothing comes."""

    async def use(process: subprocess.Popen[str]) -> None:
        async with reached(machine.server.kubeconfig) as client:
            await make_class(client, PULSING)
            await run_pod(client, "silent", "pulsing")
            well = {"claim:pulsing": ("Healthy", "beats")}
            await until(client, PODS, _shows("silent", well), namespace="default")
            os.kill(process.pid, signal.SIGSTOP)
            try:
                await until(client, PODS, _shows("silent", {"claim:pulsing": ("Unknown", "")}), namespace="default")
            finally:
                os.kill(process.pid, signal.SIGCONT)
            await until(client, PODS, _shows("silent", well), namespace="default")
            assert (await client.get(PODS, "silent", namespace="default")).view.status.phase == "Running"
            await end_pod(client, "silent")

    with driver(machine, "tests.e2e.pulsingdriver:PulsingDriver") as process:
        asyncio.run(use(process))


def test_a_pod_waits_for_a_driver_that_comes_late_on_its_node_and_before_the_scheduler(machine: Machine) -> None:
    async def wait() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await make_claims(client, "placed", "moody")
            claim = await client.get(CLAIMS, "placed-moody", namespace="default")
            results = [{"request": "r", "driver": NAME, "pool": NODE, "device": "mood-3"}]
            await client.patch_status(claim, {"allocation": {"devices": {"results": results}}})
            await client.create(pod_with("placed", "env; sleep 1000", "moody", nodeName=NODE))
            await until(client, PODS, _waits_for("placed", f"DRA driver {NAME} is not registered"), namespace="default")
            await make_claims(client, "early", "moody")
            await client.create(pod_with("early", "env; sleep 1000", "moody"))
            await until(client, PODS, _is_unschedulable("early"), namespace="default")

    async def go_on() -> None:
        async with reached(machine.server.kubeconfig) as client:
            for name in ("placed", "early"):
                await until(client, PODS, in_phase(name, "Running"), namespace="default")
                said = await log_of(client, name, "MOOD=mood-")
                assert ("MOOD=mood-3" in said) == (name == "placed")
                await end_pod(client, name)
            assert prepared(machine.root) == 0

    asyncio.run(wait())
    with moody(machine, "late"):
        asyncio.run(go_on())


def _waits_for(name: str, text: str) -> Callable[[Any], bool]:
    def waits(pod: Any) -> bool:
        statuses = (pod.document.get("status") or {}).get("containerStatuses") or ()
        messages = [(each["state"].get("waiting") or {}).get("message", "") for each in statuses]
        return bool(pod.view.metadata.name == name and any(text in each for each in messages))

    return waits


def _is_unschedulable(name: str) -> Callable[[Any], bool]:
    def is_refused(pod: Any) -> bool:
        reasons = [each.reason for each in pod.view.status.conditions]
        return bool(pod.view.metadata.name == name and "Unschedulable" in reasons)

    return is_refused


def test_of_two_instances_the_newer_is_called_and_the_older_again_when_the_newer_is_killed(machine: Machine) -> None:
    old, new = machine.root / "old", machine.root / "new"

    async def before() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await run_pod(client, "first", "moody")
            assert _calls(old) == {"called-prepare"}

    async def overlap() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await run_pod(client, "second", "moody")
            await end_pod(client, "first")
            assert (_calls(old), _calls(new)) == ({"called-prepare"}, {"called-prepare", "called-unprepare"})

    async def after() -> None:
        (old / "called-prepare").unlink()
        async with reached(machine.server.kubeconfig) as client:
            await run_pod(client, "third", "moody")
            assert _calls(old) == {"called-prepare"}
            for name in ("second", "third"):
                await end_pod(client, name)
            assert _calls(old) == {"called-prepare", "called-unprepare"}
            assert prepared(machine.root) == 0

    with moody(machine, "old"):
        asyncio.run(before())
        newer = moody(machine, "new")
        with newer:
            asyncio.run(there(lambda: _is_ready(newer)))
            asyncio.run(overlap())
            kill(newer.process)
        asyncio.run(after())


def _calls(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def _is_ready(working: driver) -> bool:
    """Registered, and its slices are published."""
    try:
        with urlopen(f"{working.shown}/readyz") as answer:
            return bool(answer.status == 200)
    except HTTPError:
        return False


def test_a_device_plugin_serves_a_pod_beside_a_claim_and_its_resource_is_zero_when_it_leaves(machine: Machine) -> None:
    async def use() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await until(client, NODES, _has(FPGA, "2"), namespace="")
            await make_claims(client, "both", "gpu")
            pod = pod_with("both", "env; echo end; sleep 1000", "gpu")
            pod["spec"]["containers"][0]["resources"]["limits"] = {FPGA: "1"}
            await client.create(pod)
            said = (await log_of_running(client, "both", "\nend")).splitlines()
            assert "DEVICES=a" in said
            assert any(line.startswith("GPU_DEVICE_0=gpu-") for line in said)

    async def left() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await until(client, NODES, _has(FPGA, "0"), namespace="")
            assert (await client.get(PODS, "both", namespace="default")).view.status.phase == "Running"
            await end_pod(client, "both")

    with device_plugin_process(machine, FPGA) as process:
        asyncio.run(use())
        kill(process)
        asyncio.run(left())


def test_what_a_claim_provides_is_left_to_it_when_a_device_plugin_of_the_same_resource_is_there(
    machine: Machine,
) -> None:
    """A node in the middle of a migration: a pod that was placed by its claim, then the plugin, then all others."""

    async def begin() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await make_extended_class(client, ASIC)
            await client.create(asking("migrated", ASIC, "main"))
            await there((machine.root / "mixed" / "called-prepare").exists)

    async def go_on() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await until(client, NODES, _has(ASIC, "2"), namespace="")
            (machine.root / "mixed" / "hold-prepare").unlink()
            assert _devices(await log_of_running(client, "migrated", "\nend")) == ["MOOD"]
            await client.create(asking("plugged", ASIC, "main"))
            assert _devices(await log_of_running(client, "plugged", "\nend")) == ["DEVICES"]
            for name in ("migrated", "plugged"):
                await end_pod(client, name)
            await one_of_each(client)

    with moody(machine, "mixed"):
        (machine.root / "mixed" / "hold-prepare").touch()
        asyncio.run(begin())
        with device_plugin_process(machine, ASIC):
            asyncio.run(go_on())
    assert prepared(machine.root) == 0


async def one_of_each(client: Client) -> None:
    """Two containers of a pod ask for the same resource; a claim provides it to one of them."""
    await make_claims(client, "pair", "moody")
    await client.create(asking("pair", ASIC, "claimed", "other", schedulerName="this-test"))
    pod = await client.get(PODS, "pair", namespace="default")
    claim = await client.get(CLAIMS, "pair-moody", namespace="default")
    results = [{"request": "r", "driver": NAME, "pool": NODE, "device": "mood-5"}]
    user = {"resource": "pods", "name": "pair", "uid": pod.view.metadata.uid}
    await client.patch_status(claim, {"allocation": {"devices": {"results": results}}, "reservedFor": [user]})
    mapping = {"containerName": "claimed", "resourceName": ASIC, "requestName": "r"}
    provided = {"resourceClaimName": "pair-moody", "requestMappings": [mapping]}
    await bind(client, await client.patch_status(pod, {"extendedResourceClaimStatus": provided}), NODE)
    await until(client, PODS, in_phase("pair", "Running"), namespace="default")
    for container, wanted in (("claimed", ["MOOD"]), ("other", ["DEVICES"])):
        assert _devices(await log_of(client, "pair", "\nend", container=container)) == wanted
    await end_pod(client, "pair")


async def make_extended_class(client: Client, resource: str) -> None:
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{NAME}"'}}], "extendedResourceName": resource}
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "extended"}}
    await client.create({**about, "spec": spec})


def asking(name: str, resource: str, *containers: str, **spec: Any) -> dict[str, Any]:
    """A pod each of whose containers asks for one of a resource."""
    pod = pod_with(name, "env; echo end; sleep 1000", **spec)
    [container] = pod["spec"]["containers"]
    container["resources"] = {"limits": {resource: "1"}}
    pod["spec"]["containers"] = [{**container, "name": each} for each in containers]
    return pod


def _devices(said: str) -> list[str]:
    """By whose environment a container's devices are told: MOOD by the driver's, DEVICES by the plugin's."""
    return [line.partition("=")[0] for line in said.splitlines() if line.startswith(("MOOD=", "DEVICES="))]


@contextmanager
def device_plugin_process(machine: Machine, resource: str) -> Iterator[subprocess.Popen[str]]:
    started = [sys.executable, "-m", "tests.nodeagent.deviceplugin", str(machine.root / "device-plugins"), resource]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "registered\n"
            yield process
        finally:
            process.terminate()


async def log_of_running(client: Client, name: str, wanted: str) -> str:
    await until(client, PODS, in_phase(name, "Running"), namespace="default")
    return await log_of(client, name, wanted)


def _has(resource: str, amount: str) -> Callable[[Any], bool]:
    def has(node: Any) -> bool:
        status = node.document.get("status") or {}
        return all((status.get(key) or {}).get(resource) == amount for key in ("capacity", "allocatable"))

    return has


def test_a_pod_waits_while_its_claim_is_reserved_for_another_and_goes_on_with_its_reservation(machine: Machine) -> None:
    """The controllers, who make the reservation, are away for a while."""
    assert machine.controllers is not None

    async def wait() -> None:
        async with reached(machine.server.kubeconfig) as client:
            shared = [{"name": "gpu", "resourceClaimName": "holder-gpu"}]
            await client.create(pod_with("guest", "env; sleep 1000", "gpu", nodeName=NODE, resourceClaims=shared))
            message = await told(client, "guest", "FailedPrepareDynamicResources")
            assert "is not allowed to use ResourceClaim holder-gpu" in message
            assert (await client.get(PODS, "guest", namespace="default")).view.status.phase == "Pending"

    async def begin() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await run_pod(client, "holder", "gpu")

    async def go_on() -> None:
        async with reached(machine.server.kubeconfig) as client:
            assert "GPU_DEVICE_0=gpu-" in await log_of_running(client, "guest", "GPU_DEVICE_0=")
            await end_pod(client, "holder")
            assert prepared(machine.root) == 1, "the guest still has the claim"
            await end_pod(client, "guest")
            assert prepared(machine.root) == 0

    asyncio.run(begin())
    machine.controllers.stop()
    try:
        asyncio.run(wait())
    finally:
        machine.controllers.start()
    asyncio.run(go_on())
