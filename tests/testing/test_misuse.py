"""Wrong use is told in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from drakit.base.errors import UsageError
from drakit.testing import AsyncCluster, LocalCluster, faults, local_cluster

OPTIONS = {
    "noodles=3": "there is no option noodles; options are nodes, profile, cards, gates, scheduler, server_only, seed",
    "nodes='three'": "nodes is a number of nodes, not 'three'",
    "nodes=-1": "nodes is a number of nodes, not -1",
    "nodes=True": "nodes is a number of nodes, not True",
    "profile='gpus'": "there is no profile 'gpus'; profiles are *gpu*",
    "gates={'DRAMagic': True}": "unrecognized feature gate: DRAMagic",
    "gates='DRAMagic'": "gates is a mapping such as {'DRAPartitionableDevices': False}, not 'DRAMagic'",
    "scheduler='nowhere.yaml'": "scheduler: nowhere.yaml cannot be read: No such file or directory",
    "3": "options have names, as in nodes=2: 3 has none",
}


def test_options_that_there_are_not_are_refused_without_a_traceback(pytester: pytest.Pytester) -> None:
    tests = [
        f"@pytest.mark.dra_cluster({given})\ndef test_{number}(dra_cluster):\n    raise SystemError\n"
        for number, given in enumerate(OPTIONS)
    ]
    pytester.makepyfile("import pytest\n" + "\n".join(tests))
    result = pytester.runpytest_inprocess("-p", "drakit.testing.plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(errors=len(OPTIONS))
    for told in OPTIONS.values():
        result.stdout.fnmatch_lines([f"dra_cluster: {told.replace('[', '[[]')}*"])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*During handling*")


def test_arguments_are_refused_as_options_are() -> None:
    with pytest.raises(UsageError, match="there is no option noodles"), local_cluster(noodles=3):
        pytest.fail("it has begun")


CALLS: dict[str, tuple[Callable[[LocalCluster], Any], type[Exception], str]] = {
    "advance backwards": (
        lambda it: it.advance(-1),
        ValueError,
        "time goes forward, by a number of seconds: not by -1",
    ),
    "advance for ever": (lambda it: it.advance(float("inf")), ValueError, "not by inf"),
    "a phase that there is not": (
        lambda it: it.wait_for("train", "running"),
        ValueError,
        "'running' is no phase of a pod: Pending, Running, Succeeded, Failed, Unknown, Deleted",
    ),
    "a pod that there is not": (
        lambda it: it.wait_for("train", seconds=5),
        AssertionError,
        "pod train does not exist after 5 s, not Running\nthere is no pod train; pods are default/lonely",
    ),
    "looking at a pod that there is not": (lambda it: it.pod("x/train"), AssertionError, "there is no pod x/train; "),
    "a node that there is not": (
        lambda it: it.remove_node("node-7"),
        AssertionError,
        "there is no node node-7; nodes are node-1",
    ),
    "a node twice": (lambda it: it.add_node("node-1"), ValueError, "there is a node node-1 already"),
    "an argument of a node that there is not": (
        lambda it: it.add_node("node-2", noodles=1),  # type: ignore[call-arg]
        TypeError,
        "unexpected keyword argument 'noodles'",
    ),
    "a device that there is not": (
        lambda it: it.break_device("node-1", "gpu-77"),
        AssertionError,
        "node node-1 has no device gpu-77; devices are gpu-0",
    ),
    "a driver that there is not": (
        lambda it: it.taint("node-1", "gpu-0", "a=b:NoSchedule", driver="lamps"),
        AssertionError,
        "node node-1 has no simulated driver lamps: gpu.example.com",
    ),
    "a taint that is none": (
        lambda it: it.taint("node-1", "gpu-0", "broken"),
        ValueError,
        "'broken' is no taint: key=value:Effect, with an effect of NoSchedule, NoExecute, None",
    ),
    "a process that there is not": (
        lambda it: it.inject(faults.driver_gone("node-1", "lamps")),
        AssertionError,
        "there is no process of driver lamps on node node-1; there is none",
    ),
    "a component that there is not": (
        lambda it: it.inject(faults.crash("kubelet")),
        ValueError,
        "there is no component 'kubelet': controllers, scheduler",
    ),
    "a failure that there is not": (
        lambda it: it.inject(faults.failing_writes(418)),
        ValueError,
        "writes fail with 409, 429, 500, 503: not with 418",
    ),
    "text that is no object": (lambda it: it.apply("- one\n"), ValueError, "has no Kubernetes object but ['one']"),
    "a file that there is not": (lambda it: it.apply("nowhere.yaml"), FileNotFoundError, "nowhere.yaml"),
}
LONELY = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "lonely"},
    "spec": {"containers": [{"name": "main", "image": "x"}]},
}


def test_calls_that_make_no_sense_say_so(dra_cluster: LocalCluster) -> None:
    dra_cluster.apply(LONELY)
    told = {name: said(call, dra_cluster) for name, (call, _, _) in CALLS.items()}
    for name, (_, kind, text) in CALLS.items():
        assert isinstance(told[name], kind), name
        assert text in str(told[name]), name
    dra_cluster.wait_for("lonely")  # it lives on


def said(call: Callable[[LocalCluster], Any], cluster: LocalCluster) -> Exception | None:
    try:
        call(cluster)
    except Exception as error:
        return error
    return None


def test_a_cluster_that_has_ended_says_so() -> None:
    with local_cluster(nodes=0) as cluster:
        cluster.settle()
    with pytest.raises(RuntimeError, match="this cluster has ended"):
        cluster.events()
    with pytest.raises(RuntimeError, match="this cluster has ended"):
        _ = cluster.asynchronous.client


async def test_a_cluster_that_has_been_closed_in_a_coroutine_says_so(dra_cluster: AsyncCluster) -> None:
    await dra_cluster.close()
    for call in (dra_cluster.settle, dra_cluster.events, dra_cluster.allocations, dra_cluster.serve):
        with pytest.raises(RuntimeError, match="this cluster has ended"):
            await call()


def test_what_is_waited_for_in_vain_has_the_reasons_of_pods_that_wait(dra_cluster: LocalCluster) -> None:
    wanting = {**LONELY, "metadata": {"name": "picky"}, "spec": {**LONELY["spec"], "nodeSelector": {"a": "b"}}}  # type: ignore[dict-item]
    dra_cluster.apply(wanting)
    with pytest.raises(AssertionError, match=r"not so after 10 s: pigs fly\n(.|\n)*picky") as failure:
        dra_cluster.wait_until(lambda: False, "pigs fly", seconds=10)
    assert "FailedScheduling" in str(failure.value)
    dra_cluster.wait_until(lambda: dra_cluster.pod("picky").status.phase == "Pending", "it waits")
