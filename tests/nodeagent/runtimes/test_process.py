"""The process runtime with real processes."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from drakit.base.errors import DeadlineExceeded
from drakit.nodeagent.runtimes.contract import (
    BindMount,
    ContainerInfo,
    ContainerLimits,
    ContainerState,
    DeviceUnresolved,
    ExecResult,
    LimitsRefused,
    RuntimeRefusal,
    RuntimeUnsuitable,
    SandboxConfig,
)
from drakit.nodeagent.runtimes.process import ProcessRuntime
from drakit.nodeagent.runtimes.supervised.container import start_shim
from tests.nodeagent.runtimes.scene import (
    POD,
    end,
    find,
    on_loop,
    process_runtime,
    remove_all,
    run,
    shell,
    start,
    write_cdi,
    written,
)


def can_make(namespace: str) -> bool:
    option = ["--user", "--map-root-user"] if namespace == "user" else []
    return subprocess.run(["unshare", "--mount", *option, "true"], check=False, capture_output=True).returncode == 0


@asynccontextmanager
async def runtime_in(base: Path, **changes: Any) -> AsyncIterator[ProcessRuntime]:
    """Ends everything that it started."""
    async with process_runtime(base, **changes) as runtime:
        try:
            yield runtime
        finally:
            await remove_all(runtime)


@on_loop
async def test_a_container_writes_its_log_and_ends(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        info, text = await run(runtime, tmp_path, shell("echo out; echo err >&2; printf end"))
    assert (info.state, info.exit_code, info.reason) == (ContainerState.EXITED, 0, "Completed")
    assert sorted(text.splitlines()) == ["end", "err", "out"]
    assert info.started is not None
    assert info.finished is not None
    assert info.started <= info.finished


@on_loop
async def test_the_log_has_the_format_of_cri(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        info, _ = await run(runtime, tmp_path, shell("echo one; printf two"))
    first, second = Path(info.log_path).read_text().splitlines()
    stamp, rest = first.split(" ", 1)
    assert rest == "stdout F one"
    assert (len(stamp), stamp[-1], stamp[10]) == (30, "Z", "T")
    assert second.endswith("stdout P two")


@on_loop
async def test_exit_codes_and_signals_are_told_as_a_shell_does(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        failed, _ = await run(runtime, tmp_path, shell("exit 3"))
        killed, _ = await run(runtime, tmp_path, shell("kill -9 $$"))
    assert (failed.exit_code, failed.reason) == (3, "Error")
    assert (killed.exit_code, killed.reason) == (137, "Error")


@on_loop
async def test_environment_and_own_directory(tmp_path: Path) -> None:
    os.environ["SECRET_OF_THE_AGENT"] = "x"
    async with runtime_in(tmp_path) as runtime:
        config = shell("pwd; echo $A; echo $HOSTNAME; echo ${SECRET_OF_THE_AGENT:-none}", env={"A": "b"})
        info, text = await run(runtime, tmp_path, config)
    directory, *rest = text.splitlines()
    assert directory == str(tmp_path / "runtime" / "containers" / info.id / "work")
    assert rest == ["b", "web", "none"]


@on_loop
async def test_a_command_that_does_not_exist_is_refused_at_the_start(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        with pytest.raises(RuntimeRefusal, match=r'exec "no-such-program": No such file') as refusal:
            await start(runtime, tmp_path, shell("", command=["no-such-program"]))
        (info,) = await runtime.containers()
    assert refusal.value.reason == "RunContainerError"
    assert (info.state, info.exit_code, info.reason) == (ContainerState.EXITED, 128, "StartError")


@on_loop
async def test_a_container_without_a_command_is_told_so(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        with pytest.raises(RuntimeRefusal, match='container "main" has no command: the process runtime uses no image'):
            await start(runtime, tmp_path, shell("", command=[], image="nginx"))
        assert await runtime.containers() == []
    assert list((tmp_path / "runtime" / "containers").iterdir()) == []


@on_loop
async def test_stop_asks_first_and_kills_after_the_grace(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        polite = await start(
            runtime, tmp_path, shell("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done")
        )
        await written(runtime, polite, "up")
        await runtime.stop_container(polite, grace=20)
        stubborn = await start(
            runtime, tmp_path, shell("trap '' TERM; echo up; while :; do sleep 0.02; done", log_path="stubborn/0.log")
        )
        await written(runtime, stubborn, "up")
        await runtime.stop_container(stubborn, grace=0.1)
        await runtime.stop_container(stubborn, grace=0.1)
        first, second = await find(runtime, polite), await find(runtime, stubborn)
    assert (first.exit_code, first.reason) == (0, "Completed")
    assert (second.exit_code, second.reason) == (137, "Error")


@on_loop
async def test_nothing_of_a_container_outlives_it(tmp_path: Path) -> None:
    script = "setsid sleep 1000 & echo $!; (setsid sleep 1000 & echo $!); sleep 0.1"
    async with runtime_in(tmp_path) as runtime:
        _, text = await run(runtime, tmp_path, shell(script))
    pids = [int(line) for line in text.splitlines()]
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@on_loop
async def test_removing_a_sandbox_kills_and_forgets_its_containers_but_keeps_the_log(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("echo up; sleep 1000"))
        await written(runtime, container, "up")
        info = await find(runtime, container)
        await remove_all(runtime)
        assert (await runtime.containers(), await runtime.sandboxes()) == ([], [])
    assert Path(info.log_path).exists()
    assert list((tmp_path / "runtime" / "containers").iterdir()) == []


@pytest.mark.parametrize("namespace", ["mount", "user"])
@on_loop
async def test_mounts_appear_without_a_trace_on_the_node(tmp_path: Path, namespace: str) -> None:
    if not can_make(namespace):
        pytest.skip(f"the kernel lets this user make no {namespace} namespace")
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "file").write_text("hello")
    (tmp_path / "one").write_text("single")
    mounts = [
        BindMount(str(tmp_path / "volume"), "/drakit-test-data"),
        BindMount(str(tmp_path / "volume"), "/var/run/drakit-test/read", read_only=True),
        BindMount(str(tmp_path / "one"), "/etc/drakit-test/one.conf"),
    ]
    script = (
        "cat /drakit-test-data/file /etc/drakit-test/one.conf; echo; echo new > /drakit-test-data/new;"
        "cat /run/drakit-test/read/new; touch /run/drakit-test/read/x 2>/dev/null || echo refused; ls /usr/bin/env"
    )
    async with runtime_in(tmp_path, namespace=namespace) as runtime:
        info, text = await run(runtime, tmp_path, shell(script, mounts=mounts))
    assert text.splitlines() == ["hellosingle", "new", "refused", "/usr/bin/env"], info
    assert (tmp_path / "volume" / "new").read_text() == "new\n"
    assert not any(Path(path).exists() for path in ("/drakit-test-data", "/run/drakit-test", "/etc/drakit-test"))


@on_loop
async def test_a_mount_within_a_volume_is_made_in_the_volume(tmp_path: Path) -> None:
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
    (tmp_path / "inner" / "file").write_text("in\n")
    mounts = [
        BindMount(str(tmp_path / "inner"), "/drakit-outer/a/b"),
        BindMount(str(tmp_path / "outer"), "/drakit-outer"),
    ]
    async with runtime_in(tmp_path) as runtime:
        script = "cat /drakit-outer/a/b/file; echo kept > /drakit-outer/kept"
        _, text = await run(runtime, tmp_path, shell(script, mounts=mounts))
    assert text == "in\n"
    assert (tmp_path / "outer" / "kept").read_text() == "kept\n"


@on_loop
async def test_devices_are_applied_environment_mounts_nodes_and_hooks(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text('{"kind": "DeviceMetadata"}\n')
    metadata = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/vendor.com-metadata.json"
    hook = {"hookName": "createRuntime", "path": "/bin/sh", "args": ["sh", "-c", f"cat > {tmp_path}/state"]}
    edits = {
        "env": ["GPU=gpu-0"],
        "mounts": [{"hostPath": str(tmp_path / "metadata.json"), "containerPath": metadata, "options": ["ro", "bind"]}],
        "deviceNodes": [{"path": "/dev/drakit-gpu0", "hostPath": "/dev/null"}],
        "hooks": [hook],
    }
    write_cdi(tmp_path, [{"name": "gpu-0", "containerEdits": edits}])
    script = f"echo $GPU; cat {metadata}; test -c /dev/drakit-gpu0 && echo x > /dev/drakit-gpu0 && echo device"
    async with runtime_in(tmp_path) as runtime:
        config = shell(script, cdi_devices=["vendor.com/gpu=gpu-0"], env={"GPU": "overridden"})
        info, text = await run(runtime, tmp_path, config)
    assert text.splitlines() == ["gpu-0", '{"kind": "DeviceMetadata"}', "device"]
    assert info.id in (tmp_path / "state").read_text()


@on_loop
async def test_an_unknown_device_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        with pytest.raises(DeviceUnresolved, match=r'CDI device "vendor\.com/gpu=none": no spec file in'):
            await start(runtime, tmp_path, shell("true", cdi_devices=["vendor.com/gpu=none"]))
        assert await runtime.containers() == []


@on_loop
async def test_hooks_run_in_the_order_of_oci_each_in_its_namespace(tmp_path: Path) -> None:
    """The container's namespaces and mounts are made before the first hook; those of the node side run outside."""
    (tmp_path / "file").write_text("mounted")
    inside = "/drakit-hooks/file"
    hooks = []
    for stage in ("startContainer", "createContainer", "createRuntime", "prestart"):
        state = """pid=$(sed 's/.*"pid": *\\([0-9]*\\).*/\\1/')"""
        seen = f"$(readlink /proc/self/ns/mnt) $(readlink /proc/$pid/ns/mnt) $(cat {inside} 2> /dev/null)"
        script = f"{state}; echo {stage} {seen} >> {tmp_path}/order"
        hooks.append({"hookName": stage, "path": "/bin/sh", "args": ["sh", "-c", script]})
    mount = {"hostPath": str(tmp_path / "file"), "containerPath": inside, "options": ["ro", "bind"]}
    write_cdi(tmp_path, [{"name": "a", "containerEdits": {"hooks": hooks, "mounts": [mount]}}])
    async with process_runtime(tmp_path) as runtime:
        await run(runtime, tmp_path, shell("true", cdi_devices=["vendor.com/gpu=a"]))
        await remove_all(runtime)
    ran = [f"{line} ".split(" ")[:4] for line in (tmp_path / "order").read_text().splitlines()]
    assert [line[0] for line in ran] == ["prestart", "createRuntime", "createContainer", "startContainer"]
    node = str(Path("/proc/self/ns/mnt").readlink())
    assert [own == node for _, own, _, _ in ran] == [True, True, False, False]
    [container] = {of_container for _, _, of_container, _ in ran}
    assert container != node
    assert [line[3] == "mounted" for line in ran] == [False, False, True, True]


