"""Device metadata: what applications in a container read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from drakit.api import Device, DeviceAttribute, NetworkDeviceData
from drakit.base.errors import DecodeError, NotFound
from drakit.cli.main import application
from drakit.driverkit import AllocatedClaim, PreparedDevice
from drakit.driverkit.metadata import (
    DeviceInfo,
    DeviceMetadata,
    MetadataObjectMeta,
    RequestMetadata,
    all_metadata,
    container_path,
    decode_metadata,
    encode_metadata,
    read_metadata,
)
from tests.driverkit.node import DRIVER, LedNode, Leds, led_plugin, on_loop

MODEL = {"model": DeviceAttribute(string="bright")}


class Described(Leds):
    metadata = True

    def __init__(self) -> None:
        super().__init__()
        self.published = [Device(name=f"led-{number}", attributes=MODEL) for number in range(4)]


def results(*requests: str) -> Sequence[dict[str, str]]:
    return [
        {"request": request, "driver": DRIVER, "pool": "node-1", "device": f"led-{number}"}
        for number, request in enumerate(requests)
    ]


def cdi_spec(node: LedNode) -> dict[str, list[dict[str, dict[str, list[dict[str, str]]]]]]:
    return json.loads((node.root / "cdi" / node.cdi_files[0]).read_bytes())  # type: ignore[no-any-return]


@on_loop
async def test_a_request_has_one_file_that_its_containers_mount_read_only() -> None:
    async with led_plugin(Described()) as (node, plugin, _):
        ref = await node.claim("blink", results=results("led", "led"))
        answer = (await plugin.prepare([ref]))[ref.uid]
        own = [f"{DRIVER}/claim={ref.uid}-{number}-led-{number}" for number in (0, 1)]
        assert [ids for _, ids in answer.devices] == [(own[0], f"{DRIVER}/claim={ref.uid}_led"), (own[1],)]
        mount = cdi_spec(node)["devices"][2]["containerEdits"]["mounts"][0]
        assert mount["containerPath"] == (
            f"/var/run/kubernetes.io/dra-device-attributes/resourceclaims/blink/led/{DRIVER}-metadata.json"
        )
        assert "ro" in mount["options"]
        assert read_metadata(Path(mount["hostPath"])) == DeviceMetadata(
            metadata=MetadataObjectMeta(name="blink", namespace="default", uid=ref.uid, generation=1),
            requests=(
                RequestMetadata(
                    name="led",
                    devices=tuple(
                        DeviceInfo(driver=DRIVER, pool="node-1", name=f"led-{number}", attributes=MODEL)
                        for number in (0, 1)
                    ),
                ),
            ),
        )
        await plugin.unprepare([ref])
        assert not Path(mount["hostPath"]).parent.parent.exists()


@on_loop
async def test_a_claim_of_a_template_is_found_by_what_the_pod_calls_it() -> None:
    async with led_plugin(Described()) as (node, plugin, _):
        annotations = {"resource.kubernetes.io/pod-claim-name": "lamp"}
        requests = [{"name": "led", "firstAvailable": [{"name": "large", "deviceClassName": "leds"}]}]
        ref = await node.claim("pod0-x", results=results("led/large"), annotations=annotations, requests=requests)
        await plugin.prepare([ref])
        mount = cdi_spec(node)["devices"][1]["containerEdits"]["mounts"][0]
        assert mount["containerPath"].endswith(f"resourceclaimtemplates/lamp/led/{DRIVER}-metadata.json")
        found = read_metadata(Path(mount["hostPath"]))
        assert (found.pod_claim_name, found.requests[0].name) == ("lamp", "led/large")


@on_loop
async def test_an_update_changes_the_mounted_file_and_its_generation_grows() -> None:
    async with led_plugin(Described()) as (node, plugin, driver):
        ref = await node.claim()
        answer = (await plugin.prepare([ref]))[ref.uid]
        path = Path(cdi_spec(node)["devices"][1]["containerEdits"]["mounts"][0]["hostPath"])
        with path.open("rb") as mounted:  # noqa: ASYNC230 - a bind mount follows the inode, as an open file does
            network = NetworkDeviceData(interface_name="net1", ips=("10.0.0.1/24",))
            await driver.update(ref.uid, msgspec.structs.replace(answer.devices[0][0], network_data=network))
            found = decode_metadata(mounted.read())
        assert found.metadata.generation == 2
        assert found.requests[0].devices[0].network_data == network
        again = node.plugin(driver)
        await again.start()
        assert read_metadata(path) == found


@on_loop
async def test_an_update_of_a_claim_that_is_not_prepared_is_an_error() -> None:
    async with led_plugin(Described()) as (_, __, driver):
        with pytest.raises(NotFound, match="is not prepared"):
            await driver.update("u-1", PreparedDevice(request="led", pool="p", device="d"))


@on_loop
async def test_the_drivers_own_attributes_win() -> None:
    class Own(Described):
        def switch_on(self, claim: AllocatedClaim) -> Sequence[PreparedDevice]:
            own = {"uuid": DeviceAttribute(string="u")}
            return [each.ready(attributes=own) for each in claim.devices]

    async with led_plugin(Own()) as (node, plugin, _):
        ref = await node.claim()
        await plugin.prepare([ref])
        path = Path(cdi_spec(node)["devices"][0]["containerEdits"]["mounts"][0]["hostPath"])
        assert list(read_metadata(path).requests[0].devices[0].attributes) == ["uuid"]


CONTENT = DeviceMetadata(metadata=MetadataObjectMeta(name="c", namespace="n", uid="u", generation=1))


def test_the_first_version_that_is_known_is_read() -> None:
    newer = b'{"kind":"DeviceMetadata","apiVersion":"metadata.resource.k8s.io/v2","future":true}\n'
    assert decode_metadata(newer + encode_metadata(CONTENT)) == CONTENT


def test_every_version_is_written_newest_first() -> None:
    lines = encode_metadata(CONTENT, ("v1", "v1alpha1")).splitlines()
    assert [json.loads(line)["apiVersion"] for line in lines] == [
        "metadata.resource.k8s.io/v1",
        "metadata.resource.k8s.io/v1alpha1",
    ]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"kind":"DeviceMetadata","apiVersion":"metadata.resource.k8s.io/v9"}']
)
def test_a_file_that_says_nothing_known_is_an_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_metadata(data)


def test_a_file_that_is_being_changed_is_read_again() -> None:
    whole = encode_metadata(CONTENT)
    reads = iter([whole[:20], whole[:50], whole])
    assert read_metadata(Path("any"), read=lambda _: next(reads)) == CONTENT


def put(root: Path, claim: str, request: str) -> None:
    path = container_path(claim, "", request, DRIVER, root=root)
    path.parent.mkdir(parents=True)
    info = DeviceInfo(driver=DRIVER, pool="node-1", name="led-0", attributes=MODEL)
    content = msgspec.structs.replace(CONTENT, requests=(RequestMetadata(name=request, devices=(info,)),))
    path.write_bytes(encode_metadata(content))


def test_an_application_finds_the_files_of_a_request(tmp_path: Path) -> None:
    put(tmp_path, "a", "led")
    put(tmp_path, "b", "fan")
    assert [each.content.requests[0].name for each in all_metadata(tmp_path)] == ["led", "fan"]
    assert [each.path.parts[-3] for each in all_metadata(tmp_path, request="fan")] == ["b"]


def test_the_command_shows_the_devices_of_the_container(tmp_path: Path) -> None:
    put(tmp_path, "a", "led")
    app = application(["device-metadata"], ["device-metadata"])
    shown = CliRunner().invoke(app, ["device-metadata", "--directory", str(tmp_path)])
    assert shown.exit_code == 0
    assert "led-0" in shown.output
    assert "model=bright" in shown.output
    as_json = CliRunner().invoke(app, ["device-metadata", "--directory", str(tmp_path), "-o", "json"])
    assert json.loads(as_json.output)[0]["requests"][0]["devices"][0]["name"] == "led-0"
    assert CliRunner().invoke(app, ["device-metadata", "--directory", str(tmp_path / "none")]).exit_code == 1
