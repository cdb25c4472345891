"""`drakit apiserver` itself: flags, files, restarts, sockets, and what it says when it cannot start."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.processes import ROOT, Running, apiserver, command

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


def ask(running: Running, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    """One request, with the identity of the kubeconfig unless a token is given."""
    user = yaml.safe_load(running.kubeconfig.read_text())["users"][0]["user"]
    host, _, port = running.url.rpartition("//")[2].rpartition(":")
    if running.url.startswith("https"):
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, int(port), context=trusting(running, identified=not token), timeout=20
        )
    else:
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
    token = token or user.get("token", "")
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else text
    finally:
        connection.close()


def trusting(running: Running, *, identified: bool) -> ssl.SSLContext:
    """Trust the CA of the data directory, and nobody else."""
    pki = running.kubeconfig.parent / "pki"
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    if identified:
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context


def test_data_certificates_and_tokens_outlive_a_restart(tmp_path: Path) -> None:
    body = {"metadata": {"name": "kept"}, "spec": {}}
    account = "/api/v1/namespaces/default/serviceaccounts"
    with apiserver("--data-dir", str(tmp_path)) as first:
        assert ask(first, "POST", CLASSES, body)[0] == 201
        assert ask(first, "POST", account, {"metadata": {"name": "robot"}})[0] == 201
        issued = ask(first, "POST", f"{account}/robot/token", {"spec": {}})[1]
        made = ask(first, "GET", f"{CLASSES}/kept")[1]
    authority = (tmp_path / "pki" / "ca.crt").read_bytes()
    with apiserver("--data-dir", str(tmp_path)) as second:
        assert ask(second, "GET", f"{CLASSES}/kept")[1] == made
        review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        code, who = ask(second, "POST", review, {}, token=issued["status"]["token"])
        assert code == 201
        assert who["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
    assert (tmp_path / "pki" / "ca.crt").read_bytes() == authority
    assert stat.S_IMODE((tmp_path / "admin.kubeconfig").stat().st_mode) == 0o600


def test_two_servers_do_not_share_a_file(tmp_path: Path) -> None:
    with apiserver("--data-dir", str(tmp_path)):
        done = subprocess.run(
            command("--port", "0", "--data-dir", str(tmp_path)), capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 3
        # It waits for the lock for a while, and says so; then it gives up.
        waiting, gave_up = done.stderr.splitlines()
        assert "is in use by another process: waiting up to 10 s" in waiting
        assert gave_up.startswith("error: ")
        assert gave_up.endswith("is locked: another process or store has it open")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            command("--ephemeral", "--port", port), capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == 3
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--data-dir"),
        (["--ephemeral", "--data-dir", "x"], "--ephemeral"),
        (["--ephemeral", "--feature-gates", "Nope=true"], "unrecognized feature gate: Nope"),
        (["--ephemeral", "--runtime-config", "example.com/v1=true"], "example.com/v1"),
        (["--ephemeral", "--authorization-mode", "Nope"], "Nope"),
        (["--ephemeral", "--disable-admission-plugins", "Nope"], "Nope"),
        (["--ephemeral", "--token-auth-file", "nowhere.csv"], "nowhere.csv"),
        (["--ephemeral", "--tls-cert-file", "a.crt"], "--tls-private-key-file"),
        (["--ephemeral", "--tls-cert-file", "a.crt", "--tls-private-key-file", "a.key"], "a.crt"),
        (["--ephemeral", "--client-ca-file", "nobody.crt"], "nobody.crt"),
        (["--ephemeral", "--client-ca-file", "README.md"], "README.md"),
        (["--ephemeral", "--port", "99999"], "65535"),
        (["--ephemeral", "--anonymous-auth", "perhaps"], "--anonymous-auth"),
        (["--ephemeral", "--kubeconfig", "README.md/x"], "--kubeconfig: "),
        (["--data-dir", "README.md"], "--data-dir: "),
        (["--ephemeral", "--kubelet-client-key", "a.key"], "--kubelet-client-certificate and --kubelet-client-key go"),
        (["--ephemeral", "--kubelet-certificate-authority", "none.crt"], "nodes cannot be reached with none.crt"),
    ],
)
def test_a_wrong_flag_is_a_message_and_no_traceback(arguments: list[str], said: str) -> None:
    done = attempt(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def attempt(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Start a server that cannot start."""
    started = command("--port", "0", *arguments)
    return subprocess.run(started, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)


