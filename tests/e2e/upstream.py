"""Binaries of upstream Kubernetes, started on free ports of this machine; they end with whoever started them.

`DRAKIT_KUBERNETES_BIN` names the folder with kube-apiserver, kube-scheduler, kube-controller-manager, kubelet and
kubectl. Nothing of them is part of this repository.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FOLDER = os.environ.get("DRAKIT_KUBERNETES_BIN", "")
SECONDS = 180.0
TOKEN = "interop"
ALL_VERSIONS = "resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true"


def binary(name: str) -> str:
    """The program, or a skipped test that says what is missing."""
    if not FOLDER:
        pytest.skip("DRAKIT_KUBERNETES_BIN does not name a folder with the binaries of Kubernetes")
    found = Path(FOLDER) / name
    if not found.exists():
        pytest.skip(f"there is no {name} in DRAKIT_KUBERNETES_BIN")
    return str(found)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(directory: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program with a working directory of its own, in which its log is."""
    program, place = binary(name), directory / name
    place.mkdir(exist_ok=True)
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log, cwd=place)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def scheduler(directory: Path, kubeconfig: Path) -> Iterator[None]:
    with running(
        directory, "kube-scheduler", *_served(kubeconfig), "--leader-elect-lease-duration=15s"
    ):  # fmt: skip
        yield


@contextmanager
def controller_manager(directory: Path, kubeconfig: Path) -> Iterator[None]:
    """All controllers, each under its own account, with protobuf: the default configuration."""
    key = directory / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    flags = ("--use-service-account-credentials", f"--service-account-private-key-file={key}")
    with running(directory, "kube-controller-manager", *_served(kubeconfig), *flags):
        yield


def _served(kubeconfig: Path) -> list[str]:
    names = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return [*(f"--{name}={kubeconfig}" for name in names), f"--secure-port={free_port()}", "--bind-address=127.0.0.1"]


@contextmanager
def apiserver(directory: Path, etcd: str, *, versions: str = ALL_VERSIONS) -> Iterator[Path]:
    """A kube-apiserver that answers; the path of a kubeconfig that reaches it. `versions` is its runtime configuration.

    Without the newest version it is alive and serves, yet is never ready: it watches that version itself.
    """
    port, key, tokens = free_port(), directory / "sa.key", directory / "tokens.csv"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    tokens.write_text(f'{TOKEN},admin,u1,"system:masters"\n')
    flags = [
        f"--etcd-servers={etcd}", f"--secure-port={port}", "--bind-address=127.0.0.1", "--cert-dir=certificates",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}", f"--token-auth-file={tokens}", "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
        f"--runtime-config={versions}",
    ]  # fmt: skip
    kubeconfig = directory / "upstream.kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(port)))
    with running(directory, "kube-apiserver", *flags):
        check = "/readyz" if versions == ALL_VERSIONS else "/livez"
        wait_for("kube-apiserver answers", lambda: kubectl(kubeconfig, "get", "--raw", check, check=False) == "ok")
        yield kubeconfig


def _kubeconfig(port: int) -> dict[str, Any]:
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "a", "user": {"token": TOKEN}}],
        "contexts": [{"name": "k", "context": {"cluster": "k", "user": "a"}}],
        "current-context": "k",
    }


def kubectl(kubeconfig: Path, *arguments: str, stdin: str = "", check: bool = True) -> str:
    done = subprocess.run(
        [binary("kubectl"), "--kubeconfig", str(kubeconfig), *arguments],
        input=stdin, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if check:
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def shown(kubeconfig: Path, *arguments: str) -> Any:
    """An object or a list; nothing if it is not there."""
    text = kubectl(kubeconfig, "get", *arguments, "-o", "json", check=False)
    return json.loads(text) if text else {}


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until, f"waited in vain: {what}"
        time.sleep(0.5)
