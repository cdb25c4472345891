"""What the suite says about CDI files and device metadata that break the rules of their formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drakit.api import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimStatus,
)
from drakit.conformance.cdi import read_directory
from drakit.conformance.devicemetadata import MetadataMount, check_metadata_file

GOOD: dict[str, Any] = {
    "cdiVersion": "0.5.0",
    "kind": "example.com/gpu",
    "devices": [{"name": "gpu-0", "containerEdits": {"env": ["A=b"], "deviceNodes": [{"path": "/dev/gpu0"}]}}],
}
DRIVER = "gpu.example.com"


def problems(directory: Path, spec: Any) -> list[str]:
    (directory / "spec.json").write_text(spec if isinstance(spec, str) else json.dumps(spec))
    return [str(each) for each in read_directory(directory).problems]


def with_edits(**edits: Any) -> dict[str, Any]:
    return {**GOOD, "containerEdits": edits}


def test_a_good_file_has_no_problem_and_its_device_is_found(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD) == []
    (found,) = read_directory(tmp_path).find("example.com/gpu=gpu-0")
    assert found.file == "spec.json"


def test_yaml_is_read_and_other_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("cdiVersion: 0.6.0\nkind: example.com/nic\ndevices: [{name: eth0}]\n")
    (tmp_path / ".a.json.tmp123").write_text("half of a f")
    directory = read_directory(tmp_path)
    assert not directory.problems
    assert [each.id for each in directory.devices] == ["example.com/nic=eth0"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "is no object"),
        ({**GOOD, "cdiVersion": "9.0.0"}, "cdiVersion: is '9.0.0'"),
        ({**GOOD, "kind": "gpu"}, "kind: is 'gpu'"),
        ({**GOOD, "devices": []}, "devices: has no device"),
        ({**GOOD, "devices": [{"name": "a"}, {"name": "a"}]}, "'a' is there twice"),
        ({**GOOD, "devices": [{"name": "-"}]}, "which is no device name"),
        ({**GOOD, "device": []}, "device: is no field"),
        (with_edits(env=["NAME"]), "not of the form NAME=value"),
        (with_edits(envs=[]), "is no edit that a runtime knows"),
        (with_edits(additionalGids=[1]), "needs cdiVersion 0.7.0"),
        (with_edits(mounts=[{"hostPath": "/a", "containerPath": "b"}]), "mounts[0].containerPath: is 'b'"),
        (with_edits(deviceNodes=[{}]), "deviceNodes[0].path: is None"),
        (with_edits(hooks=[{"hookName": "before", "path": "/bin/true"}]), "hooks[0].hookName: is none of"),
    ],
)
def test_what_a_runtime_would_not_take_is_told_with_its_place(tmp_path: Path, spec: Any, said: str) -> None:
    (told,) = problems(tmp_path, spec)
    assert told.startswith("spec.json: ")
    assert said in told


def allocated_claim() -> ResourceClaim:
    result = DeviceRequestAllocationResult(request="gpu/large", driver=DRIVER, pool="node", device="gpu-0")
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))
    return ResourceClaim(
        metadata=ObjectMeta(name="train", namespace="ml", uid="u1"), status=ResourceClaimStatus(allocation=allocation)
    )


def document(**changes: Any) -> dict[str, Any]:
    device = {"driver": DRIVER, "pool": "node", "name": "gpu-0"}
    return {
        "kind": "DeviceMetadata",
        "apiVersion": "metadata.resource.k8s.io/v1alpha1",
        "metadata": {"name": "train", "namespace": "ml", "uid": "u1", "generation": 1},
        "requests": [{"name": "gpu/large", "devices": [device]}],
        **changes,
    }


def check(directory: Path, *documents: Any, request: str = "gpu", options: tuple[str, ...] = ("ro",)) -> list[str]:
    file = directory / "metadata.json"
    file.write_text("\n".join(map(json.dumps, documents)))
    inside = f"/var/run/kubernetes.io/dra-device-attributes/resourceclaims/train/{request}/{DRIVER}-metadata.json"
    return list(check_metadata_file(MetadataMount(file, inside, options), allocated_claim(), DRIVER))


def test_a_stream_of_versions_is_good_when_one_of_them_is_known(tmp_path: Path) -> None:
    newer = document(apiVersion="metadata.resource.k8s.io/v1beta1")
    assert check(tmp_path, newer, document()) == []
    assert check(tmp_path, newer) == ["has no object of version metadata.resource.k8s.io/v1alpha1"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "Metadata"}, "has an object of kind 'Metadata'"),
        ({"metadata": {"name": "train", "namespace": "ml", "uid": "u2", "generation": 1}}, "metadata.uid 'u2'"),
        ({"metadata": {"name": "train", "namespace": "ml", "uid": "u1"}}, "metadata.generation None"),
        ({"requests": []}, "does not name node/gpu-0 for request gpu/large"),
    ],
)
def test_metadata_that_is_wrong_is_told(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    (told,) = check(tmp_path, document(**changes))
    assert said in told


def test_the_path_has_no_subrequest_and_the_mount_is_read_only(tmp_path: Path) -> None:
    (path,) = check(tmp_path, document(), request="gpu/large")
    assert path.startswith("is mounted at ")
    assert check(tmp_path, document(), options=("rw",)) == ["is not mounted read-only"]
