"""Tables of every served kind, and those that a real server has printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from drakit.api.registry import KINDS
from drakit.apiserver.failures import ApiError
from drakit.apiserver.tables import check_include_object, columns, render
from tests.conformance.vectors import read_vectors

NOW = datetime(2030, 1, 1, 0, 5, 3, tzinfo=UTC)
CREATED = "2030-01-01T00:00:00Z"
CASES = Path(__file__).parents[2] / "conformance" / "data" / "api" / "table.jsonl.gz"


def item(**parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "creationTimestamp": CREATED}, **parts}


def cells(kind: str, **parts: Any) -> list[Any]:
    (row,) = render(kind, [item(**parts)], now=NOW)["rows"]
    assert len(row["cells"]) == len(columns(kind))
    return list(row["cells"])


def recorded_tables() -> list[Any]:
    found = []
    for case in read_vectors([CASES]):
        for step, expected in zip(case["steps"], case["expect"], strict=True):
            if expected["body"].get("kind") == "Table":
                found.append(pytest.param(step, case, expected["body"], id=case["id"]))
    assert len(found) >= 30
    return found


@pytest.mark.parametrize(("step", "case", "table"), recorded_tables())
def test_a_recorded_table_is_printed_again(step: dict[str, Any], case: dict[str, Any], table: dict[str, Any]) -> None:
    kind = next(each.kind for each in KINDS if f"/{each.plural}" in step["path"] and each.plural != "namespaces")
    assert list(columns(kind)) == table["columnDefinitions"]
    written = [each["body"] for each in case["setup"] if (each.get("body") or {}).get("kind") == kind]
    for row, document in zip(table["rows"][:1], written[-1:], strict=True):
        status = {"status": {"phase": "Pending"}} if kind == "Pod" else {}  # as the server sets it
        shown = {**status, **document, "metadata": {**row["object"]["metadata"], "creationTimestamp": CREATED}}
        got = json.loads(json.dumps(render(kind, [shown], now=NOW)))["rows"][0]["cells"]
        assert len(got) == len(row["cells"])
        assert [each for each, want in zip(got, row["cells"], strict=True) if want != "<age>" and each != want] == []


@pytest.mark.parametrize("kind", sorted({each.kind for each in KINDS}))
def test_an_empty_object_of_any_kind_fills_its_columns(kind: str) -> None:
    (row,) = render(kind, [{"metadata": {"name": "x"}}], now=NOW)["rows"]
    assert len(row["cells"]) == len(columns(kind))


def test_a_kind_without_columns_shows_name_and_creation() -> None:
    assert cells("ClusterRole") == ["x", CREATED]
    assert [each["name"] for each in columns("ClusterRole")] == ["Name", "Created At"]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "pending"),
        ({"allocation": {}}, "allocated"),
        ({"allocation": {}, "reservedFor": [{"uid": "u"}]}, "allocated,reserved"),
    ],
)
def test_a_claims_state_sums_up_its_status(status: dict[str, Any], state: str) -> None:
    assert cells("ResourceClaim", status=status) == ["x", state, "5m3s"]


def container(**parts: Any) -> dict[str, Any]:
    return {"name": "c", "ready": False, "restartCount": 0, "state": {}, **parts}


def pod_cells(status: dict[str, Any], spec: dict[str, Any] | None = None, **metadata: Any) -> list[Any]:
    document = item(spec={"containers": [{"name": "c"}], **(spec or {})}, status=status)
    document["metadata"] |= metadata
    (row,) = render("Pod", [document], now=NOW)["rows"]
    return list(row["cells"])


RUNNING = {"running": {"startedAt": CREATED}}


@pytest.mark.parametrize(
    ("status", "ready", "shown"),
    [
        ({"phase": "Pending"}, "0/1", "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "0/1", "Evicted"),
        ({"phase": "Running", "containerStatuses": [container(ready=True, state=RUNNING)]}, "1/1", "Running"),
        (
            {"phase": "Pending", "containerStatuses": [container(state={"waiting": {"reason": "ErrImagePull"}})]},
            "0/1",
            "ErrImagePull",
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(state={"terminated": {"exitCode": 3}})]},
            "0/1",
            "ExitCode:3",
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(state={"terminated": {"exitCode": 1, "signal": 9}})]},
            "0/1",
            "Signal:9",
        ),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "0/1",
            "SchedulingGated",
        ),
    ],
)
def test_a_pods_status_sums_up_its_containers(status: dict[str, Any], ready: str, shown: str) -> None:
    assert pod_cells(status)[1:3] == [ready, shown]


def test_a_pod_that_initializes_says_how_far_it_is() -> None:
    done = container(name="a", state={"terminated": {"exitCode": 0}})
    spec = {"initContainers": [{"name": "a"}, {"name": "b"}]}
    status = {"phase": "Pending", "initContainerStatuses": [done, container(name="b", state=RUNNING)]}
    assert pod_cells(status, spec)[2] == "Init:1/2"
    failed = container(name="b", state={"terminated": {"exitCode": 1, "reason": "Error"}}, restartCount=2)
    assert pod_cells({**status, "initContainerStatuses": [done, failed]}, spec)[2:4] == ["Init:Error", "2"]


def test_sidecars_count_as_containers() -> None:
    spec = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    sidecar = container(name="s", ready=True, started=True, state=RUNNING, restartCount=1)
    main = container(ready=True, state=RUNNING)
    status = {"phase": "Running", "initContainerStatuses": [sidecar], "containerStatuses": [main]}
    assert pod_cells(status, spec)[1:4] == ["2/2", "Running", "1"]


def test_restarts_say_when_the_last_was() -> None:
    restarted = container(
        restartCount=2, lastState={"terminated": {"finishedAt": "2030-01-01T00:05:00Z"}}, state=RUNNING
    )
    assert pod_cells({"phase": "Running", "containerStatuses": [restarted]})[3] == "2 (3s ago)"


def test_a_completed_container_beside_a_running_one_leaves_the_pod_running_or_not_ready() -> None:
    completed = container(state={"terminated": {"exitCode": 0, "reason": "Completed"}})
    both = {"phase": "Running", "containerStatuses": [completed, container(name="d", ready=True, state=RUNNING)]}
    assert pod_cells(both)[2] == "NotReady"
    assert pod_cells({**both, "conditions": [{"type": "Ready", "status": "True"}]})[2] == "Running"


def test_a_pod_that_is_being_deleted_is_terminating() -> None:
    assert pod_cells({"phase": "Running"}, deletionTimestamp=CREATED)[2] == "Terminating"
    assert pod_cells({"phase": "Succeeded"}, deletionTimestamp=CREATED)[2] == "Succeeded"


def test_wide_cells_of_a_pod() -> None:
    spec = {"nodeName": "n", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    status = {"podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "a", "status": "True"}]}
    assert pod_cells(status, spec)[5:] == ["10.0.0.1", "n", "<none>", "1/2"]


def test_a_pod_that_has_ended_says_so_in_its_row() -> None:
    (row,) = render("Pod", [item(status={"phase": "Succeeded"})], now=NOW)["rows"]
    assert row["conditions"][0]["type"] == "Completed"


def test_a_node_shows_readiness_roles_and_addresses() -> None:
    document = item(
        spec={"unschedulable": True},
        status={
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6", "architecture": "amd64"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    )
    document["metadata"]["labels"] = {"node-role.kubernetes.io/control-plane": ""}
    (row,) = render("Node", [document], now=NOW)["rows"]
    assert row["cells"] == [
        "x", "Ready,SchedulingDisabled", "control-plane", "5m3s", "v1", "10.0.0.1", "<none>", "<unknown>",
        "6 (amd64)", "<unknown>",
    ]  # fmt: skip


def test_an_event_of_either_group_shows_the_same() -> None:
    old = cells(
        "Event", lastTimestamp=CREATED, type="Normal", reason="R", count=3, message=" m ",
        involvedObject={"kind": "Pod", "name": "p"}, source={"component": "s", "host": "h"},
    )  # fmt: skip
    new = cells(
        "Event", eventTime=CREATED, series={"lastObservedTime": CREATED, "count": 3}, type="Normal", reason="R",
        note="m", regarding={"kind": "Pod", "name": "p"}, reportingController="s", reportingInstance="h",
    )  # fmt: skip
    assert old[:7] == new[:7] == ["5m3s", "Normal", "R", "pod/p", "", "s, h", "m"]
    assert (old[8], new[8]) == (3, 3)


def test_a_quota_shows_use_and_limit() -> None:
    status = {"hard": {"pods": "4", "limits.cpu": "2", "count/x": "1"}, "used": {"pods": "1", "limits.cpu": "500m"}}
    assert cells("ResourceQuota", status=status) == ["x", "count/x: 0/1, pods: 1/4", "limits.cpu: 500m/2", "5m3s"]


def test_services_show_where_they_are_reached() -> None:
    ports = [{"port": 80, "protocol": "TCP"}, {"port": 90, "nodePort": 30000, "protocol": "UDP"}]
    spec = {"type": "NodePort", "clusterIPs": ["10.1.1.1"], "ports": ports, "selector": {"b": "2", "a": "1"}}
    assert cells("Service", spec=spec)[1:] == [
        "NodePort",
        "10.1.1.1",
        "<none>",
        "80/TCP,90:30000/UDP",
        "5m3s",
        "a=1,b=2",
    ]
    assert cells("Service", spec={"type": "LoadBalancer"})[3] == "<pending>"
    assert cells("Service", spec={"type": "ExternalName", "externalName": "e"})[3] == "e"


def test_endpoints_are_cut_after_three() -> None:
    subset = {"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)], "ports": [{"port": 80}]}
    assert cells("Endpoints", subsets=[subset])[1] == "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."
    assert cells("Endpoints")[1] == "<none>"


def test_workload_controllers_show_counts_and_selectors() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert cells("ReplicaSet", spec=spec, status={"replicas": 2})[1:] == [3, 2, 0, "5m3s", "c,d", "i,j", "a=b"]
    assert cells("Deployment", spec=spec, status={"readyReplicas": 1})[1:4] == ["1/3", 0, 0]
    assert cells("DaemonSet", spec=spec, status={"numberReady": 1})[3] == 1


def test_bindings_show_role_and_subjects() -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]
    got = cells("RoleBinding", roleRef={"kind": "Role", "name": "r"}, subjects=subjects)
    assert got[1:] == ["Role/r", "5m3s", "u", "", "n/s"]


def test_admission_policies_show_their_parameters() -> None:
    assert cells("ValidatingAdmissionPolicy", spec={"validations": [{}]})[1:3] == [1, "<unset>"]
    bound = cells("ValidatingAdmissionPolicyBinding", spec={"policyName": "p", "paramRef": {"name": "n"}})
    assert bound[1:3] == ["p", "*/n"]


def test_a_row_carries_what_was_asked_for() -> None:
    document = item(spec={"a": 1})
    by_choice = {
        choice: render("Workload", [document], now=NOW, include_object=choice)["rows"][0]["object"]
        for choice in ("Metadata", "Object", "None")
    }
    assert by_choice["None"] is None
    assert by_choice["Object"] == document
    assert by_choice["Metadata"] == {
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": document["metadata"],
    }  # fmt: skip


def test_later_events_of_a_watch_come_without_columns() -> None:
    table = render("Pod", [], now=NOW, headers=False, version="v1beta1", metadata={"resourceVersion": "3"})
    assert table == {
        "kind": "Table", "apiVersion": "meta.k8s.io/v1beta1", "metadata": {"resourceVersion": "3"},
        "columnDefinitions": None, "rows": [],
    }  # fmt: skip


def test_another_choice_is_a_bad_request() -> None:
    assert check_include_object("") == "Metadata"
    with pytest.raises(ApiError) as caught:
        check_include_object("Bad")
    assert caught.value.status.code == 400
