"""The CRI runtime against a scripted server, and Debian's containerd for what is refused."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from drakit.base.clock import FakeClock, RealClock
from drakit.nodeagent.runtimes.contract import (
    BindMount,
    ContainerState,
    ContainerUnknown,
    DeviceUnresolved,
    ImageUnavailable,
    PodIdentity,
    RuntimeFailure,
    RuntimeRefusal,
    RuntimeUnsuitable,
    RuntimeVersion,
    SandboxConfig,
)
from drakit.nodeagent.runtimes.cri import CriRuntime
from drakit.nodeagent.runtimes.cri.support import why_without_cdi
from drakit.pluginapi import cri_v1_pb2 as cri
from tests.nodeagent.runtimes.criserver import CriServer, Script
from tests.nodeagent.runtimes.scene import POD, end, find, on_loop, output, run, shell, start, write_cdi


@asynccontextmanager
async def connected(base: Path, script: Script | None = None) -> AsyncIterator[tuple[CriRuntime, CriServer]]:
    async with CriServer(base, script) as server, CriRuntime(str(server.socket), clock=RealClock()) as runtime:
        yield runtime, server


def tool(script: str, **changes: Any) -> Any:
    return shell(script, **({"image": "tool"} | changes))


@on_loop
async def test_a_container_runs_and_its_end_is_told(tmp_path: Path) -> None:
    async with connected(tmp_path) as (runtime, _):
        config = tool(
            "echo $A; cat /drakit-v/file; exit 3", env={"A": "b"}, mounts=[BindMount(str(tmp_path), "/drakit-v")]
        )
        (tmp_path / "file").write_text("in\n")
        info, text = await run(runtime, tmp_path, config)
        assert (info.exit_code, info.reason, text, info.pod) == (3, "Error", "b\nin\n", POD)
        assert info.log_path == str(tmp_path / "logs" / "main" / "0.log")
        (sandbox,) = await runtime.sandboxes()
        assert (sandbox.ip, sandbox.pod) == ("10.88.0.5", POD)
        await runtime.remove_sandbox(sandbox.id)
        assert (await runtime.sandboxes(), await runtime.containers()) == ([], [])


@on_loop
async def test_cdi_ids_go_into_their_field_in_order_and_are_applied(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text('{"kind": "DeviceMetadata"}\n')
    metadata = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/vendor.com-metadata.json"
    mount = {"hostPath": str(tmp_path / "metadata.json"), "containerPath": metadata, "options": ["ro", "bind"]}
    write_cdi(
        tmp_path,
        [
            {"name": "b", "containerEdits": {"env": ["GPU=b"]}},
            {"name": "a", "containerEdits": {"env": ["GPU=a"], "mounts": [mount]}},
        ],
    )
    ids = ["vendor.com/gpu=b", "vendor.com/gpu=a", "vendor.com/gpu=b"]
    async with connected(tmp_path) as (runtime, server):
        _, text = await run(runtime, tmp_path, tool(f"echo $GPU; cat {metadata}", cdi_devices=ids))
        (request,) = server.requests("CreateContainer")
    assert [device.name for device in request.config.CDI_devices] == ids
    assert text == 'a\n{"kind": "DeviceMetadata"}\n'


@on_loop
async def test_a_container_that_looks_into_another_says_which(tmp_path: Path) -> None:
    async with connected(tmp_path) as (runtime, server):
        await start(runtime, tmp_path, tool("true", target="the-target"))
        (request,) = server.requests("CreateContainer")
        options = request.config.linux.security_context.namespace_options
        assert (options.pid, options.target_id) == (cri.TARGET, "the-target")


@on_loop
async def test_a_device_that_the_runtime_cannot_resolve_is_refused(tmp_path: Path) -> None:
    async with connected(tmp_path) as (runtime, _):
        with pytest.raises(DeviceUnresolved, match=r"failed to inject CDI devices: .*vendor\.com/gpu=none"):
            await start(runtime, tmp_path, tool("true", cdi_devices=["vendor.com/gpu=none"]))


@on_loop
async def test_the_next_agent_finds_what_runs_and_makes_more_in_the_old_sandbox(tmp_path: Path) -> None:
    async with CriServer(tmp_path) as server:
        async with CriRuntime(str(server.socket), clock=RealClock()) as first:
            container = await start(first, tmp_path, tool("sleep 1000"))
        async with CriRuntime(f"unix://{server.socket}", clock=RealClock()) as second:
            assert (await find(second, container)).state is ContainerState.RUNNING
            (sandbox,) = await second.sandboxes()
            again = await second.create_container(sandbox.id, tool("echo again", name="more", log_path="more/0.log"))
            await second.start_container(again)
            assert output(await end(second, again)) == "again\n"
            await second.stop_container(container, grace=1.2)
            assert (await find(second, container)).exit_code == 143
        assert server.requests("StopContainer")[0].timeout == 2


@on_loop
async def test_pods_of_others_on_the_same_runtime_are_left_alone(tmp_path: Path) -> None:
    async with connected(tmp_path) as (runtime, server):
        stranger = PodIdentity("other", "kube-system", "stranger")
        await server._runtime.run_sandbox(SandboxConfig(pod=stranger))
        assert await runtime.sandboxes() == []


@on_loop
async def test_without_events_all_containers_are_looked_at_again(tmp_path: Path) -> None:
    clock = FakeClock()
    server, go = CriServer(tmp_path, Script(has_events=False)), tmp_path / "go"
    async with server, CriRuntime(str(server.socket), clock=clock) as runtime:
        container = await start(runtime, tmp_path, tool(f"while [ ! -e {go} ]; do sleep 0.02; done"))
        next_change = asyncio.create_task(anext(runtime.changes()))
        async with asyncio.timeout(120):
            while not next_change.done():
                clock.advance(1)
                go.touch()
                await asyncio.sleep(0.02)
        assert next_change.result() == POD.uid
        assert (await find(runtime, container)).id == container


@on_loop
async def test_what_ends_while_the_stream_of_events_is_down_is_heard_of_at_the_next_look(tmp_path: Path) -> None:
    clock = FakeClock()
    script = Script(refusals={"GetContainerEvents": (grpc.StatusCode.UNAVAILABLE, "too many streams")})
    async with CriServer(tmp_path, script) as server, CriRuntime(str(server.socket), clock=clock) as runtime:
        await advance_until(clock, lambda: bool(server.requests("ListPodSandbox")))
        container = await start(runtime, tmp_path, tool("sleep 1000"))
        server.script.refusals["ListContainers"] = (grpc.StatusCode.DEADLINE_EXCEEDED, "busy")
        await advance_until(clock, lambda: len(server.requests("ListContainers")) > 2)
        del server.script.refusals["ListContainers"]
        await advance_until(clock, lambda: len(server.requests("ListContainers")) > 4)
        told = asyncio.create_task(anext(runtime.changes()))
        await advance_until(clock, told.done)
        await server._runtime.stop_container(container, grace=0)
        told = asyncio.create_task(anext(runtime.changes()))
        await advance_until(clock, told.done)
        assert told.result() == POD.uid


async def advance_until(clock: FakeClock, holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not holds():
            clock.advance(1)
            await asyncio.sleep(0.02)


@on_loop
async def test_exec_attach_and_port_forward_come_over_the_runtimes_streams(tmp_path: Path) -> None:
    async with connected(tmp_path) as (runtime, _):
        container = await start(runtime, tmp_path, tool("read a; echo got $a; sleep 1000", stdin=True))
        streams = await runtime.exec(container, ["sh", "-c", "cat; echo err >&2; exit 7"], stdin=True)
        await streams.write_stdin(b"hello")
        assert await streams.stdout.read() == b"hello"
        await streams.close_stdin()
        assert (await streams.stderr.read(), await streams.wait()) == (b"err\n", 7)
        await streams.close()
        attached = await runtime.attach(container, stdin=True)
        await attached.write_stdin(b"one\n")
        assert await attached.stdout.read() == b"got one\n"
        await attached.close()
        result = await runtime.exec_sync(container, ["sh", "-c", "echo x; exit 2"], limit=10)
        assert (result.exit_code, result.stdout) == (2, b"x\n")


@on_loop
async def test_port_forward_reaches_what_listens(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read(100)).upper())
        writer.close()

    listener = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with listener, connected(tmp_path) as (runtime, _):
        sandbox = await runtime.run_sandbox(SandboxConfig(pod=POD))
        stream = await runtime.port_forward(sandbox, listener.sockets[0].getsockname()[1])
        await stream.write(b"hello")
        assert await stream.read() == b"HELLO"
        await stream.close()


@on_loop
async def test_images_are_pulled_as_the_policy_says(tmp_path: Path) -> None:
    async with connected(tmp_path) as (runtime, server):
        assert await runtime.ensure_image("tool") == "tool@sha256:2"
        assert await runtime.ensure_image("new") == "sha256:1"
        assert [request.image.image for request in server.requests("PullImage")] == ["new"]
        with pytest.raises(RuntimeRefusal) as refusal:
            await runtime.ensure_image("other", pull_policy="Never")
        assert refusal.value.reason == "ErrImageNeverPull"
        server.script.refusals["PullImage"] = (grpc.StatusCode.UNKNOWN, "no such host")
        with pytest.raises(ImageUnavailable, match='Failed to pull image "tool": no such host'):
            await runtime.ensure_image("tool", pull_policy="Always")


@on_loop
async def test_failures_are_told_by_what_to_do(tmp_path: Path) -> None:
    async with connected(tmp_path) as (runtime, server):
        server.script.refusals["RunPodSandbox"] = (grpc.StatusCode.UNAVAILABLE, "no network yet")
        with pytest.raises(RuntimeFailure, match="no network yet"):
            await runtime.run_sandbox(SandboxConfig(pod=POD))
        server.script.refusals["StopContainer"] = (grpc.StatusCode.NOT_FOUND, "gone")
        await runtime.stop_container("gone", grace=1)
        with pytest.raises(ContainerUnknown):
            await runtime.attach("gone")
        del server.script.refusals["RunPodSandbox"]
        with pytest.raises(RuntimeRefusal, match="no-such-program") as refusal:
            await start(runtime, tmp_path, tool("", command=["no-such-program"]))
        assert refusal.value.reason == "RunContainerError"


@pytest.mark.parametrize(
    ("name", "version", "config", "expected"),
    [
        ("containerd", "1.6.20~ds1", "{}", "containerd 1.6.20~ds1 does not read CDI device ids; use 1.7.2 or newer"),
        ("containerd", "v1.7.1", '{"enableCDI": true}', "containerd v1.7.1 does not read CDI device ids"),
        ("containerd", "v1.7.27", '{"enableCDI": false}', "containerd v1.7.27 has CDI switched off; set enable_cdi"),
        ("containerd", "v1.7.27", "not json", "does not say that CDI is switched on, and by default it is not"),
        ("containerd", "v1.7.27", '{"enableCDI": true}', None),
        ("containerd", "v2.1.0", "{}", None),
        ("containerd", "2.0.0", '{"enableCDI": false}', "containerd 2.0.0 has CDI switched off"),
        ("cri-o", "1.27.3", "{}", "CRI-O 1.27.3 does not read CDI device ids; use 1.28.0 or newer"),
        ("cri-o", "1.31.0", "{}", None),
        ("docker", "28.0", "{}", "it is not known whether docker 28.0 reads CDI device ids"),
        ("containerd", "unknown", "{}", "containerd unknown does not read"),
    ],
)
def test_support_is_told_by_name_version_and_configuration(
    name: str, version: str, config: str, expected: str | None
) -> None:
    reason = why_without_cdi(RuntimeVersion(name, version), {"config": config})
    assert (reason is None) if expected is None else (reason is not None and expected in reason)
    assert why_without_cdi(RuntimeVersion(name, version), {"config": config}, assume_cdi=True) is None


@on_loop
async def test_a_runtime_without_cdi_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(RuntimeUnsuitable, match=r"cannot serve DRA: containerd v1\.7\.20 has CDI switched off"):
        async with connected(tmp_path, Script(version="v1.7.20", config={"enableCDI": False})):
            pass


@on_loop
async def test_a_runtime_that_does_not_answer_is_a_failure_to_be_tried_again(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailure):
        async with CriRuntime(str(tmp_path / "nobody.sock"), clock=RealClock()):
            pass


def containerd_version() -> str:
    return subprocess.run(["containerd", "--version"], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(shutil.which("containerd") is None, reason="containerd is not installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="containerd needs root")
@on_loop
async def test_containerd_as_debian_has_it_is_refused(tmp_path: Path) -> None:
    version = containerd_version()
    if " 1.6." not in version:
        pytest.skip(f"this machine's containerd is newer: {version.strip()}")
    socket = tmp_path / "c.sock"
    config = f'version = 2\nroot = "{tmp_path}/root"\nstate = "{tmp_path}/state"\n[grpc]\n  address = "{socket}"\n'
    (tmp_path / "config.toml").write_text(config)
    with (tmp_path / "log").open("wb") as log:
        containerd = subprocess.Popen(["containerd", "-c", str(tmp_path / "config.toml")], stdout=log, stderr=log)
    try:
        async with asyncio.timeout(120):
            while not socket.exists():
                await asyncio.sleep(0.02)
        with pytest.raises(RuntimeUnsuitable, match=r"cannot serve DRA: containerd 1\.6\.\S* does not read CDI device"):
            async with CriRuntime(str(socket), clock=RealClock()):
                pass
    finally:
        containerd.terminate()
        containerd.wait(20)
