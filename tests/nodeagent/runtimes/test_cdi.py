"""CDI: spec files, ids, edits, and what is wrong with them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from drakit.nodeagent.runtimes.cdi import CdiDeviceNode, CdiHook, CdiMount, CdiRegistry
from drakit.nodeagent.runtimes.contract import DeviceUnresolved


def write(directory: Path, name: str, document: Any) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def spec(kind: str = "vendor.com/gpu", edits: Any = None, **devices: Any) -> dict[str, Any]:
    listed = [{"name": name, "containerEdits": device} for name, device in devices.items()]
    return {"cdiVersion": "0.5.0", "kind": kind, "devices": listed} | ({"containerEdits": edits} if edits else {})


def test_edits_come_in_the_order_of_the_ids_and_later_ones_win(tmp_path: Path) -> None:
    write(tmp_path, "a.json", spec(edits={"env": ["ALL=1", "X=spec"]}, a={"env": ["X=a", "A=1"]}, b={"env": ["X=b"]}))
    registry = CdiRegistry([tmp_path])
    assert registry.resolve(["vendor.com/gpu=a", "vendor.com/gpu=b"]).env == {"ALL": "1", "X": "b", "A": "1"}
    assert registry.resolve(["vendor.com/gpu=b", "vendor.com/gpu=a"]).env == {"ALL": "1", "X": "a", "A": "1"}
    assert registry.resolve([]).env == {}


def test_all_kinds_of_edits_are_read(tmp_path: Path) -> None:
    edits = {
        "deviceNodes": [{"path": "/dev/gpu0", "hostPath": "/dev/vendor0", "permissions": "rw", "fileMode": 432}],
        "mounts": [{"hostPath": "/opt/lib", "containerPath": "/usr/lib/gpu", "options": ["ro", "bind"]}],
        "hooks": [{"hookName": "createContainer", "path": "/bin/hook", "args": ["hook", "x"], "timeout": 5}],
        "additionalGids": [44],
    }
    write(tmp_path, "a.json", spec(a=edits))
    found = CdiRegistry([tmp_path]).resolve(["vendor.com/gpu=a", "vendor.com/gpu=a"])
    assert found.device_nodes == [CdiDeviceNode("/dev/gpu0", "/dev/vendor0", permissions="rw", file_mode=432)]
    assert found.mounts == [CdiMount("/opt/lib", "/usr/lib/gpu", ("ro", "bind"))]
    assert found.mounts[0].read_only
    assert found.hooks == [CdiHook("createContainer", "/bin/hook", ("hook", "x"), limit=5)]
    assert found.groups == [44]


def test_yaml_files_are_specs_too_and_others_are_not(tmp_path: Path) -> None:
    text = "cdiVersion: 0.5.0\nkind: vendor.com/nic\ndevices:\n- name: eth0\n  containerEdits: {env: [NIC=eth0]}\n"
    write(tmp_path, "nic.yaml", text)
    write(tmp_path, "README.txt", "{")
    write(tmp_path, ".hidden.json", "{")
    assert CdiRegistry([tmp_path]).resolve(["vendor.com/nic=eth0"]).env == {"NIC": "eth0"}


def test_a_later_directory_wins(tmp_path: Path) -> None:
    write(tmp_path / "etc", "a.json", spec(a={"env": ["FROM=etc"]}))
    write(tmp_path / "run", "a.json", spec(a={"env": ["FROM=run"]}))
    assert CdiRegistry([tmp_path / "etc", tmp_path / "run"]).resolve(["vendor.com/gpu=a"]).env == {"FROM": "run"}


def test_two_files_of_one_directory_conflict_and_both_are_named(tmp_path: Path) -> None:
    write(tmp_path, "a.json", spec(a={}))
    write(tmp_path, "b.json", spec(a={}))
    with pytest.raises(DeviceUnresolved) as error:
        CdiRegistry([tmp_path]).resolve(["vendor.com/gpu=a"])
    assert (
        str(error.value) == f'CDI device "vendor.com/gpu=a": conflicting specs {tmp_path}/a.json and {tmp_path}/b.json'
    )


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{", "invalid JSON"),
        ("[]", "not a CDI spec"),
        (spec(kind="nonsense", a={}), "kind 'nonsense'"),
        ({"kind": "vendor.com/gpu", "devices": [{"name": "a b"}]}, "device name 'a b'"),
        (spec(a={"env": ["novalue"]}), "env 'novalue'"),
        (spec(a={"mounts": [{"hostPath": "/x"}]}), "containerPath"),
        (spec(a={"hooks": [{"hookName": "later", "path": "/x"}]}), "hookName 'later'"),
        (spec(a={"intelRdt": {"closID": "x"}}), "containerEdits.intelRdt is not supported"),
    ],
)
def test_a_damaged_file_is_named_with_its_fault_and_spoils_no_other(tmp_path: Path, document: Any, reason: str) -> None:
    broken = write(tmp_path, "broken.json", document)
    write(tmp_path, "good.json", spec(kind="vendor.com/good", a={"env": ["OK=1"]}))
    registry = CdiRegistry([tmp_path])
    with pytest.raises(DeviceUnresolved) as error:
        registry.resolve(["vendor.com/gpu=a"])
    assert f"{broken}: " in str(error.value)
    assert reason in str(error.value)
    assert registry.resolve(["vendor.com/good=a"]).env == {"OK": "1"}


def test_an_unknown_device_names_the_id_and_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DeviceUnresolved) as error:
        CdiRegistry([tmp_path, tmp_path / "none"]).resolve(["vendor.com/gpu=a"])
    expected = f'CDI device "vendor.com/gpu=a": no spec file in {tmp_path}, {tmp_path}/none provides it'
    assert str(error.value) == expected


@pytest.mark.parametrize("device", ["", "gpu", "vendor.com=gpu", "vendor.com/gpu=", "vendor.com/gpu=a b"])
def test_what_is_no_id_is_told(tmp_path: Path, device: str) -> None:
    with pytest.raises(DeviceUnresolved, match="not of the form vendor"):
        CdiRegistry([tmp_path]).resolve([device])


def test_a_file_is_read_again_only_after_it_changed(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", spec(a={"env": ["V=1"]}))
    registry = CdiRegistry([tmp_path])
    assert registry.resolve(["vendor.com/gpu=a"]).env == {"V": "1"}
    path.write_text(json.dumps(spec(a={"env": ["V=2"]})))
    os.utime(path, ns=(1, 1))
    assert registry.resolve(["vendor.com/gpu=a"]).env == {"V": "2"}
    path.unlink()
    with pytest.raises(DeviceUnresolved):
        registry.resolve(["vendor.com/gpu=a"])
