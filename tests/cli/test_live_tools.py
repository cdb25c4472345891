"""The tools on a live cluster: `drakit up`, a pod that runs, one that cannot, a user without rights, and a snapshot."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from drakit.client import PODS, TAINT_RULES
from tests.builders.commandline import Ran
from tests.builders.loop import on_loop
from tests.builders.manifests import by_template, pod, template
from tests.docs.blocks import blocks
from tests.e2e.processes import ROOT, Running, apiserver, command
from tests.e2e.reached import reached, until

Run = Callable[..., Ran]
NODES = {"nodes": [{"name": "node-{index}", "count": 2, "profiles": ["h100-8"], "cards": 2}]}
SECRET = "hunter2"
pytestmark = pytest.mark.usefixtures("terminal")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("tools")
    (place / "cluster.yaml").write_text(yaml.safe_dump(NODES))
    with apiserver("--data-dir", str(place / "data"), "--cluster", str(place / "cluster.yaml"), name="up") as running:
        _begin(running)
        yield running


@on_loop
async def _begin(running: Running) -> None:
    busy = pod("busy", claims=[by_template(name="one")])
    busy["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
    async with reached(running.kubeconfig) as client:
        for each in (template("one", deviceClassName="gpu.nvidia.com"), busy):
            await client.create(each)
        await until(client, PODS, lambda each: each.view.status.phase == "Running", namespace="default")
        await client.create(template("many", deviceClassName="gpu.nvidia.com", count=3))
        await client.create(pod("greedy", claims=[by_template(name="many")]))
        await until(client, PODS, _is_refused, namespace="default")


def _is_refused(each: object) -> bool:
    conditions = each.view.status.conditions  # type: ignore[attr-defined]
    return any(one.reason == "Unschedulable" for one in conditions)


@pytest.fixture
def reach(up: Running) -> tuple[str, str]:
    return "--kubeconfig", str(up.kubeconfig)


def test_a_waiting_pod_and_a_running_one_are_explained(command_line: Run, reach: tuple[str, str]) -> None:
    ran = command_line("explain", "pod", "greedy", *reach)
    assert (ran.code, ran.err) == (1, "")
    assert "request r wants 3 devices of class gpu.nvidia.com" in ran.out.splitlines()[0]
    ran = command_line("explain", "pod", "busy", *reach, "-o", "json")
    assert ran.code == 0
    assert len(json.loads(ran.out)["devices"]) == 1


@on_loop
async def test_what_people_see_of_a_waiting_pod_says_more_by_itself(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        found = await client.get(PODS, "greedy", namespace="default")
    [said] = [each.message for each in found.view.status.conditions if each.type == "PodScheduled"]
    assert said.startswith("0/2 nodes are available: 2 cannot allocate all claims.")
    assert said.endswith("are in use: see drakit explain pod greedy -n default.")
    assert "request r, wants 3 on one node" in said


def test_devices_selectors_and_questions_read_the_live_cluster(command_line: Run, reach: tuple[str, str]) -> None:
    assert "4 in all: 1 used, 3 free, 0 tainted" in command_line("devices", *reach).out
    assert command_line("selector", 'device.driver == "gpu.nvidia.com"', *reach).out.startswith("4 of 4 devices match")
    ran = command_line("whatif", "--smallest", "h100-8", *reach, "-o", "json")
    assert (ran.code, json.loads(ran.out)["needed"]) == (0, 1)


@pytest.mark.parametrize("masked", [False, True])
def test_a_snapshot_answers_as_the_cluster_did_and_has_no_secrets(
    command_line: Run, reach: tuple[str, str], tmp_path: Path, masked: bool
) -> None:
    path = tmp_path / "snapshot.yaml"
    ran = command_line("snapshot", str(path), *reach, *(["--mask"] if masked else []))
    assert ran.code == 0
    assert "and the scheduler's state" in ran.err
    text = path.read_text()
    assert SECRET not in text
    taken = yaml.safe_load(text)
    assert set(taken["scheduler"]["pending"]) >= {"unschedulable"}
    names = {each["metadata"]["name"]: each for each in taken["items"] if each["kind"] == "Pod"}
    name = "greedy" if not masked else next(key for key, each in names.items() if not each["spec"].get("nodeName"))
    assert masked == ("greedy" not in text)
    place = names[name]["metadata"]["namespace"]
    ran = command_line("explain", "pod", name, "-n", place, "-f", str(path))
    assert (ran.code, ran.err) == (1, "")
    assert "wants 3 devices of class gpu.nvidia.com, and" in ran.out
    assert "4 in all: 1 used, 3 free, 0 tainted" in command_line("devices", "-f", str(path)).out


def test_the_snapshot_commands_of_the_guide_work_as_they_are_written(
    command_line: Run, up: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(up.kubeconfig))
    monkeypatch.chdir(tmp_path)
    [block] = blocks("docs/guides/why-is-my-pod-pending.md", "sh")
    lines = [each.replace("NAME", "greedy").split()[1:] for each in block.splitlines()]
    assert [words[0] for words in lines] == ["snapshot", "explain", "devices"]
    assert [command_line(*words).code for words in lines] == [0, 1, 0]


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_devices_are_shown_again_when_they_change(up: Running) -> None:
    """Until Ctrl-C, which is no error that anybody has to read about."""
    words = command("--watch", "--kubeconfig", str(up.kubeconfig), name="devices")
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    # A shell lets the programs that it starts in the background ignore Ctrl-C, and these tests with them.
    with subprocess.Popen(words, **pipes, preexec_fn=_hear_interrupts) as watching:  # noqa: PLW1509
        assert watching.stdout is not None
        shown = iter(watching.stdout.readline, "")
        assert any("4 in all: 1 used, 3 free, 0 tainted" in line for line in shown)
        _taint(up)
        assert any("4 in all: 1 used, 0 free, 3 tainted" in line for line in shown)
        _heal(up)
        assert any("4 in all: 1 used, 3 free, 0 tainted" in line for line in shown)
        watching.send_signal(signal.SIGINT)
        _, said = watching.communicate(timeout=30)
        assert (watching.returncode, said) == (130, "")


@on_loop
async def _taint(running: Running) -> None:
    """Every device, by a rule that evicts nobody."""
    taint = {"key": "example.com/repair", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": "gpu.nvidia.com"}, "taint": taint}
    rule = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "repair"}}
    async with reached(running.kubeconfig) as client:
        await client.create({**rule, "spec": spec})


@on_loop
async def _heal(running: Running) -> None:
    async with reached(running.kubeconfig) as client:
        await client.delete(TAINT_RULES, "repair")


@pytest.mark.parametrize(
    "words", [("devices",), ("explain", "pod", "greedy"), ("snapshot",), ("whatif",), ("selector", "true"), ("top",)]
)
def test_who_may_not_look_is_told_so_in_one_line(
    command_line: Run, up: Running, tmp_path: Path, words: tuple[str, ...]
) -> None:
    config = yaml.safe_load(up.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "nobody"
    path = tmp_path / "nobody"
    path.write_text(yaml.safe_dump(config))
    ran = command_line(*words, "--kubeconfig", str(path))
    assert ran.code == 2
    assert "is forbidden" in ran.err
    assert "nobody" in ran.err
    assert (len(ran.err.splitlines()), ran.out) == (1, "")


def test_watch_waits_for_the_answer_to_change(up: Running) -> None:
    words = command("pod", "greedy", "--watch", "--kubeconfig", str(up.kubeconfig), name="explain")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT) as watching:
        assert watching.stdout is not None
        assert "fits on none of 2 nodes" in watching.stdout.readline()
        _free(up)
        rest = watching.stdout.read()
        assert watching.wait(timeout=30) == 1
    assert "Pod default/greedy" in rest


@on_loop
async def _free(running: Running) -> None:
    async with reached(running.kubeconfig) as client:
        await client.delete(PODS, "busy", namespace="default", grace=0)


def test_a_server_without_a_scheduler_of_ours_gives_a_snapshot_without_its_state(
    command_line: Run, tmp_path: Path
) -> None:
    with apiserver("--ephemeral", "--kubeconfig", str(tmp_path / "kubeconfig"), "--insecure") as alone:
        ran = command_line("snapshot", "--kubeconfig", str(alone.kubeconfig), "-o", "json")
        assert ran.code == 0
        assert "scheduler" not in json.loads(ran.out)
        ran = command_line("snapshot", "--kubeconfig", str(alone.kubeconfig), "--scheduler", alone.url)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        assert "this is no scheduler of drakit" in ran.err


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that does not have the kinds of devices at all."""
    path = tmp_path_factory.mktemp("half") / "kubeconfig"
    off = ",".join(f"resource.k8s.io/{each}=false" for each in ("v1", "v1beta1", "v1beta2", "v1alpha3"))
    with apiserver("--ephemeral", "--kubeconfig", str(path), "--insecure", "--runtime-config", off) as running:
        yield running


@pytest.mark.parametrize(
    "words", [("devices",), ("explain", "pod", "p"), ("snapshot",), ("whatif",), ("selector", "true"), ("top",)]
)
def test_half_a_cluster_is_told_in_one_line(command_line: Run, half: Running, words: tuple[str, ...]) -> None:
    ran = command_line(*words, "--kubeconfig", str(half.kubeconfig))
    assert ran.code == 2
    assert "resource.k8s.io" in ran.err
    assert (len(ran.err.splitlines()), ran.out) == (1, "")
