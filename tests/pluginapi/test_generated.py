"""What is committed is what the pinned compiler makes of the .proto files, and the names on the wire are exact."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.descriptor import FileDescriptor

from drakit.pluginapi import dra_v1_pb2, dra_v1beta1_pb2, health_v1alpha1_pb2, podresources_v1_pb2, registration_pb2
from scripts.protos import PACKAGES, SOURCE, generate

PREFIX = "k8s.io.kubelet.pkg.apis.dra"
DRA_METHODS = ["NodePrepareResources", "NodeUnprepareResources"]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_committed_code_is_what_the_compiler_makes(package: str, tmp_path: Path) -> None:
    generate(package, tmp_path)
    made = {path.name: path.read_text() for path in (tmp_path / package).iterdir()}
    committed = {path.name: path.read_text() for path in (SOURCE / package).glob("*_pb2*")}
    assert sorted(made) == sorted(committed)
    assert [name for name in made if made[name] != committed[name]] == []


@pytest.mark.parametrize(
    ("file", "service", "methods"),
    [
        (registration_pb2.DESCRIPTOR, "pluginregistration.Registration", ["GetInfo", "NotifyRegistrationStatus"]),
        (dra_v1_pb2.DESCRIPTOR, f"{PREFIX}.v1.DRAPlugin", DRA_METHODS),
        (dra_v1beta1_pb2.DESCRIPTOR, f"{PREFIX}.v1beta1.DRAPlugin", DRA_METHODS),
        (health_v1alpha1_pb2.DESCRIPTOR, "v1alpha1.DRAResourceHealth", ["NodeWatchResources"]),
        (podresources_v1_pb2.DESCRIPTOR, "v1.PodResourcesLister", ["List", "GetAllocatableResources", "Get"]),
    ],
)
def test_a_service_has_the_name_that_a_kubelet_calls(file: FileDescriptor, service: str, methods: list[str]) -> None:
    (found,) = file.services_by_name.values()
    assert (found.full_name, [method.name for method in found.methods]) == (service, methods)


def test_an_answer_has_the_bytes_that_a_kubelet_reads() -> None:
    device = dra_v1_pb2.Device(
        request_names=["r"], pool_name="p", device_name="d", cdi_device_ids=["v/c=x"], share_id="s"
    )
    assert device.SerializeToString() == b"\x0a\x01r\x12\x01p\x1a\x01d\x22\x05v/c=x\x2a\x01s"
    claim = dra_v1_pb2.Claim(namespace="n", uid="u", name="m")
    assert claim.SerializeToString() == b"\x0a\x01n\x12\x01u\x1a\x01m"


def test_the_beta_answer_has_no_share() -> None:
    assert "share_id" in dra_v1_pb2.Device.DESCRIPTOR.fields_by_name
    assert "share_id" not in dra_v1beta1_pb2.Device.DESCRIPTOR.fields_by_name
