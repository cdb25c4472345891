"""The fixture `dra_cluster`: options, helpers, time, failures that explain themselves, an address for others."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from drakit.api import Device
from drakit.client import CLAIMS, NODES, PODS
from drakit.testing import AsyncCluster, LocalCluster, faults

DRIVER = "lamps.example.com"
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "lamps"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}


def lamp_claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "lamp", "exactly": {"deviceClassName": "lamps"}}]}},
    }


def lamp_pod(name: str, claimed: str, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "resourceClaims": [{"name": "lamp", "resourceClaimName": claimed}],
            "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "lamp"}]}}],
        },
    }


def lamps(cluster: LocalCluster, *names: str) -> None:
    cluster.add_node("bench", devices={DRIVER: [Device(name=each) for each in names]})
    cluster.apply(CLASS)


def test_a_pod_that_waits_in_vain_fails_with_the_explanation(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.apply(lamp_claim("a"), lamp_claim("b"), lamp_pod("first", "a"), lamp_pod("second", "b"))
    with pytest.raises(AssertionError) as failure:
        dra_cluster.wait_for("second", seconds=60)
    assert "pod second is Pending after 60 s, not Running" in str(failure.value)
    assert "FailedScheduling" in str(failure.value)
    dra_cluster.assert_pending("second", because="red")


def test_time_moves_only_when_it_is_told_to(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.apply(lamp_claim("a"), lamp_pod("hourly", "a", **{"drakit.dev/runs-for": "1h"}))
    dra_cluster.advance(3500)
    assert dra_cluster.pod("hourly").status.phase == "Running"
    dra_cluster.wait_for("hourly", "Running")
    dra_cluster.advance(200)
    assert {each.reason for each in dra_cluster.events("hourly")} >= {"Scheduled", "Started"}
    assert dra_cluster.pod("hourly").status.container_statuses[0].restart_count == 1


def test_a_driver_publishes_more_and_the_next_pod_runs(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.apply(lamp_claim("a"), lamp_claim("b"), lamp_pod("first", "a"), lamp_pod("second", "b"))
    dra_cluster.publish("bench", "[{name: red}, {name: green}]")
    dra_cluster.wait_for("second")
    assert sorted(each.device for each in dra_cluster.allocations()) == [
        f"{DRIVER}/bench/green",
        f"{DRIVER}/bench/red",
    ]


def test_a_removed_node_is_gone(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.remove_node("bench")
    assert [each.view.metadata.name for each in dra_cluster.list(NODES)] == ["node-1"]


def test_deleting_a_pod_lets_its_claim_go(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.apply(lamp_claim("a"), lamp_pod("first", "a"))
    dra_cluster.delete(PODS, "first")
    dra_cluster.wait_for("first", "Deleted")
    dra_cluster.advance(5)
    assert dra_cluster.get(CLAIMS, "a").status.allocation is None


@pytest.mark.dra_cluster(nodes=0, server_only=True)
def test_a_server_alone_stores_and_nothing_else(dra_cluster: LocalCluster) -> None:
    dra_cluster.apply(CLASS, lamp_claim("a"))
    dra_cluster.advance(60)
    assert dra_cluster.allocations() == []


@pytest.mark.dra_cluster(gates={"DRAConsumableCapacity": False})
def test_a_gate_that_is_off_drops_its_fields(dra_cluster: LocalCluster) -> None:
    wanted = lamp_claim("a")
    wanted["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"light": "1"}}
    dra_cluster.apply(wanted)
    exactly = dra_cluster.get(CLAIMS, "a").spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.capacity is None


@pytest.mark.dra_cluster(nodes=3)
class TestMarkers:
    @pytest.mark.dra_cluster(profile="nic")
    def test_options_of_class_and_test_come_together(self, dra_cluster: LocalCluster) -> None:
        assert len(dra_cluster.list(NODES)) == 3
        dra_cluster.settle()


@pytest.mark.parametrize("component", ["scheduler", "controllers"])
def test_a_component_that_dies_comes_back(dra_cluster: LocalCluster, component: str) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.inject(faults.crash(component))
    dra_cluster.apply(lamp_claim("a"), lamp_pod("first", "a"))
    dra_cluster.wait_for("first")


def test_a_server_that_is_away_is_waited_for(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.inject(faults.server_away(30))
    dra_cluster.apply(lamp_claim("a"), lamp_pod("first", "a"))
    assert dra_cluster.pod("first").status.phase == "Pending"
    dra_cluster.wait_for("first", seconds=120)


def test_a_driver_that_is_gone_keeps_the_pod_waiting(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.inject(faults.driver_gone("bench", DRIVER))
    dra_cluster.apply(lamp_claim("a"), lamp_pod("first", "a"))
    dra_cluster.advance(10)
    assert dra_cluster.pod("first").status.phase == "Pending"
    assert "FailedPrepareDynamicResources" in {each.reason for each in dra_cluster.events("first")}


def test_a_full_disk_is_told_and_waited_for(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.inject(faults.disk_full("bench"))
    dra_cluster.apply(lamp_claim("a"), lamp_pod("first", "a"))
    dra_cluster.advance(10)
    assert any("No space left on device" in each.message for each in dra_cluster.events("first"))
    dra_cluster.inject(faults.disk_full("bench", full=False))
    dra_cluster.wait_for("first")


def test_a_compaction_disturbs_nobody(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    dra_cluster.inject(faults.compaction())
    dra_cluster.apply(lamp_claim("a"), lamp_pod("first", "a"))
    dra_cluster.wait_for("first")


def test_others_reach_the_server_over_http(dra_cluster: LocalCluster) -> None:
    lamps(dra_cluster, "red")
    url = dra_cluster.serve()
    body = json.dumps(lamp_claim("a")).encode()
    path = f"{url}/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    urllib.request.urlopen(urllib.request.Request(path, body, {"content-type": "application/json"})).close()
    dra_cluster.apply(lamp_pod("first", "a"))
    dra_cluster.wait_for("first")
    assert url in dra_cluster.kubeconfig().read_text()


async def test_a_coroutine_runs_on_the_loop_of_the_cluster(dra_cluster: AsyncCluster) -> None:
    await dra_cluster.add_node("bench", devices={DRIVER: [Device(name="red")]})
    await dra_cluster.apply(CLASS, lamp_claim("a"), lamp_pod("first", "a"))
    assert (await dra_cluster.wait_for("first")).spec.node_name == "bench"
    await dra_cluster.taint("bench", "red", "broken=yes:NoExecute")
    await dra_cluster.wait_for("first", "Deleted")

    async def is_free() -> bool:
        return not await dra_cluster.allocations()

    await dra_cluster.wait_until(is_free, "the lamp is free again")
