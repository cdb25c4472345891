"""`drakit allocate` from the files to the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from drakit.cli.commands.allocate import allocate
from tests.builders.documents import claim_document, node_document, pod_document, request_of

DEMO = str(Path(__file__).parents[2] / "examples" / "demo-cluster")

SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-a",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    },
}
TIMES_EIGHT = {"allocationMultiplier": "8"}
CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}


def gpu_claim(name: str, count: int = 1, **metadata: Any) -> dict[str, Any]:
    return claim_document(name, request_of("gpu", "gpu", count=count), namespace="default", **metadata)


def held(name: str, device: str) -> dict[str, Any]:
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "pool", "device": device}
    return {**gpu_claim(name), "status": {"allocation": {"devices": {"results": [result]}}}}


@pytest.fixture
def run() -> Callable[..., Result]:
    app = typer.Typer()
    app.command("allocate")(allocate)
    runner = CliRunner()
    return lambda *args: runner.invoke(app, list(args))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write(*objects: object, name: str = "cluster.yaml") -> str:
        path = tmp_path / name
        path.write_text("---\n".join(yaml.safe_dump(each) for each in objects))
        return str(path)

    return write


def rows(result: Result) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines()]


def test_the_first_free_device_is_given_and_told_as_plain_columns(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, held("old", "gpu-0"), gpu_claim("new")))
    assert result.exit_code == 0
    assert rows(result) == [
        ["CLAIM", "REQUEST", "DRIVER", "POOL", "DEVICE", "NODE"],
        ["default/new", "gpu", "gpu.example.com", "pool", "gpu-1", "node-a"],
    ]


def test_a_dump_of_kubectl_is_read_as_its_items(run: Any, write: Any) -> None:
    dump = {
        "apiVersion": "v1",
        "kind": "List",
        "metadata": {"resourceVersion": ""},
        "items": [SLICE, CLASS, gpu_claim("new")],
    }
    result = run("-f", write(dump))
    assert result.exit_code == 0, result.stderr
    assert rows(result)[1][4] == "gpu-0"


def test_a_typed_list_is_read_as_its_items(run: Any, write: Any) -> None:
    bare = {key: value for key, value in SLICE.items() if key not in ("apiVersion", "kind")}
    typed = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSliceList", "metadata": {}, "items": [bare]}
    assert run("-f", write(typed, CLASS, gpu_claim("new"))).exit_code == 0


def test_files_of_all_served_versions_are_read_together(run: Any, write: Any) -> None:
    old_slice = {**SLICE, "apiVersion": "resource.k8s.io/v1beta1"}
    old_slice["spec"] = {**SLICE["spec"], "devices": [{"name": "gpu-0", "basic": {}}]}
    other = write({**CLASS, "apiVersion": "resource.k8s.io/v1beta2"}, gpu_claim("new"), name="other.yaml")
    assert run("-f", write(old_slice), "-f", other).exit_code == 0


def test_json_holds_the_claims_with_their_allocation(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, gpu_claim("new", 2)), "-o", "json")
    (item,) = json.loads(result.stdout)["items"]
    assert [each["device"] for each in item["status"]["allocation"]["devices"]["results"]] == ["gpu-0", "gpu-1"]
    (term,) = item["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]


def test_yaml_can_be_fed_back_as_what_is_in_use(run: Any, write: Any, tmp_path: Path) -> None:
    cluster = write(SLICE, CLASS)
    first = run("-f", cluster, "-f", write(gpu_claim("new"), name="new.yaml"), "-o", "yaml")
    used = tmp_path / "used.yaml"
    used.write_text(first.stdout)
    again = run("-f", cluster, "-f", str(used), "-f", write(gpu_claim("newer"), name="newer.yaml"))
    assert rows(again)[1][4] == "gpu-1"


def test_several_claims_are_allocated_together_on_the_first_node_that_has_all(run: Any, write: Any) -> None:
    larger = {**SLICE, "metadata": {"name": "larger"}}
    three = [{"name": f"gpu-{number}"} for number in range(3)]
    larger["spec"] = {**SLICE["spec"], "nodeName": "node-b", "devices": three}
    larger["spec"]["pool"] = {**SLICE["spec"]["pool"], "name": "larger"}
    result = run("-f", write(SLICE, larger, CLASS, gpu_claim("one"), gpu_claim("two", 2)))
    assert [row[0] + " " + row[5] for row in rows(result)[1:]] == ["default/one node-b", *["default/two node-b"] * 2]


def test_what_does_not_fit_is_exit_code_1(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, gpu_claim("new", 3)))
    assert result.exit_code == 1
    assert result.stdout == "cannot allocate all claims on any of 1 node\nnode node-a: not all devices are available\n"


def test_explain_says_why_and_what_would_help(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, held("old", "gpu-0"), gpu_claim("new", 2)), "--node", "node-a", "--explain")
    assert result.exit_code == 1
    assert "  request gpu: 2 wanted, 1 found, 2 considered\n" in result.stdout
    assert "    1 device (gpu-0): in use by claim default/old\n" in result.stdout
    assert "it would fit with one more device like gpu.example.com/pool/gpu-0" in result.stdout


def test_explain_in_json_is_data(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, held("old", "gpu-0"), gpu_claim("new", 2)), "--explain", "-o", "json")
    assert result.exit_code == 1
    (node,) = json.loads(result.stdout)["nodes"]
    (request,) = node["reasons"]["claims"][0]["requests"]
    assert request["refusals"] == [
        {"cause": "in use", "detail": "in use by claim default/old", "devices": ["gpu.example.com/pool/gpu-0"]}
    ]


def test_a_taint_rule_of_the_files_keeps_claims_away(run: Any, write: Any) -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {"deviceSelector": {"device": "gpu-0"}, "taint": {"key": "broken", "effect": "NoSchedule"}},
    }
    result = run("-f", write(SLICE, CLASS, rule, gpu_claim("new")))
    assert rows(result)[1][4] == "gpu-1"


def test_every_problem_of_every_file_is_told_with_its_place(run: Any, write: Any, tmp_path: Path) -> None:
    misspelled = {**SLICE, "spec": {**SLICE["spec"], "devicez": [], "nodeNam": "x"}}
    wrong = write({**gpu_claim("Bad_Name"), "spec": {"devices": {"requests": 5}}}, misspelled, name="wrong.yaml")
    nothing = tmp_path / "nothing.yaml"
    text = tmp_path / "text.yaml"
    text.write_text("kind: [\n")
    result = run("-f", wrong, "-f", str(nothing), "-f", str(text))
    assert result.exit_code == 2
    told = result.stderr
    assert 'unknown field "spec.devicez"' in told
    assert 'unknown field "spec.nodeNam"' in told
    assert "line 8, column 5: spec.devices.requests: json: cannot unmarshal number" in told
    assert f"{nothing}: No such file or directory" in told
    assert str(text) in told
    assert told.count("error: ") >= 5


def test_one_document_tells_wrong_types_unknown_fields_and_broken_rules_at_once(run: Any, write: Any) -> None:
    wrong = gpu_claim("Bad_Name", nick="b")
    wrong["metadata"]["labels"] = {"example.com/a": 1}
    good = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    wrong["spec"]["devices"]["requests"] = [{"name": "r", "exactly": {"deviceClassName": "", "count": "two"}}, 7, good]
    told = run("-f", write({"apiVersion": "v1", "kind": "List", "items": [wrong]})).stderr
    for expected in (
        "items[0].metadata.labels.example.com/a: json: cannot unmarshal number",
        "items[0].spec.devices.requests[0].exactly.count: json: cannot unmarshal string",
        "items[0].spec.devices.requests[1]: json: cannot unmarshal number",
        'unknown field "items[0].metadata.nick"',
        "metadata.name: Invalid value",
        "spec.devices.requests[0].exactly.deviceClassName: Required value",
        'spec.devices.requests[2]: Duplicate value: "r"',
    ):
        assert told.count(expected) == 1, expected
    assert told.count("error: ") == 7, "what was left out for its type breaks no rule of its own"


def test_a_folder_without_manifests_is_told(run: Any, tmp_path: Path) -> None:
    result = run("-f", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr == f"error: {tmp_path}: no .yaml, .yml, .json files in this folder\n"


def test_an_object_that_breaks_rules_is_told_with_path_and_exit_code_2(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, gpu_claim("Bad_Name")))
    assert result.exit_code == 2
    assert "ResourceClaim Bad_Name: metadata.name: Invalid value" in result.stderr


def test_an_allocation_that_breaks_rules_is_told_too(run: Any, write: Any) -> None:
    wrong = held("old", "gpu-0")
    wrong["status"]["allocation"]["devices"]["results"][0]["request"] = "nobody"
    result = run("-f", write(SLICE, CLASS, wrong, gpu_claim("new")))
    assert result.exit_code == 2
    assert "ResourceClaim old: status.allocation.devices.results[0].request: Invalid value" in result.stderr


def test_other_kinds_of_a_dump_are_passed_over(run: Any, write: Any) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": []},
    }
    assert run("-f", write(SLICE, CLASS, pod, gpu_claim("new"))).exit_code == 0


def test_an_object_that_is_there_twice_is_told(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, gpu_claim("new")), "-f", write(CLASS, name="again.yaml"))
    assert result.exit_code == 2
    assert "again.yaml: line 4, column 3: DeviceClass gpu: is there twice" in result.stderr


def test_claims_whose_names_a_server_would_make_up_are_told_by_what_is_known(run: Any, write: Any) -> None:
    unnamed = gpu_claim("")
    unnamed["metadata"] = {"generateName": "job-"}
    result = run("-f", write(SLICE, CLASS, unnamed, unnamed))
    assert [row[0] for row in rows(result)[1:]] == ["default/job-…", "default/job-…"]


def test_a_kind_that_nobody_knows_is_told(run: Any, write: Any) -> None:
    result = run("-f", write({**CLASS, "kind": "DeviceClazz"}))
    assert result.exit_code == 2
    assert 'no kind "DeviceClazz" is registered' in result.stderr


def test_a_class_that_is_missing_is_an_error_for_all_nodes(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, gpu_claim("new")))
    assert result.exit_code == 1
    assert "error: claim default/new, request gpu: could not retrieve device class gpu: deviceclass" in result.stderr


def test_an_unknown_node_is_a_wrong_input(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, gpu_claim("new")), "--node", "nowhere")
    assert result.exit_code == 2
    assert "--node nowhere: no such node in the files; there are node-a" in result.stderr


def test_without_any_node_the_user_is_asked_for_one(run: Any, write: Any) -> None:
    anywhere = {**SLICE, "spec": {**{k: v for k, v in SLICE["spec"].items() if k != "nodeName"}, "allNodes": True}}
    path = write(anywhere, CLASS, gpu_claim("new"))
    assert run("-f", path).exit_code == 2
    assert run("-f", path, "--node", "somewhere").exit_code == 0


def test_claims_that_all_have_devices_leave_nothing_to_do(run: Any, write: Any) -> None:
    result = run("-f", write(SLICE, CLASS, held("old", "gpu-0")))
    assert result.exit_code == 0
    assert result.stderr == "nothing to allocate: every claim has an allocation\n"


def test_templates_alone_are_no_claims(run: Any, write: Any) -> None:
    pattern = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}}
    path = write(SLICE, CLASS, {**pattern, "spec": {"spec": gpu_claim("x")["spec"]}})
    result = run("-f", path)
    assert result.exit_code == 0
    assert "the files have no ResourceClaim, only templates (t), of which pods get their claims" in result.stderr
    assert run("-f", write(CLASS)).stderr == "nothing to allocate: the files have no ResourceClaim\n"


def test_a_gate_that_is_off_is_named(run: Any, write: Any) -> None:
    listed = gpu_claim("new")
    sub = {"name": "sub", "deviceClassName": "gpu"}
    listed["spec"]["devices"]["requests"] = [{"name": "gpu", "firstAvailable": [sub]}]
    result = run("-f", write(SLICE, CLASS, listed), "--feature-gates", "DRAPrioritizedList=false")
    assert result.exit_code == 1
    assert "request gpu: has subrequests, but the DRAPrioritizedList feature is disabled" in result.stderr


def test_the_demo_cluster_gives_the_pod_its_devices_on_the_second_node(run: Any) -> None:
    result = run("-f", DEMO)
    assert result.exit_code == 0, result.stderr
    assert [(row[1], row[4], row[5]) for row in rows(result)[1:]] == [
        ("gpus", "gpu-1", "node-b"),
        ("gpus", "gpu-2", "node-b"),
        ("network", "nic-0", "node-b"),
        ("gpu/half", "gpu-0-half-0", "node-b"),
        ("accelerator", "accelerator-1", "node-b"),
    ]


def test_the_demo_cluster_explains_why_not_the_first_node(run: Any) -> None:
    result = run("-f", DEMO, "--node", "node-a", "--explain")
    assert result.exit_code == 1
    for expected in (
        "1 device (gpu-0): in use by claim research/notebook",
        "1 device (gpu-3): taint example.com/repair=fan:NoSchedule is not tolerated",
        "1 device (gpu-2): matchAttribute resource.kubernetes.io/pcieRoot: value pci0000:01, chosen before: pci0000:00",
    ):
        assert expected in result.stdout


def test_wide_adds_shares_and_amounts(run: Any) -> None:
    result = run("-f", DEMO, "-o", "wide")
    assert result.stdout.splitlines()[0].split()[-5:] == ["SHARE", "CONSUMED", "ADMIN", "TOLERATIONS", "CONFIG"]
    assert "bandwidth=3000000000" in result.stdout


def extended_pod(amount: str = "1") -> dict[str, Any]:
    asked = {"requests": {"example.com/gpu": amount}, "limits": {"example.com/gpu": amount}}
    return pod_document("p", {"containers": [{"name": "c", "image": "i", "resources": asked}]}, namespace="default")


NAMED_CLASS = {**CLASS, "spec": {"extendedResourceName": "example.com/gpu"}}


def test_extended_resources_of_pods_are_allocated_beside_claims(run: Any, write: Any, tmp_path: Path) -> None:
    result = run("-f", write(SLICE, NAMED_CLASS, gpu_claim("c"), extended_pod()))
    assert result.exit_code == 0, result.output
    assert [row[:2] + row[4:] for row in rows(result)[1:]] == [
        ["default/c", "gpu", "gpu-0", "node-a"],
        ["default/p-extended-resources", "container-0-request-0", "gpu-1", "node-a"],
    ]
    assert run("-f", write(SLICE, NAMED_CLASS, extended_pod("3"))).exit_code == 1


def test_what_a_pod_was_given_can_be_fed_back_and_is_not_asked_for_again(run: Any, write: Any, tmp_path: Path) -> None:
    first = run("-f", write(SLICE, NAMED_CLASS, extended_pod()), "-o", "yaml")
    (tmp_path / "given.yaml").write_text(first.stdout)
    again = run("-f", str(tmp_path))
    assert again.exit_code == 0, again.output
    assert "nothing to allocate" in again.output


def test_a_node_that_lacks_what_a_device_takes_of_it_is_told_and_the_next_one_is_tried(run: Any, write: Any) -> None:
    devices = [{"name": "gpu-0", "nodeAllocatableResourceMappings": {"cpu": TIMES_EIGHT}}]

    def published(name: str) -> dict[str, Any]:
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {**SLICE["spec"], "nodeName": name, "pool": pool, "devices": devices}
        return {**SLICE, "metadata": {"name": name}, "spec": spec}

    def node(name: str, cpu: str) -> dict[str, Any]:
        return {**node_document(name), "status": {"allocatable": {"cpu": cpu, "pods": "110"}}}

    files = (published("a"), published("b"), CLASS, gpu_claim("c"), node("a", "4"))
    assert [row[5] for row in rows(run("-f", write(*files, node("b", "8"))))[1:]] == ["b"]
    failed = run("-f", write(*files, node("b", "6")))
    assert failed.exit_code == 1
    words = "claim c: device gpu.example.com/b/gpu-0 takes cpu of b, which has too little"
    assert f"node b: Insufficient cpu: {words}" in failed.output
