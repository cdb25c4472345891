"""CDI specs: what a container runtime reads."""

from __future__ import annotations

import json

import pytest

from drakit.base.fields import Path
from drakit.driverkit import ContainerEdits, DeviceNode, Hook, Mount, NetDevice
from drakit.driverkit.cdi import SpecDevice, check_edits, spec_file, vendor_of
from tests.driverkit.node import led_plugin, on_loop


def written(edits: ContainerEdits, **rest: dict[str, str]) -> dict[str, object]:
    spec: dict[str, object] = json.loads(spec_file("v.example.com/claim", [SpecDevice(name="x", edits=edits, **rest)]))
    return spec


def test_every_edit_is_written_as_runtimes_read_it() -> None:
    edits = ContainerEdits(
        env={"A": "1", "B": "x=y"},
        device_nodes=(
            DeviceNode(path="/dev/led", host_path="/dev/led0", type="c", major=1, minor=3, permissions="rw"),
        ),
        mounts=(
            Mount(host_path="/a", container_path="/b"),
            Mount(host_path="/c", container_path="/d", options=("rw",)),
        ),
        hooks=(Hook(hook_name="createContainer", path="/bin/true", args=("true", "x"), timeout=5),),
    )
    assert written(edits) == {
        "cdiVersion": "0.5.0",
        "kind": "v.example.com/claim",
        "devices": [
            {
                "name": "x",
                "containerEdits": {
                    "env": ["A=1", "B=x=y"],
                    "deviceNodes": [
                        {
                            "path": "/dev/led", "hostPath": "/dev/led0", "type": "c", "major": 1, "minor": 3,
                            "permissions": "rw",
                        }
                    ],
                    "mounts": [
                        {"hostPath": "/a", "containerPath": "/b", "options": ["ro", "nosuid", "nodev", "bind"]},
                        {"hostPath": "/c", "containerPath": "/d", "options": ["rw"]},
                    ],
                    "hooks": [
                        {"hookName": "createContainer", "path": "/bin/true", "args": ["true", "x"], "timeout": 5}
                    ],
                },
            }
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("edits", "annotations", "version"),
    [
        (ContainerEdits(env={"A": "1"}), {}, "0.5.0"),
        (ContainerEdits(env={"A": "1"}), {"a": "b"}, "0.6.0"),
        (ContainerEdits(additional_gids=(5,)), {}, "0.7.0"),
        (ContainerEdits(net_devices=(NetDevice(host_interface_name="eth1", name="net1"),)), {}, "1.1.0"),
    ],
)
def test_a_field_that_needs_a_newer_version_gets_it(
    edits: ContainerEdits, annotations: dict[str, str], version: str
) -> None:
    assert written(edits, annotations=annotations)["cdiVersion"] == version


@pytest.mark.parametrize(
    ("edits", "error"),
    [
        (ContainerEdits(env={"A=B": "1"}), 'edits.env: Invalid value: "A=B"'),
        (ContainerEdits(device_nodes=(DeviceNode(path="/x", type="z"),)), "edits.deviceNodes[0].type: Unsupported"),
        (ContainerEdits(device_nodes=(DeviceNode(path="/x", permissions="q"),)), "edits.deviceNodes[0].permissions"),
        (ContainerEdits(mounts=(Mount(host_path="", container_path="/x"),)), "edits.mounts[0].hostPath"),
        (ContainerEdits(mounts=(Mount(host_path="/x", container_path="x"),)), "edits.mounts[0].containerPath"),
        (ContainerEdits(hooks=(Hook(hook_name="never", path="/x"),)), "edits.hooks[0].hookName: Unsupported"),
        (ContainerEdits(net_devices=(NetDevice(host_interface_name="", name="x"),)), "edits.netDevices[0]: Required"),
    ],
)
def test_what_a_runtime_would_refuse_is_told_with_its_field(edits: ContainerEdits, error: str) -> None:
    (found,) = check_edits(edits, Path("edits"))
    assert str(found).startswith(error)


def test_a_vendor_begins_with_a_letter() -> None:
    assert (vendor_of("gpu.example.com"), vendor_of("3d.example.com")) == ("gpu.example.com", "dra-3d.example.com")


@on_loop
async def test_a_device_without_edits_has_no_cdi_device() -> None:
    """Runtimes refuse a device that changes nothing, and a file without devices."""
    async with led_plugin() as (node, plugin, driver):
        driver.switch_on = lambda claim: [each.ready(cdi_device_ids=("v.com/c=all",)) for each in claim.devices]  # type: ignore[method-assign]
        ref = await node.claim()
        answer = (await plugin.prepare([ref]))[ref.uid]
        assert [ids for _, ids in answer.devices] == [("v.com/c=all",)]
        assert node.cdi_files == []


@on_loop
async def test_each_share_of_a_device_has_its_own_cdi_device() -> None:
    async with led_plugin() as (node, plugin, _):
        shares = [
            {"request": "led", "driver": "leds.example.com", "pool": "node-1", "device": "led-0", "shareID": share}
            for share in ("7e2a0c5b-0000-4000-8000-000000000001", "7e2a0c5b-0000-4000-8000-000000000002")
        ]
        ref = await node.claim("blink", results=shares)
        answer = (await plugin.prepare([ref]))[ref.uid]
        assert answer.error == ""
        assert len({ids for _, ids in answer.devices}) == 2
        assert [device.share_id for device, _ in answer.devices] == [each["shareID"] for each in shares]