@on_loop
async def test_a_failing_hook_keeps_the_container_from_starting(tmp_path: Path) -> None:
    hook = {"hookName": "createRuntime", "path": "/bin/sh", "args": ["sh", "-c", "echo broken >&2; exit 4"]}
    write_cdi(tmp_path, [{"name": "a", "containerEdits": {"hooks": [hook]}}])
    async with runtime_in(tmp_path) as runtime:
        with pytest.raises(RuntimeRefusal, match="createRuntime hook /bin/sh exited with 4: broken"):
            await start(runtime, tmp_path, shell("true", cdi_devices=["vendor.com/gpu=a"]))


@on_loop
async def test_without_a_mount_namespace_needed_mounts_are_refused_and_others_left_out(tmp_path: Path) -> None:
    async with runtime_in(tmp_path, namespace="none") as runtime:
        with pytest.raises(RuntimeRefusal, match="mounts /data: the kernel lets this agent make no mount namespace"):
            await start(runtime, tmp_path, shell("true", mounts=[BindMount(str(tmp_path), "/data")]))
        _, text = await run(
            runtime, tmp_path, shell("echo ok", mounts=[BindMount("/etc/hosts", "/data", needed=False)])
        )
    assert text == "ok\n"


@on_loop
async def test_without_a_cgroup_memory_is_held_by_the_process_and_cpu_is_refused(tmp_path: Path) -> None:
    memory = ContainerLimits(memory_bytes=64 << 20)
    async with runtime_in(tmp_path) as runtime:
        info, text = await run(runtime, tmp_path, shell("ulimit -d", limits=memory))
        assert text.strip() == str((64 << 20) // 1024), info
        with pytest.raises(LimitsRefused, match="limits cannot be held: no cgroup may be made"):
            await start(runtime, tmp_path, shell("true", limits=ContainerLimits(cpu_quota=50_000)))


@on_loop
async def test_exec_runs_in_the_container_with_its_view_and_environment(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "file").write_text("seen\n")
    config = shell("sleep 1000", mounts=[BindMount(str(tmp_path / "volume"), "/drakit-v")], env={"A": "b"})
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, config)
        result = await runtime.exec_sync(container, ["sh", "-c", "cat /drakit-v/file; echo $A; hostname; exit 5"])
        missing = await runtime.exec_sync(container, ["no-such-program"])
    assert (result.exit_code, result.stdout) == (5, b"seen\nb\nweb\n")
    assert (missing.exit_code, missing.stderr) == (127, b'exec "no-such-program": No such file or directory\n')


