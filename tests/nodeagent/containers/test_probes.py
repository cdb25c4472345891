"""Probes: what is asked, when, and what follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from drakit.base.clock import FakeClock, RealClock
from drakit.nodeagent.containers.failures import HandlerBroken, HandlerFailed
from drakit.nodeagent.containers.handlers import HandlerRunner, HandlerTarget
from drakit.nodeagent.containers.probes import ContainerProbes
from drakit.nodeagent.runtimes.contract import ExecResult
from drakit.nodeagent.runtimes.simulated import SimulatedRuntime
from tests.nodeagent.containers.pods import container

EXEC = {"exec": {"command": ["check"]}}


class Answering(SimulatedRuntime):
    """Commands end with the code that the test sets; None: they hang."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock=clock)
        self.code: int | None = 0
        self.times: list[float] = []
        self._now = clock.monotonic

    async def exec_sync(self, *_: Any, **__: Any) -> ExecResult:
        self.times.append(self._now())
        if self.code is None:
            await asyncio.Event().wait()
        return ExecResult(self.code or 0, b"", b"no luck" if self.code else b"")


class Scene:
    probes: ContainerProbes

    def __init__(self, clock: FakeClock, runtime: Answering) -> None:
        self.clock = clock
        self.runtime = runtime
        self.events: list[tuple[str, str]] = []
        self.changes = 0

    def happened(self, reason: str, message: str) -> None:
        self.events.append((reason, message))

    def changed(self) -> None:
        self.changes += 1

    def is_ready(self) -> bool:
        return self.probes.ready

    def has_failed(self) -> bool:
        return self.probes.failed is not None


