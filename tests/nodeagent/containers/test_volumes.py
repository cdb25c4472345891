"""Volumes as directories, and where containers see them."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from drakit.base.clock import FakeClock
from drakit.nodeagent.containers.failures import ConfigUnavailable, MountFailed, VolumeRefused
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from drakit.nodeagent.containers.mounts import mounts_of
from drakit.nodeagent.containers.volumes import VolumeStore
from drakit.nodeagent.runtimes.contract import BindMount, RuntimeRefusal
from tests.nodeagent.containers.pods import Objects, container, stored_pod


class Scene:
    def __init__(self, base: Path) -> None:
        self.clock = FakeClock()
        self.objects = Objects(clock=self.clock)
        self.store = VolumeStore(base / "pods", objects=self.objects, clock=self.clock, memory_root=base / "memory")

    def set_up(self, *volumes: dict[str, Any], **changes: Any) -> dict[str, Path]:
        whole = stored_pod(volumes=list(volumes), serviceAccountName="robot", **changes)
        return asyncio.run(self.store.set_up(whole, NodeFacts()))

    def refresh(self, *volumes: dict[str, Any], **changes: Any) -> bool:
        whole = stored_pod(volumes=list(volumes), serviceAccountName="robot", **changes)
        return asyncio.run(self.store.refresh(whole, NodeFacts()))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def files(path: Path) -> dict[str, str]:
    visible = [entry for entry in path.rglob("*") if not any(p.startswith("..") for p in entry.relative_to(path).parts)]
    return {str(entry.relative_to(path)): entry.read_text() for entry in visible if entry.is_file()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_empty_directory_is_for_everybody_and_stays(scene: Scene) -> None:
    path = scene.set_up({"name": "cache", "emptyDir": {}})["cache"]
    (path / "file").write_text("kept")
    assert (mode(path), path.parent.name) == (0o777, "kubernetes.io~empty-dir")
    assert files(scene.set_up({"name": "cache", "emptyDir": {}})["cache"]) == {"file": "kept"}


def test_an_empty_directory_in_memory_is_where_memory_is(scene: Scene, tmp_path: Path) -> None:
    path = scene.set_up({"name": "fast", "emptyDir": {"medium": "Memory"}})["fast"]
    assert path.is_relative_to(tmp_path / "memory")
    scene.store.tear_down("u-1")
    assert not path.exists()


def test_nothing_of_a_pod_is_left_after_its_end(scene: Scene, tmp_path: Path) -> None:
    scene.set_up({"name": "cache", "emptyDir": {}})
    (tmp_path / "pods" / "u-1" / "containers" / "main").mkdir(parents=True)
    scene.store.tear_down("u-1")
    scene.store.tear_down("u-1")
    assert list((tmp_path / "pods").iterdir()) == []


def test_of_pods_that_are_gone_nothing_is_kept_on_disk_or_in_memory(scene: Scene, tmp_path: Path) -> None:
    for root in (tmp_path / "pods", tmp_path / "memory"):
        for uid in ("here", "gone"):
            (root / uid / "volumes").mkdir(parents=True)
    scene.store.keep_only({"here"})
    assert [each.name for each in (tmp_path / "pods").iterdir()] == ["here"]
    assert [each.name for each in (tmp_path / "memory").iterdir()] == ["here"]


def test_memory_is_shared_memory_by_default_and_apart_for_each_store(tmp_path: Path) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("this machine has no /dev/shm")
    whole = stored_pod(volumes=[{"name": "fast", "emptyDir": {"medium": "Memory"}}])
    stores = [VolumeStore(tmp_path / name, objects=Objects(), clock=FakeClock()) for name in ("a", "b")]
    places = [asyncio.run(store.set_up(whole, NodeFacts()))["fast"] for store in stores]
    assert places[0] != places[1]
    assert all(place.is_relative_to("/dev/shm") for place in places)
    for store in stores:
        store.tear_down("u-1")
    assert not any(place.parents[1].exists() for place in places)


def test_a_directory_that_cannot_be_made_is_told(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "pods").write_text("in the way")
    with pytest.raises(MountFailed, match=r'MountVolume\.SetUp failed for volume "cache" : .*Not a directory'):
        scene.set_up({"name": "cache", "emptyDir": {}})


def test_a_config_map_becomes_files_and_follows_its_object(scene: Scene) -> None:
    scene.objects.config_maps["settings"] = {"a": b"1", "b": b"2"}
    volume = {"name": "v", "configMap": {"name": "settings", "defaultMode": 0o600}}
    path = scene.set_up(volume)["v"]
    link = path / "a"
    assert (files(path), mode(link)) == ({"a": "1", "b": "2"}, 0o600)
    assert scene.refresh(volume) is False
    scene.objects.config_maps["settings"] = {"a": b"new", "c": b"3"}
    assert scene.refresh(volume) is True
    assert files(path) == {"a": "new", "c": "3"}
    assert link.is_symlink()
    assert len([entry for entry in path.iterdir() if entry.name.startswith("..")]) == 2  # ..data and its moment


def test_items_choose_keys_paths_and_modes(scene: Scene) -> None:
    scene.objects.secrets["key"] = {"tls": b"x", "other": b"y"}
    items = [{"key": "tls", "path": "certs/tls.pem", "mode": 0o400}]
    path = scene.set_up({"name": "v", "secret": {"secretName": "key", "items": items}})["v"]
    assert (files(path.resolve() / "..data"), mode(path / "certs/tls.pem")) == ({"certs/tls.pem": "x"}, 0o400)


def test_what_is_optional_may_be_missing(scene: Scene) -> None:
    volume = {"name": "v", "configMap": {"name": "none", "optional": True}}
    assert files(scene.set_up(volume)["v"]) == {}


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "none"}}, 'MountVolume.SetUp failed for volume "v" : configmap "none" not found'),
        ({"secret": {"secretName": "none"}}, 'MountVolume.SetUp failed for volume "v" : secret "none" not found'),
        (
            {"configMap": {"name": "some", "items": [{"key": "no", "path": "x"}]}},
            'MountVolume.SetUp failed for volume "v" : references non-existent configmap key: no',
        ),
        (
            {"hostPath": {"path": "/etc/hostname", "type": "Directory"}},
            'MountVolume.SetUp failed for volume "v" : hostPath type check failed: /etc/hostname is not a directory',
        ),
    ],
)
def test_what_is_missing_is_told_and_tried_again(scene: Scene, volume: dict[str, Any], message: str) -> None:
    scene.objects.config_maps["some"] = {}
    with pytest.raises(MountFailed) as error:
        scene.set_up({"name": "v"} | volume)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"persistentVolumeClaim": {"claimName": "d"}}, 'volume "v": persistentVolumeClaim volumes are not supported'),
        ({"nfs": {"server": "s", "path": "/"}}, 'volume "v": nfs volumes are not supported by this node'),
        ({"emptyDir": {"medium": "HugePages"}}, 'volume "v": emptyDir medium HugePages is not supported'),
        ({"projected": {"sources": [{"podCertificate": {}}]}}, 'volume "v": projected source podCertificate is not'),
        ({"configMap": {"name": "some", "items": [{"key": "a", "path": "../x"}]}}, 'path "../x" leaves the volume'),
        ({"hostPath": {"path": "/tmp/../etc"}}, 'hostPath "/tmp/../etc" must be absolute and without'),
    ],
)
def test_what_this_node_cannot_do_is_refused(scene: Scene, volume: dict[str, Any], message: str) -> None:
    scene.objects.config_maps["some"] = {"a": b""}
    with pytest.raises(VolumeRefused) as error:
        scene.set_up({"name": "v"} | volume)
    assert message in str(error.value)


def test_a_projected_volume_has_all_its_sources(scene: Scene) -> None:
    scene.objects.config_maps["ca"] = {"ca.crt": b"CA"}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    path = scene.set_up({"name": "v", "projected": {"sources": sources}})["v"]
    assert files(path) == {"token": "token-1", "ca.crt": "CA", "namespace": "shop"}
    assert scene.objects.asked[0] == "token shop/robot for  3607"


def test_a_token_is_renewed_after_most_of_its_time(scene: Scene) -> None:
    source = {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 1000}}
    volume = {"name": "v", "projected": {"sources": [source]}}
    path = scene.set_up(volume)["v"]
    scene.clock.advance(799)
    assert scene.refresh(volume) is False
    scene.clock.advance(2)
    assert scene.refresh(volume) is True
    assert files(path) == {"token": "token-2"}


def test_labels_of_a_downward_volume_follow_the_pod(scene: Scene) -> None:
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    volume = {"name": "v", "downwardAPI": {"items": items}}
    path = scene.set_up(volume, metadata={"labels": {"b": "2", "a": 'x"y'}})["v"]
    assert files(path) == {"labels": 'a="x\\"y"\nb="2"'}
    assert scene.refresh(volume, metadata={"labels": {"a": "new"}}) is True
    assert files(path) == {"labels": 'a="new"'}


def test_resources_of_a_named_container_in_a_downward_volume(scene: Scene) -> None:
    reference = {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}
    volume = {"name": "v", "downwardAPI": {"items": [{"path": "cpu", "resourceFieldRef": reference}]}}
    whole = stored_pod(container(resources={"limits": {"cpu": "2"}}), volumes=[volume])
    path = asyncio.run(scene.store.set_up(whole, NodeFacts()))["v"]
    assert files(path) == {"cpu": "2000"}


@pytest.mark.parametrize(("kind", "is_directory"), [("DirectoryOrCreate", True), ("FileOrCreate", False), ("", True)])
def test_a_host_path_is_made_where_its_type_says(scene: Scene, tmp_path: Path, kind: str, is_directory: bool) -> None:
    place = tmp_path / "made"
    assert scene.set_up({"name": "v", "hostPath": {"path": str(place), "type": kind}})["v"] == place
    assert place.is_dir() is is_directory
    scene.store.tear_down("u-1")
    assert place.exists()


def test_mounts_name_volume_path_and_mode(tmp_path: Path) -> None:
    subject = container(
        volumeMounts=[
            {"name": "v", "mountPath": "/data", "readOnly": True},
            {"name": "v", "mountPath": "/sub", "subPath": "a/b"},
            {"name": "v", "mountPath": "/expr", "subPathExpr": "$(POD)", "mountPropagation": "HostToContainer"},
        ]
    )
    assert mounts_of(subject, {"v": tmp_path}, {"POD": "web"}) == [
        BindMount(str(tmp_path), "/data", read_only=True),
        BindMount(str(tmp_path / "a" / "b"), "/sub"),
        BindMount(str(tmp_path / "web"), "/expr", propagation="HostToContainer"),
    ]
    assert (tmp_path / "a" / "b").is_dir()


def test_a_sub_path_never_leaves_its_volume(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "link").symlink_to("/etc")
    for inner, message in (
        ("link/ssh", "leads out of its volume"),
        ("../x", "must be relative"),
        ("/x", "must be rel"),
    ):
        subject = container(volumeMounts=[{"name": "v", "mountPath": "/d", "subPath": inner}])
        with pytest.raises(RuntimeRefusal, match=message):
            mounts_of(subject, {"v": tmp_path / "v"}, {})


def test_a_sub_path_of_a_config_map_is_the_file_itself(scene: Scene) -> None:
    scene.objects.config_maps["settings"] = {"app.conf": b"x"}
    path = scene.set_up({"name": "v", "configMap": {"name": "settings"}})["v"]
    subject = container(volumeMounts=[{"name": "v", "mountPath": "/etc/app.conf", "subPath": "app.conf"}])
    (mount,) = mounts_of(subject, {"v": path}, {})
    assert Path(mount.host_path).read_text() == "x"
    assert not Path(mount.host_path).is_symlink()


def test_mounts_without_volume_or_value_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigUnavailable, match='cannot find volume "no" to mount into container "main"'):
        mounts_of(container(volumeMounts=[{"name": "no", "mountPath": "/x"}]), {}, {})
    subject = container(volumeMounts=[{"name": "v", "mountPath": "/x", "subPathExpr": "$(NO)"}])
    with pytest.raises(ConfigUnavailable, match="missing value for NO"):
        mounts_of(subject, {"v": tmp_path}, {})
