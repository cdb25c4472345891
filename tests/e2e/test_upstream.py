"""Parts of upstream Kubernetes on drakit's API server, and drakit's parts on an upstream one.

Each runs in its default configuration, so Go components speak protobuf.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.builders.etcd import etcd_cluster
from tests.e2e import upstream
from tests.e2e.processes import apiserver, controllers, following
from tests.e2e.upstream import kubectl, shown, wait_for
from tests.e2e.upstreamcluster import (
    NODE,
    OLD,
    OLD_CLUSTER,
    POD,
    nodes_of_pods,
    place_of,
    prepare,
    states_of_claims,
)
from tests.nodeagent.runtimes.criserver import CriServer

pytestmark = pytest.mark.timeout(600)


def is_ready(kubeconfig: Path) -> bool:
    conditions = shown(kubeconfig, "node", NODE).get("status", {}).get("conditions", [])
    return ("Ready", "True") in {(each["type"], each["status"]) for each in conditions}


def has_container(kubeconfig: Path) -> bool:
    statuses = shown(kubeconfig, "pod", "p").get("status", {}).get("containerStatuses", [])
    return any(each.get("containerID") for each in statuses)


@pytest.fixture
def drakit(tmp_path: Path) -> Iterator[Path]:
    upstream.binary("kubectl")
    with apiserver("--data-dir", str(tmp_path / "data")) as made:
        yield made.kubeconfig


def test_kube_scheduler_and_kube_controller_manager_run_on_drakits_server(drakit: Path, tmp_path: Path) -> None:
    with upstream.controller_manager(tmp_path, drakit), upstream.scheduler(tmp_path, drakit):
        prepare(drakit)
        wait_for("the account of pods", lambda: bool(shown(drakit, "serviceaccount", "default")))
        kubectl(drakit, "apply", "-f", "-", stdin=json.dumps(POD))
        kubectl(drakit, "create", "deployment", "web", "--image=nginx", "--replicas=2")
        kubectl(drakit, "create", "job", "once", "--image=busybox")
        wait_for("the pod with a claim is bound", lambda: place_of(drakit, "p") == NODE)
        assert states_of_claims(drakit) == [True]
        wait_for("all pods are bound", lambda: nodes_of_pods(drakit) == [NODE] * 4)
        kubectl(drakit, "create", "namespace", "gone")
        kubectl(drakit, "-n", "gone", "create", "configmap", "c", "--from-literal=a=b")
        kubectl(drakit, "delete", "namespace", "gone", "--wait=false")
        wait_for("the namespace is gone", lambda: not shown(drakit, "namespace", "gone"))


class KubeletCriServer(CriServer):
    """What a kubelet asks of a runtime, and the node agent does not: answers in bytes, as they are on the wire."""

    def add_methods(self, server: grpc.aio.Server) -> None:
        place = str(self.socket.parent).encode()
        used = b"\x08\x01" + _sized(2, _sized(1, place)) + _sized(3, b"\x08\x01") + _sized(4, b"\x08\x01")
        self._answer(server, "ImageService", ImageFsInfo=_sized(1, used) + _sized(2, used), ListImages=b"")
        nothing = dict.fromkeys(("UpdateRuntimeConfig", "ListContainerStats", "ListPodSandboxStats"), b"")
        # The cgroup driver is the second of its kinds: cgroupfs.
        self._answer(server, "RuntimeService", RuntimeConfig=_sized(1, b"\x08\x01"), **nothing)

    async def Status(self, request: Any, context: Any) -> Any:
        conditions = [_sized(1, _sized(1, name) + b"\x10\x01") for name in (b"RuntimeReady", b"NetworkReady")]
        told = await super().Status(request, context)
        told.MergeFromString(_sized(1, b"".join(conditions)))
        return told

    async def ImageStatus(self, request: Any, context: Any) -> Any:
        told = await super().ImageStatus(request, context)
        image = _sized(1, b"tool") + _sized(2, b"tool:latest") + b"\x20\x01"
        told.MergeFromString(_sized(1, image))
        return told

    def _answer(self, server: grpc.aio.Server, service: str, **answers: bytes) -> None:
        def handler(answer: bytes) -> Any:
            async def answered(request: bytes, context: Any) -> bytes:
                return answer

            return grpc.unary_unary_rpc_method_handler(answered)

        handlers = {name: handler(answer) for name, answer in answers.items()}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"runtime.v1.{service}", handlers),))


def _sized(number: int, value: bytes) -> bytes:
    """A field of a protobuf message that is shorter than 128 bytes."""
    return bytes((number << 3 | 2, len(value))) + value


@contextmanager
def cri(directory: Path) -> Iterator[Path]:
    """A container runtime that keeps what it is told, on a loop of its own."""
    loop, ready, ended = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    made: list[CriServer] = []

    async def serve() -> None:
        async with KubeletCriServer(directory) as server:
            made.append(server)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield Path(made[0].socket)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)


def test_a_kubelet_registers_with_drakits_server_and_starts_a_pod(drakit: Path, tmp_path: Path) -> None:
    upstream.binary("kubelet")
    with cri(tmp_path) as socket:
        config = tmp_path / "kubelet.yaml"
        config.write_text(json.dumps(kubelet_configuration(socket, tmp_path)))
        root = tmp_path / "kubelet-root"
        flags = (
            f"--config={config}", f"--kubeconfig={drakit}", f"--hostname-override={NODE}", f"--root-dir={root}"
        )  # fmt: skip
        with (
            unmounted(root),
            controllers(drakit, "--use-service-account-credentials"),
            upstream.running(tmp_path, "kubelet", *flags),
        ):
            wait_for("the node is registered", lambda: bool(shown(drakit, "node", NODE)))
            wait_for("it has a lease", lambda: bool(shown(drakit, "lease", NODE, "-n", "kube-node-lease")))
            wait_for("it has a CSINode", lambda: bool(shown(drakit, "csinode", NODE)))
            wait_for("the node is ready", lambda: is_ready(drakit))
            wait_for("the account of pods", lambda: bool(shown(drakit, "serviceaccount", "default")))
            container = {"name": "c", "image": "tool", "command": ["sleep", "600"]}
            pod = {**POD, "spec": {"nodeName": NODE, "containers": [container], "hostNetwork": True}}
            kubectl(drakit, "apply", "-f", "-", stdin=json.dumps(pod))
            wait_for("its container was started", lambda: has_container(drakit))
            kubectl(drakit, "delete", "pod", "p", "--wait=false", "--grace-period=1")
            wait_for("the pod is gone", lambda: not shown(drakit, "pod", "p"))


@contextmanager
def unmounted(root: Path) -> Iterator[None]:
    """A kubelet mounts its root directory on itself, and leaves it so."""
    try:
        yield
    finally:
        subprocess.run(["umount", "--recursive", str(root)], check=False, capture_output=True)


def kubelet_configuration(socket: Path, directory: Path) -> dict[str, Any]:
    return {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{socket}",
        "podLogsDir": str(directory / "pod-logs"),
        "address": "127.0.0.1",
        "port": upstream.free_port(),
        "healthzPort": 0,
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
    }


def test_drakits_scheduler_and_controllers_run_on_an_upstream_server(tmp_path: Path) -> None:
    upstream.binary("kube-apiserver")
    with etcd_cluster(tmp_path) as members, upstream.apiserver(tmp_path, members[0].client) as kubeconfig:
        parts = following("scheduler", "--kubeconfig", str(kubeconfig))
        with controllers(kubeconfig, "--use-service-account-credentials"), parts:
            prepare(kubeconfig)
            kubectl(kubeconfig, "apply", "-f", "-", stdin=json.dumps(POD))
            wait_for("the pod with a claim is bound", lambda: place_of(kubeconfig, "p") == NODE)
            assert states_of_claims(kubeconfig) == [True]
            kubectl(kubeconfig, "create", "deployment", "web", "--image=nginx")
            wait_for("its pod is bound", lambda: nodes_of_pods(kubeconfig, "-l", "app=web") == [NODE])
            kubectl(kubeconfig, "delete", "pod", "p", "--wait=false", "--grace-period=0", "--force")
            wait_for("the claim of the pod is gone", lambda: not shown(kubeconfig, "resourceclaims")["items"])


def test_drakits_scheduler_and_controllers_run_on_a_server_that_knows_only_the_first_beta(tmp_path: Path) -> None:
    upstream.binary("kube-apiserver")
    versions = "resource.k8s.io/v1=false,resource.k8s.io/v1beta2=false,resource.k8s.io/v1beta1=true"
    with (
        etcd_cluster(tmp_path) as members,
        upstream.apiserver(tmp_path, members[0].client, versions=versions) as kubeconfig,
        controllers(kubeconfig, "--use-service-account-credentials"),
        following("scheduler", "--kubeconfig", str(kubeconfig)),
    ):
        prepare(kubeconfig, OLD_CLUSTER)
        kubectl(kubeconfig, "apply", "-f", "-", stdin=json.dumps(POD))
        wait_for("the pod with a claim is bound", lambda: place_of(kubeconfig, "p") == NODE)
        (claim,) = shown(kubeconfig, "resourceclaims")["items"]
        assert (claim["apiVersion"], "allocation" in claim["status"]) == (OLD, True)
        kubectl(kubeconfig, "delete", "pod", "p", "--wait=false", "--grace-period=0", "--force")
        wait_for("the claim of the pod is gone", lambda: not shown(kubeconfig, "resourceclaims")["items"])


def test_drakits_scheduler_works_beside_kube_scheduler(tmp_path: Path) -> None:
    upstream.binary("kube-apiserver")
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": True, "resourceName": "drakit-scheduler"},
                "profiles": [{"schedulerName": "drakit"}],
            }
        )
    )
    with etcd_cluster(tmp_path) as members, upstream.apiserver(tmp_path, members[0].client) as kubeconfig:
        ours = following("scheduler", "--kubeconfig", str(kubeconfig), "--config", str(config))
        with upstream.scheduler(tmp_path, kubeconfig), ours:
            prepare(kubeconfig)
            for name, by in (("theirs", ""), ("ours", "drakit")):
                spec = {"containers": [{"name": "c", "image": "pause"}], **({"schedulerName": by} if by else {})}
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
                kubectl(kubeconfig, "apply", "-f", "-", stdin=json.dumps(pod))
            wait_for("both are bound", lambda: nodes_of_pods(kubeconfig) == [NODE, NODE])
            events = shown(kubeconfig, "events")["items"]
            told = {
                each["involvedObject"]["name"]: each.get("reportingComponent")
                or each.get("source", {}).get("component")
                for each in events
                if each["reason"] == "Scheduled"
            }
            assert told == {"theirs": "default-scheduler", "ours": "drakit"}