@pytest.mark.parametrize("name", ["service-account.key", "pki/ca.crt", "pki/ca.key", "drakit.db"])
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    with apiserver("--data-dir", str(tmp_path)):
        pass
    damaged = tmp_path / name
    damaged.write_text("nothing of the kind\n" * 100)
    done = attempt("--data-dir", str(tmp_path))
    assert done.returncode == 2
    assert str(damaged) in done.stderr
    assert "Traceback" not in done.stderr
    assert damaged.read_text().startswith("nothing of the kind")


def test_a_signal_ends_watches_in_good_order_and_leaves_no_keys_behind() -> None:
    with apiserver("--ephemeral", "--insecure") as running:
        host, _, port = running.url.rpartition("//")[2].rpartition(":")
        token = yaml.safe_load(running.kubeconfig.read_text())["users"][0]["user"]["token"]
        with socket.create_connection((host, int(port)), timeout=20) as watch:
            watch.sendall(f"GET {CLASSES}?watch=1 HTTP/1.1\r\nauthorization: Bearer {token}\r\n\r\n".encode())
            assert watch.recv(12) == b"HTTP/1.1 200"
            os.kill(running.pid, signal.SIGTERM)
            rest = b"".join(iter(lambda: watch.recv(4096), b""))
        # The watch ends in good order; a request that would be on its way is told that it was not handled.
        _, end, after = rest.partition(b"\r\n\r\n0\r\n\r\n")
        assert end
        assert after.startswith(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n")
    assert not running.kubeconfig.parent.exists()


def test_a_unix_socket_needs_no_certificate_and_lets_its_owner_in(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    with apiserver("--ephemeral", "--unix-socket", str(path)) as running:
        assert running.url == f"unix://{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answer.endswith(b"\r\n\r\nok")
        second = attempt("--ephemeral", "--unix-socket", str(path))
        assert second.returncode == 3
        assert f"cannot listen on {path}" in second.stderr
    assert not path.exists()


def test_a_socket_that_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "api.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with apiserver("--ephemeral", "--unix-socket", str(path)) as running:
        assert running.url == f"unix://{path}"


def test_nobody_is_let_in_without_credentials_when_the_flag_says_so() -> None:
    with apiserver("--ephemeral", "--insecure", "--anonymous-auth=false") as running:
        host, _, port = running.url.rpartition("//")[2].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=20)
        connection.request("GET", "/api")
        assert connection.getresponse().status == 401
        connection.close()
        assert ask(running, "GET", "/api")[0] == 200


def test_a_server_for_everybody_is_trusted_under_the_name_of_its_machine(tmp_path: Path) -> None:
    with apiserver("--data-dir", str(tmp_path), "--bind-address", "0.0.0.0") as running:
        port = int(running.url.rpartition(":")[2])
        context = trusting(running, identified=False)
        with (
            socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname=socket.gethostname()) as secured,
        ):
            assert secured.version() in ("TLSv1.2", "TLSv1.3")


def test_a_certificate_of_another_authority_is_none(tmp_path: Path) -> None:
    with apiserver("--data-dir", str(tmp_path / "a")) as first, apiserver("--data-dir", str(tmp_path / "b")) as second:
        context = trusting(first, identified=False)
        context.load_cert_chain(tmp_path / "b" / "pki" / "admin.crt", tmp_path / "b" / "pki" / "admin.key")
        host, _, port = first.url.rpartition("//")[2].rpartition(":")
        connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            exchange(connection)
        connection.close()
        assert ask(second, "GET", "/api")[0] == 200


def exchange(connection: http.client.HTTPConnection) -> None:
    """In TLS 1.3 a client learns that it was refused only when it reads."""
    connection.request("GET", "/api")
    connection.getresponse()


def test_a_thousand_idle_watches_leave_the_server_at_rest(tmp_path: Path) -> None:
    with apiserver("--data-dir", str(tmp_path), "--insecure") as running:
        port = int(running.url.rpartition(":")[2])
        token = yaml.safe_load(running.kubeconfig.read_text())["users"][0]["user"]["token"]
        request = f"GET {CLASSES}?watch=1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n".encode()
        watches = [socket.create_connection(("127.0.0.1", port)) for _ in range(1000)]
        try:
            for each in watches:
                each.sendall(request)
            for each in watches:
                assert each.recv(12) == b"HTTP/1.1 200"
            before = processor_seconds(running.pid)
            for _ in range(20):
                assert ask(running, "GET", "/healthz")[0] == 200
            assert processor_seconds(running.pid) - before < 1.0
        finally:
            for each in watches:
                each.close()
        assert ask(running, "GET", "/healthz")[0] == 200


def processor_seconds(pid: int) -> float:
    """What a process has used so far, from the table that Linux keeps."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