@on_loop
async def test_an_exec_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("sleep 1000"))
        with pytest.raises(DeadlineExceeded):
            await runtime.exec_sync(container, ["sleep", "1000"], limit=0.3)


@on_loop
async def test_an_exec_that_leaves_a_daemon_with_its_output_still_keeps_to_its_limit(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("sleep 1000"))
        async with asyncio.timeout(120):
            with pytest.raises(DeadlineExceeded):
                await runtime.exec_sync(container, ["setsid", "sh", "-c", f"echo $$ > {pid}; exec sleep 1000"], limit=2)
    os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_shim_that_is_slow_to_let_go_of_its_output_is_not_waited_for_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    slow = ["sh", "-c", f"sleep 1000 & echo $! > {pid}; echo ok"]
    monkeypatch.setattr("drakit.nodeagent.runtimes.supervised.container.shim_argv", lambda *_: slow)
    try:
        assert asyncio.run(asyncio.wait_for(start_shim(tmp_path), 60)) == "ok"
        gc.collect()  # what is not closed warns, and warnings fail
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


@on_loop
async def test_exec_streams_both_ways(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("sleep 1000"))
        streams = await runtime.exec(container, ["cat"], stdin=True)
        await streams.write_stdin(b"hello")
        assert await streams.stdout.read() == b"hello"
        await streams.close_stdin()
        assert (await streams.stdout.read(), await streams.wait()) == (b"", 0)
        await streams.close()


