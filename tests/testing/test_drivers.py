"""Drivers that are processes of their own register with a node of the fixture over real sockets."""

from __future__ import annotations

import sys

import pytest

from drakit.client import PODS, SLICES
from drakit.testing import LocalCluster, faults
from tests.testing.gpuprocess import CLAIM, COMMAND, DRIVER, POD

pytestmark = pytest.mark.dra_cluster(nodes=0)


def test_a_pod_runs_with_a_driver_in_another_process(dra_cluster: LocalCluster) -> None:
    dra_cluster.add_node("bench", devices={})
    assert dra_cluster.start_driver("bench", *COMMAND) == DRIVER
    dra_cluster.apply(CLAIM, POD)
    dra_cluster.wait_for("train")
    assert [each.device for each in dra_cluster.allocations()] == [f"{DRIVER}/bench/gpu-0"]
    assert "prepared claim=default/gpu" in dra_cluster.driver_output("bench", DRIVER)
    # Killed, it answers nobody: the pod cannot end before another instance is there.
    dra_cluster.inject(faults.driver_gone("bench", DRIVER))
    dra_cluster.delete(PODS, "train")
    dra_cluster.advance(40)
    assert dra_cluster.pod("train").metadata.deletion_timestamp is not None
    dra_cluster.start_driver("bench", *COMMAND)
    dra_cluster.wait_for("train", "Deleted")
    assert dra_cluster.stop_driver("bench", DRIVER) == 0


def test_a_reboot_takes_the_driver_along_and_brings_it_back(dra_cluster: LocalCluster) -> None:
    dra_cluster.add_node("bench", devices={})
    dra_cluster.start_driver("bench", *COMMAND)
    dra_cluster.apply(CLAIM, POD)
    dra_cluster.wait_for("train")
    dra_cluster.inject(faults.reboot("bench"))
    dra_cluster.wait_until(lambda: restarts(dra_cluster) == 1, "the container was started again")
    dra_cluster.wait_for("train")
    # The driver is another process: its words may come a moment after the pod runs.
    dra_cluster.wait_until(lambda: registrations(dra_cluster) == 2, "the driver has registered twice")


def registrations(cluster: LocalCluster) -> int:
    return cluster.driver_output("bench", DRIVER).count("registered with the kubelet")


def restarts(cluster: LocalCluster) -> int:
    return sum(each.restart_count for each in cluster.pod("train").status.container_statuses)


def test_two_nodes_have_a_driver_each_and_one_goes(dra_cluster: LocalCluster) -> None:
    for node in ("left", "right"):
        dra_cluster.add_node(node, devices={})
        dra_cluster.start_driver(node, *COMMAND)
    dra_cluster.wait_until(lambda: {each.spec.pool.name for each in dra_cluster.list(SLICES)} == {"left", "right"}, "")
    dra_cluster.remove_node("left")
    dra_cluster.wait_until(lambda: {each.spec.pool.name for each in dra_cluster.list(SLICES)} == {"right"}, "")
    with pytest.raises(AssertionError, match=r"there is no process of driver .* on node left; there is .* on right"):
        dra_cluster.stop_driver("left", DRIVER)


def test_a_driver_that_ends_at_once_is_quoted(dra_cluster: LocalCluster) -> None:
    dra_cluster.add_node("bench", devices={})
    with pytest.raises(AssertionError, match=r"driver `.*` ended: .*no such option"):
        dra_cluster.start_driver("bench", sys.executable, "-c", "raise SystemExit('no such option')")
    with pytest.raises(Exception, match=r"cannot start \./no-such-driver"):
        dra_cluster.start_driver("bench", "./no-such-driver")
