"""From a Pod document to a ContainerConfig."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from drakit.nodeagent.containers.config import ContainerSettings, container_config, log_directory
from drakit.nodeagent.containers.documents import identity
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from drakit.nodeagent.runtimes.contract import BindMount, ContainerConfig, ContainerRole, RuntimeRefusal
from tests.nodeagent.containers.pods import Objects, container, stored_pod


def config(base: Path, whole: dict[str, Any], subject: dict[str, Any], **changes: Any) -> ContainerConfig:
    settings = ContainerSettings(node=NodeFacts(), volumes={"v": base / "v"}, pod_directory=base)
    return asyncio.run(container_config(whole, subject, settings=settings, objects=Objects(), **changes))


def test_everything_of_a_container_arrives(tmp_path: Path) -> None:
    subject = container(
        command=["run", "$(MODE)"],
        args=["--pod=$(POD)", "$$(MODE)"],
        env=[
            {"name": "MODE", "value": "fast"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        workingDir="/work",
        tty=True,
        stdin=True,
        volumeMounts=[{"name": "v", "mountPath": "/data"}],
        securityContext={"runAsUser": 7, "readOnlyRootFilesystem": True},
        resources={"limits": {"cpu": "1"}},
        lifecycle={"stopSignal": "SIGUSR1"},
    )
    whole = stored_pod(subject, securityContext={"runAsUser": 5, "runAsGroup": 6})
    found = config(tmp_path, whole, subject, cdi_devices=["v/c=a"], attempt=2)
    assert (found.pod, found.name, found.attempt, found.role) == (identity(whole), "main", 2, ContainerRole.MAIN)
    assert (found.command, found.args, found.working_dir) == (["run", "fast"], ["--pod=web", "$(MODE)"], "/work")
    assert (found.cdi_devices, found.log_path, found.limits.cpu_quota) == (("v/c=a",), "main/2.log", 100_000)
    assert (found.run_as_user, found.run_as_group, found.read_only_root, found.stop_signal) == (7, 6, True, "SIGUSR1")
    assert (found.tty, found.stdin, found.mounts[0]) == (True, True, BindMount(str(tmp_path / "v"), "/data"))


def test_init_containers_and_sidecars_are_told_apart(tmp_path: Path) -> None:
    inits = [container("first"), container("proxy", restartPolicy="Always")]
    whole = stored_pod(initContainers=inits)
    assert [config(tmp_path, whole, subject).role for subject in inits] == [ContainerRole.INIT, ContainerRole.SIDECAR]


def test_a_container_may_leave_last_words_where_its_spec_says(tmp_path: Path) -> None:
    subject = container(terminationMessagePath="/tmp/last", terminationMessagePolicy="FallbackToLogsOnError")
    found = config(tmp_path, stored_pod(subject), subject)
    mount = found.mounts[-1]
    assert (mount.container_path, mount.needed, mount.host_path) == ("/tmp/last", False, found.termination_file)
    assert Path(mount.host_path).exists()
    assert found.log_on_error
    assert config(tmp_path, stored_pod(container()), container()).mounts[-1].container_path == "/dev/termination-log"


@pytest.mark.parametrize("context", [{"runAsNonRoot": True}, {"runAsNonRoot": True, "runAsUser": 0}])
def test_a_container_that_must_not_be_root_needs_a_user(tmp_path: Path, context: dict[str, Any]) -> None:
    subject = container(securityContext=context)
    with pytest.raises(RuntimeRefusal, match='container "main" has runAsNonRoot and') as refusal:
        config(tmp_path, stored_pod(subject), subject)
    assert refusal.value.reason == "CreateContainerConfigError"


def test_logs_are_where_a_kubelet_has_them(tmp_path: Path) -> None:
    assert log_directory(tmp_path, identity(stored_pod())) == tmp_path / "shop_web_u-1"