@on_loop
async def test_exec_on_a_terminal_knows_its_size(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("sleep 1000"))
        streams = await runtime.exec(container, ["sh", "-c", "read line; stty size; test -t 0 && echo tty"], tty=True)
        await streams.resize(120, 40)
        await streams.write_stdin(b"go\n")
        text = b""
        while piece := await streams.stdout.read():
            text += piece
        assert await streams.wait() == 0
        await streams.close()
    assert text == b"go\r\n40 120\r\ntty\r\n"


@on_loop
async def test_execs_end_with_their_container(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("sleep 1000"))
        streams = await runtime.exec(container, ["sh", "-c", "echo up; sleep 1000"])
        assert await streams.stdout.read() == b"up\n"
        await runtime.stop_container(container, grace=5)
        async with asyncio.timeout(120):
            assert await streams.wait() == 137


@on_loop
async def test_attach_gives_what_comes_from_now_on_and_stdin(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        config = shell("read a; echo got $a; read b; echo got $b >&2; exit 6", stdin=True)
        container = await start(runtime, tmp_path, config)
        streams = await runtime.attach(container, stdin=True)
        await streams.write_stdin(b"one\n")
        first = await streams.stdout.read()
        await streams.write_stdin(b"two\n")
        second = await streams.stderr.read()
        code = await streams.wait()
        await streams.close()
    assert (first, second, code) == (b"got one\n", b"got two\n", 6)


@on_loop
async def test_stdin_ends_with_its_first_user_where_it_is_for_once(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("cat; echo over", stdin=True, stdin_once=True))
        streams = await runtime.attach(container, stdin=True)
        await streams.write_stdin(b"text\n")
        await streams.close()
        info = await end(runtime, container)
    assert info.exit_code == 0


@on_loop
async def test_a_container_with_a_terminal_has_one(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        _, text = await run(runtime, tmp_path, shell("test -t 1 && echo tty; echo err >&2", tty=True))
    assert text.replace("\r", "") == "tty\nerr\n"


@on_loop
async def test_a_rotated_log_goes_on_in_a_new_file(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        container = await start(runtime, tmp_path, shell("echo one; read a; echo two; sleep 1000", stdin=True))
        await written(runtime, container, "one")
        log = Path((await find(runtime, container)).log_path)
        log.rename(log.with_suffix(".old"))
        await runtime.reopen_log(container)
        streams = await runtime.attach(container, stdin=True)
        await streams.write_stdin(b"\n")
        await written(runtime, container, "two")
        await streams.close()
    assert "one" not in log.read_text()


@on_loop
async def test_long_lines_are_logged_in_pieces_and_none_is_lost(tmp_path: Path) -> None:
    async with runtime_in(tmp_path) as runtime:
        info, text = await run(runtime, tmp_path, shell("head -c 40000 /dev/zero | tr '\\0' x; echo; echo short"))
    tags = [line.split(" ", 3)[2] for line in Path(info.log_path).read_text().splitlines()]
    assert (tags[-2:], set(tags[:-2])) == (["F", "F"], {"P"})
    assert text == "x" * 40000 + "\nshort\n"


@on_loop
async def test_output_waits_for_an_attached_reader_that_is_slow(tmp_path: Path) -> None:
    size = 8 << 20
    async with runtime_in(tmp_path) as runtime:
        config = shell(f"read go; head -c {size} /dev/zero | tr '\\0' x; echo done >&2", stdin=True)
        container = await start(runtime, tmp_path, config)
        streams = await runtime.attach(container, stdin=True)
        await streams.write_stdin(b"go\n")
        log = Path((await find(runtime, container)).log_path)
        async with asyncio.timeout(120):
            while log.stat().st_size < 1 << 20:
                await asyncio.sleep(0.01)
        assert (await find(runtime, container)).state is ContainerState.RUNNING
        received = 0
        while piece := await streams.stdout.read():
            received += len(piece)
        assert (received, await streams.stderr.read(), await streams.wait()) == (size, b"done\n", 0)
        await streams.close()


@on_loop
async def test_port_forward_reaches_what_listens(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, runtime_in(tmp_path) as runtime:
        sandbox = await runtime.run_sandbox(SandboxConfig(pod=POD))
        stream = await runtime.port_forward(sandbox, server.sockets[0].getsockname()[1])
        await stream.write(b"hello")
        await stream.close_write()
        assert (await stream.read(), await stream.read()) == (b"HELLO", b"")
        await stream.close()


def test_it_runs_on_the_loop_of_a_server_too(tmp_path: Path) -> None:
    """uvloop lets descriptors through to the programs that it starts."""

    async def scene() -> tuple[ExecResult, ContainerInfo]:
        async with runtime_in(tmp_path) as runtime:
            container = await start(runtime, tmp_path, shell("sleep 1000"))
            result = await runtime.exec_sync(container, ["sh", "-c", "ls /proc/$$/fd; echo done"])
            await runtime.stop_container(container, grace=5)
            return result, await find(runtime, container)

    result, info = uvloop.run(scene())
    assert result.stdout.split() == [b"0", b"1", b"2", b"done"]
    assert info.exit_code == 143


@pytest.mark.parametrize(
    ("address", "is_refused"),
    [("127.0.0.1", False), ("::1", False), ("localhost", False), ("0.0.0.0", True), ("10.0.0.4", True), ("::", True)],
)
def test_it_does_not_start_for_a_server_that_others_reach(tmp_path: Path, address: str, is_refused: bool) -> None:
    async def enter(*, allow: bool) -> None:
        async with process_runtime(tmp_path, api_addresses=[address], allow_remote=allow, namespace="none"):
            pass

    asyncio.run(enter(allow=True))
    if not is_refused:
        asyncio.run(enter(allow=False))
        return
    with pytest.raises(RuntimeUnsuitable, match="the API server listens on"):
        asyncio.run(enter(allow=False))