def play(subject: dict[str, Any], scene: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        clock = FakeClock()
        it = Scene(clock, Answering(clock))
        async with aiohttp.ClientSession() as session:
            it.probes = ContainerProbes(
                HandlerTarget("id", subject, "127.0.0.1"),
                runner=HandlerRunner(it.runtime, session, clock=clock),
                clock=clock,
                on_change=it.changed,
                on_event=it.happened,
            )
            async with it.probes:
                await scene(it)

    asyncio.run(whole())


def test_without_probes_a_container_is_started_and_ready() -> None:
    async def scene(it: Scene) -> None:
        assert (it.probes.started, it.probes.ready, it.probes.failed) == (True, True, None)

    play(container(), scene)


def test_readiness_starts_as_no_and_follows_the_answers() -> None:
    probe = EXEC | {"initialDelaySeconds": 5, "periodSeconds": 10, "failureThreshold": 2, "successThreshold": 1}

    async def scene(it: Scene) -> None:
        assert not it.is_ready()
        await it.clock.run_for(4)
        assert it.runtime.times == []
        await it.clock.run_for(1)
        assert (it.probes.ready, it.changes) == (True, 1)
        it.runtime.code = 1
        await it.clock.run_for(10)
        assert it.is_ready()  # once is not enough
        await it.clock.run_for(10)
        assert (it.probes.ready, it.probes.failed) == (False, None)
        it.runtime.code = 0
        await it.clock.run_for(10)
        assert (it.probes.ready, it.changes, it.runtime.times) == (True, 3, [5, 15, 25, 35])
        assert it.events == [("Unhealthy", "Readiness probe failed: no luck")] * 2

    play(container(readinessProbe=probe), scene)


def test_several_successes_may_be_asked_for() -> None:
    async def scene(it: Scene) -> None:
        await it.clock.run_for(10)
        assert not it.is_ready()
        await it.clock.run_for(10)
        assert it.is_ready()

    play(container(readinessProbe=EXEC | {"periodSeconds": 10, "successThreshold": 3}), scene)


def test_a_failed_liveness_probe_ends_the_container_and_the_asking() -> None:
    probe = EXEC | {"periodSeconds": 1, "failureThreshold": 3, "terminationGracePeriodSeconds": 7}

    async def scene(it: Scene) -> None:
        it.runtime.code = 1
        await it.clock.run_for(1)
        assert not it.has_failed()
        await it.clock.run_for(1)
        assert it.probes.failed is not None
        assert it.probes.failed.message == "Container main failed liveness probe, will be restarted"
        assert (it.probes.failed.grace, it.probes.ready, it.changes) == (7, False, 1)
        await it.clock.run_for(60)
        assert len(it.runtime.times) == 3

    play(container(livenessProbe=probe), scene)


def test_one_success_starts_the_count_of_failures_over() -> None:
    async def scene(it: Scene) -> None:
        await it.clock.run_for(0.5)
        for code in (1, 1, 0, 1, 1, 0):
            it.runtime.code = code
            await it.clock.run_for(1)
        assert not it.has_failed()

    play(container(livenessProbe=EXEC | {"periodSeconds": 1, "failureThreshold": 3}), scene)


def test_the_others_wait_for_startup() -> None:
    subject = container(
        startupProbe=EXEC | {"periodSeconds": 10, "failureThreshold": 5},
        readinessProbe=EXEC | {"periodSeconds": 10},
        livenessProbe=EXEC | {"periodSeconds": 10, "failureThreshold": 1},
    )

    async def scene(it: Scene) -> None:
        it.runtime.code = 1
        await it.clock.run_for(25)
        assert (it.probes.started, it.probes.ready, it.probes.failed) == (False, False, None)
        it.runtime.code = 0
        await it.clock.run_for(5)
        assert (it.probes.started, it.probes.ready) == (True, True)
        assert it.runtime.times == [0, 10, 20, 30, 30, 30]

    play(subject, scene)


def test_a_failed_startup_probe_ends_the_container() -> None:
    async def scene(it: Scene) -> None:
        it.runtime.code = 1
        await it.clock.run_for(20)
        assert it.probes.failed is not None
        assert it.probes.failed.message == "Container main failed startup probe, will be restarted"

    play(container(startupProbe=EXEC | {"periodSeconds": 10, "failureThreshold": 3}), scene)


def test_a_command_that_hangs_counts_as_failed_after_its_time() -> None:
    async def scene(it: Scene) -> None:
        it.runtime.code = None
        await it.clock.run_for(2)
        assert it.events == [("Unhealthy", 'Liveness probe failed: command "check" timed out after 2s')]
        assert it.probes.failed is not None

    play(container(livenessProbe=EXEC | {"timeoutSeconds": 2, "failureThreshold": 1}), scene)


def test_a_probe_that_cannot_be_made_tells_nothing_about_the_container() -> None:
    async def scene(it: Scene) -> None:
        await it.clock.run_for(100)
        assert not it.has_failed()
        message = "Liveness probe errored and resulted in unknown state: couldn't find port: 'web' in container 'main'"
        assert it.events[0] == ("Unhealthy", message)

    play(container(livenessProbe={"tcpSocket": {"port": "web"}, "failureThreshold": 1}), scene)


@asynccontextmanager
async def web_server() -> AsyncIterator[int]:
    async def answer(request: web.Request) -> web.Response:
        assert request.headers["User-Agent"] == "kube-probe/1.36"
        if request.path == "/slow":
            await asyncio.sleep(5)
        return web.Response(status=int(request.headers.get("X-Answer", "200")), text="hello")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def ask(handler: dict[str, Any], *, seconds: float = 10, **changes: Any) -> str:
    clock = RealClock()
    async with aiohttp.ClientSession() as session:
        runner = HandlerRunner(SimulatedRuntime(clock=clock), session, clock=clock)
        return await runner.run(handler, HandlerTarget("id", container(**changes), "127.0.0.1"), seconds=seconds)


def test_a_page_is_asked_for_as_the_probe_says() -> None:
    async def scene() -> None:
        async with web_server() as port:
            ports = [{"name": "web", "containerPort": port}]
            assert await ask({"httpGet": {"path": "/ok", "port": "web"}}, ports=ports) == "hello"
            headers = [{"name": "X-Answer", "value": "503"}]
            with pytest.raises(HandlerFailed, match="HTTP probe failed with statuscode: 503"):
                await ask({"httpGet": {"port": port, "httpHeaders": headers}})
            with pytest.raises(
                HandlerFailed, match=rf'Get "http://127\.0\.0\.1:{port}/slow": context deadline exceeded'
            ):
                await ask({"httpGet": {"path": "slow", "port": port}}, seconds=0.2)
            assert await ask({"tcpSocket": {"port": port}}) == ""

    asyncio.run(scene())


def test_a_pod_on_the_nodes_network_is_asked_on_this_machine() -> None:
    assert HandlerTarget("id", container(), "").host == "127.0.0.1"
    assert HandlerTarget("id", container(), "10.1.0.7").host == "10.1.0.7"


def test_nobody_listening_is_told_as_a_kubelet_does() -> None:
    async def scene() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        refused = rf"dial tcp 127\.0\.0\.1:{port}: connect: connection refused"
        with pytest.raises(HandlerFailed, match=refused):
            await ask({"tcpSocket": {"port": port}})
        with pytest.raises(HandlerFailed, match=rf'Get "http://127\.0\.0\.1:{port}/": {refused}'):
            await ask({"httpGet": {"port": port}})

    asyncio.run(scene())


def test_a_grpc_health_service_is_asked() -> None:
    statuses = {b"": b"\x08\x01", b"\x0a\x02db": b"\x08\x02"}

    async def check(request: bytes, context: Any) -> bytes:
        return statuses[request]

    async def scene() -> None:
        server = grpc.aio.server()
        handlers: dict[str, Any] = {"Check": grpc.unary_unary_rpc_method_handler(check)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        assert await ask({"grpc": {"port": port}}) == ""
        with pytest.raises(HandlerFailed, match=r'service unhealthy \(responded with "NOT_SERVING"\)'):
            await ask({"grpc": {"port": port, "service": "db"}})
        await server.stop(0)
        with pytest.raises(HandlerFailed, match="error: failed to connect service"):
            await ask({"grpc": {"port": port}})

    asyncio.run(scene())


def test_a_probe_without_a_handler_is_broken() -> None:
    with pytest.raises(HandlerBroken, match="missing probe handler"):
        asyncio.run(ask({}))
