"""exec, attach and port-forward through the API server: a connection joined with the node's, byte for byte."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from drakit.apiserver.auth.audit import AuditLog
from drakit.nodeagent.server.spdy import frames
from tests.apiserver.admission.hooks import listening, webhook
from tests.apiserver.admission.objects import binding, policy
from tests.apiserver.nodes.clusters import POD_PATH, Cluster, a_cluster, create_pod
from tests.client.servers import on_loop
from tests.nodeagent.server.hosts import came_true, gathered, python, settled
from tests.nodeagent.server.portforward import TUNNEL, Tunnel, a_service, echo, greet
from tests.nodeagent.server.spdyclient import SpdyClient

V5 = "v5.channel.k8s.io"


def exec_path(*command: str, **options: str) -> str:
    return f"{POD_PATH}/exec?" + urlencode([*options.items(), *(("command", word) for word in command)])


@asynccontextmanager
async def connected(
    cluster: Cluster, path: str, *protocols: str, user: str = "admin"
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with cluster.session(user) as session, session.ws_connect(path, protocols=protocols or (V5,)) as socket:
        yield socket


async def refusal(cluster: Cluster, path: str, user: str = "admin") -> tuple[int, str]:
    headers = {
        "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-protocol": V5,
    }  # fmt: skip
    async with cluster.session(user) as session, session.get(path, headers=headers) as response:
        return response.status, (await response.json())["message"]


@on_loop
async def test_a_command_runs_with_its_streams_and_its_exit_code(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        path = exec_path("sh", "-c", "cat; echo err >&2; exit 3", stdin="true", stdout="true", stderr="true")
        async with connected(cluster, path) as socket:
            assert socket.protocol == V5
            await socket.send_bytes(b"\x00typed")
            await socket.send_bytes(b"\xff\x00")
            channels = await gathered(socket)
    assert (channels[1], channels[2]) == (b"typed", b"err\n")
    assert json.loads(channels[3])["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


@on_loop
async def test_a_client_of_v4_is_served_too_and_by_post(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster, cluster.session() as session:
        path = exec_path("echo", "hello", stdout="true")
        async with session.ws_connect(path, protocols=("v4.channel.k8s.io",), method="POST") as socket:
            assert socket.protocol == "v4.channel.k8s.io"
            channels = await gathered(socket)
    assert channels[1] == b"hello\n"


@on_loop
async def test_attach_reaches_the_container(tmp_path: Path) -> None:
    path = f"{POD_PATH}/attach?stdin=true&stdout=true"
    async with a_cluster(tmp_path) as cluster, connected(cluster, path) as socket:
        await socket.send_bytes(b"\x00hello")
        assert await socket.receive_bytes() == b"\x01hello"


@on_loop
async def test_a_port_is_forwarded_through_a_tunnel_of_spdy(tmp_path: Path) -> None:
    path = f"{POD_PATH}/portforward"
    async with a_cluster(tmp_path) as cluster, a_service(echo) as port, connected(cluster, path, TUNNEL) as socket:
        assert socket.protocol == TUNNEL
        client = Tunnel(socket)
        data, errors = await client.connect(port)
        await client.send(frames.data_frame(data, b"ask", fin=True))
        assert await client.until_finished(data, errors) == {data: b"got ask", errors: b""}


@on_loop
async def test_a_port_is_forwarded_by_the_classic_channels(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster, a_service(greet) as port:
        path = f"{POD_PATH}/portforward?ports={port}"
        async with connected(cluster, path, "v4.channel.k8s.io") as socket:
            messages = [await socket.receive_bytes() for _ in range(3)]
    assert messages[2] == b"\x00hello"


@on_loop
async def test_huge_output_waits_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    size = 30_000_000
    command = python(f"import os\nfor _ in range({size // 100_000}): os.write(1, b'x' * 100_000)")
    async with a_cluster(tmp_path) as cluster, connected(cluster, exec_path(*command, stdout="true")) as socket:
        await came_true(lambda: bool(cluster.node.machine.started))
        output = cluster.node.machine.started[0].stdout
        assert 0 < await settled(lambda: output.bytes) < size
        channels = await gathered(socket)
    assert len(channels[1]) == size


@on_loop
async def test_a_client_that_goes_takes_its_command_with_it(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        async with connected(cluster, exec_path("sleep", "600", stdout="true")):
            await came_true(lambda: bool(cluster.node.machine.started))
            assert _open_streams(cluster) == 1
        assert await asyncio.wait_for(cluster.node.machine.started[0].wait(), 10) == -9
        await came_true(lambda: _open_streams(cluster) == 0)


def _open_streams(cluster: Cluster) -> float | None:
    labels = {"group": "", "version": "v1", "resource": "pods/exec"}
    return cluster.server.registry.get_sample_value("apiserver_longrunning_requests", labels)


@on_loop
async def test_a_node_that_dies_in_the_middle_ends_the_connection(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster, cluster.session() as session:

        async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            key = head.partition("sec-websocket-key: ")[2].partition("\r\n")[0]
            lines = [
                "HTTP/1.1 101 Switching Protocols",
                "Upgrade: websocket",
                "Connection: Upgrade",
                _accept(key),
                "",
                "",
            ]
            writer.write("\r\n".join(lines).encode() + b"\x82\x03\x01hi")
            await writer.drain()
            writer.transport.abort()

        server = await asyncio.start_server(die, "127.0.0.1", 0, ssl=cluster.node.certificates().context())
        async with server:
            await cluster.move_node(server.sockets[0].getsockname()[1])
            async with session.ws_connect(exec_path("ls", stdout="true")) as socket:
                assert await socket.receive_bytes() == b"\x01hi"  # it came together with the head
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSED
            assert socket.close_code == 1006


def _accept(key: str) -> str:
    digest = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    return f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}"


@on_loop
async def test_a_client_that_goes_before_the_node_has_answered_is_not_waited_for(tmp_path: Path) -> None:
    asked, gone, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hesitate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await gone.wait()
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        await reader.read()
        writer.close()
        ended.set()

    async with a_cluster(tmp_path) as cluster:
        server = await asyncio.start_server(hesitate, "127.0.0.1", 0, ssl=cluster.node.certificates().context())
        async with server:
            await cluster.move_node(server.sockets[0].getsockname()[1])
            port, context = int(cluster.url.rpartition(":")[2]), cluster.context("admin", "system:masters")
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            head = f"GET {exec_path('ls', stdout='1')} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
            writer.write(f"{head}Upgrade: websocket\r\n\r\n".encode())
            await asked.wait()
            writer.transport.abort()
            await asyncio.sleep(0.05)  # the server has noticed by now, or will soon
            gone.set()
            await asyncio.wait_for(ended.wait(), 20)
        await came_true(lambda: _open_streams(cluster) == 0)


@on_loop
async def test_a_server_that_stops_ends_connections_at_once(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        async with a_cluster(tmp_path) as cluster:
            session = aiohttp.ClientSession(
                cluster.url, connector=aiohttp.TCPConnector(ssl=cluster.context("admin", "system:masters"))
            )
            socket = await session.ws_connect(exec_path("sleep", "600", stdout="true"), protocols=(V5,))
            await came_true(lambda: bool(cluster.node.machine.started))
        assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE)
        assert await cluster.node.machine.started[0].wait() == -9
        await session.close()


@on_loop
async def test_who_may_only_get_does_not_exec_over_a_websocket(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await cluster.let("peeker", ["get"], "pods/exec", "pods/attach", "pods/portforward")
        for path in (exec_path("ls", stdout="true"), f"{POD_PATH}/attach?stdout=true", f"{POD_PATH}/portforward"):
            code, words = await refusal(cluster, path, "peeker")
            subresource = path.removeprefix(POD_PATH + "/").partition("?")[0]
            assert code == 403
            assert f'User "peeker" cannot create resource "pods/{subresource}"' in words
        assert cluster.node.machine.started == []


@on_loop
async def test_who_may_get_and_create_execs(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await cluster.let("operator", ["get", "create"], "pods/exec")
        async with connected(cluster, exec_path("echo", "hi", stdout="true"), user="operator") as socket:
            assert (await gathered(socket))[1] == b"hi\n"
        code, words = await refusal(cluster, f"{POD_PATH}/portforward", "operator")
        assert (code, "pods/portforward" in words) == (403, True)


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("/api/v1/namespaces/default/pods/nobody/exec?stdout=1&command=ls", 404, 'pods "nobody" not found'),
        (f"{POD_PATH}/exec?container=side&stdout=1&command=ls", 400, "container side is not valid for pod web"),
        (f"{POD_PATH}/exec?command=ls", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        (f"{POD_PATH}/portforward?ports=http", 400, 'unable to parse "http" as a port'),
    ],
)
@on_loop
async def test_what_cannot_be_reached_is_told(tmp_path: Path, path: str, code: int, words: str) -> None:
    async with a_cluster(tmp_path) as cluster:
        assert await refusal(cluster, path) == (code, words)


@on_loop
async def test_a_pod_that_is_not_bound_or_does_not_run_is_told(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        await create_pod(cluster.client, "pending")
        path = "/api/v1/namespaces/default/pods/pending/exec?stdout=1&command=ls"
        assert await refusal(cluster, path) == (400, "pod pending does not have a host assigned")
        cluster.node.machine.list.clear()
        answer = 'Internal error occurred: container not found ("main")'
        assert await refusal(cluster, exec_path("ls", stdout="1")) == (500, answer)
        await cluster.move_node(1)
        code, words = await refusal(cluster, exec_path("ls", stdout="1"))
        assert (code, 'error dialing backend: node "node-a" at 127.0.0.1:1' in words) == (500, True)


@on_loop
async def test_without_an_upgrade_there_is_no_command(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        assert await cluster.message(exec_path("ls", stdout="1")) == (400, "Upgrade request required")


@on_loop
async def test_a_request_for_another_protocol_is_refused_and_the_connection_stays_good(tmp_path: Path) -> None:
    headers = {"connection": "Upgrade", "upgrade": "h2c"}
    async with a_cluster(tmp_path) as cluster, cluster.session() as session:
        async with session.post(exec_path("ls", stdout="1"), headers=headers) as response:
            answer = await response.json()
        assert (answer["code"], answer["reason"]) == (400, "BadRequest")
        assert "go over WebSocket or SPDY/3.1" in answer["message"]
        async with session.get(f"{POD_PATH}/log") as response:
            assert response.status == 200


@on_loop
async def test_a_client_of_spdy_is_joined_with_the_node_too(tmp_path: Path) -> None:
    async with a_cluster(tmp_path) as cluster:
        port = int(cluster.url.rpartition(":")[2])
        context = cluster.context("admin", "system:masters")
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        lines = [f"POST {exec_path('echo', 'hi', stdout='true')} HTTP/1.1", "Host: a", "Connection: Upgrade"]
        versions = ("v4.channel.k8s.io", "v3.channel.k8s.io")
        lines += ["Upgrade: SPDY/3.1", *(f"X-Stream-Protocol-Version: {each}" for each in versions)]
        writer.write("\r\n".join([*lines, "Content-Length: 0", "", ""]).encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert head.startswith("http/1.1 101")
        assert "x-stream-protocol-version: v4.channel.k8s.io\r\n" in head
        client = SpdyClient(reader, writer, head)
        numbers = await client.streams("error", "stdout")
        got, _ = await client.everything()
        writer.close()
    assert got[numbers["stdout"]] == b"hi\n"
    assert json.loads(got[numbers["error"]])["status"] == "Success"


@on_loop
async def test_the_credentials_of_the_client_do_not_reach_the_node(tmp_path: Path) -> None:
    heads: list[str] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    async with a_cluster(tmp_path) as cluster, cluster.session() as session:
        server = await asyncio.start_server(note, "127.0.0.1", 0, ssl=cluster.node.certificates().context())
        async with server:
            await cluster.move_node(server.sockets[0].getsockname()[1])
            headers = {"cookie": "secret=1", "x-forwarded-for": "1.2.3.4", "impersonate-user": "someone"}
            headers["impersonate-group"] = "system:masters"
            protocols = ("base64url.bearer.authorization.k8s.io.c2VjcmV0", V5)
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(exec_path("ls", stdout="1"), protocols=protocols, headers=headers)
    (head,) = heads
    assert f"sec-websocket-protocol: {V5}\r\n" in head
    assert not any(word in head.lower() for word in ("secret", "cookie", "authorization", "forwarded", "impersonate"))


@on_loop
async def test_a_policy_has_a_say_about_commands(tmp_path: Path) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}
    shown = {"expression": "object.command[0] != 'rm'", "message": "nothing is removed here"}
    made = policy("no-rm", shown, matchConstraints={"resourceRules": [rule]})
    async with a_cluster(tmp_path) as cluster:
        for document in (made, binding("no-rm", "no-rm")):
            await cluster.client.create(document)
        code, words = await refusal(cluster, exec_path("rm", "all", stdout="true"))
        assert code == 422
        assert "nothing is removed here" in words
        assert cluster.node.machine.started == []
        async with connected(cluster, exec_path("echo", "hi", stdout="true")) as socket:
            assert (await gathered(socket))[1] == b"hi\n"


@on_loop
async def test_a_webhook_sees_the_options_of_a_connection(tmp_path: Path) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/*"]}
    async with listening(lambda _: {"allowed": False, "status": {"message": "not today"}}) as hook:
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "hooks"},
            "webhooks": [webhook(hook.url, rules=[rule])],
        }
        async with a_cluster(tmp_path) as cluster:
            await cluster.client.create(configuration)
            _, words = await refusal(cluster, f"{POD_PATH}/portforward?ports=80&ports=81")
    assert "not today" in words
    (asked,) = hook.requests
    assert asked["kind"] == {"group": "", "version": "v1", "kind": "PodPortForwardOptions"}
    assert (asked["operation"], asked["subResource"], asked["name"]) == ("CONNECT", "portforward", "web")
    assert asked["object"] == {"kind": "PodPortForwardOptions", "apiVersion": "v1", "ports": [80, 81]}
    assert "options" not in asked


@on_loop
async def test_an_upgrade_is_audited_when_it_begins(tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.log") as audit:
        path = exec_path("true", stdout="true")
        async with a_cluster(tmp_path, audit=audit) as cluster, connected(cluster, path) as socket:
            await gathered(socket)
    lines: list[dict[str, Any]] = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    (event,) = [line for line in lines if line.get("objectRef", {}).get("subresource") == "exec"]
    assert (event["stage"], event["verb"], event["responseStatus"]) == ("ResponseStarted", "get", {"code": 101})
    assert event["user"]["username"] == "admin"
