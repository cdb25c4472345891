"""Files, directories and dumps become typed objects, or problems with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drakit.api import DeviceClass, Pod, ResourceClaim, ResourceSlice
from drakit.manifests import BadManifests, load_manifests, read_manifests

CLASS = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n"
CLAIM = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata:\n  name: c\nspec: {}\n"
WRONG_TYPE = "json: cannot unmarshal number into Go struct field ResourceClaimSpec.spec.devices of type v1.DeviceClaim"
SLICE = {
    "metadata": {"name": "s"},
    "spec": {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}},
}


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def problems(*paths: str) -> list[str]:
    with pytest.raises(BadManifests) as caught:
        read_manifests(paths)
    return [str(each) for each in caught.value.problems]


def test_a_folder_is_read_in_the_order_of_its_files_with_those_below_it(tmp_path: Path) -> None:
    write(tmp_path, "b/claim.yml", CLAIM)
    write(tmp_path, "a.yaml", CLASS)
    write(tmp_path, "notes.txt", "no manifest")
    found = read_manifests([tmp_path])
    assert [each.title for each in found.objects] == ["DeviceClass gpu", "ResourceClaim c"]
    assert found.of(DeviceClass)[0].metadata.name == "gpu"


def test_an_object_without_a_namespace_gets_the_one_that_kubectl_gives(tmp_path: Path) -> None:
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: []}\n"
    found = read_manifests([write(tmp_path, "it.yaml", CLAIM + pod + "---\n" + CLASS)])
    assert found.of(ResourceClaim)[0].metadata.namespace == "default"
    assert found.of(Pod)[0].metadata.namespace == "default"
    assert found.of(DeviceClass)[0].metadata.namespace == ""


def test_a_dump_of_everything_gives_what_is_known_and_counts_the_rest(tmp_path: Path) -> None:
    deployment = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    typed = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSliceList", "items": [SLICE]}
    mixed = {"apiVersion": "v1", "kind": "List", "items": [deployment]}
    # `kubectl cluster-info dump` writes one JSON document after the other.
    found = read_manifests([write(tmp_path, "dump.json", json.dumps(typed) + "\n" + json.dumps(mixed))])
    assert [each.view for each in found.objects] == found.of(ResourceSlice)
    assert (len(found.objects), found.skipped) == (1, 1)


def test_standard_input_is_read_where_it_is_offered() -> None:
    found = read_manifests(["-"], stdin=CLASS.encode)
    assert found.objects[0].place == "standard input: DeviceClass gpu"


def test_every_problem_has_its_file_and_line(tmp_path: Path) -> None:
    wrong = write(tmp_path, "wrong.yaml", CLAIM.replace("spec: {}", "spec:\n  devices: 7\n  nick: x"))
    kind = write(tmp_path, "kind.yaml", CLASS.replace("DeviceClass", "Klass"))
    text = write(tmp_path, "text.yaml", "a: [\n")
    twice = write(tmp_path, "twice.yaml", CLASS + "---\n" + CLASS)
    missing = str(tmp_path / "missing.yaml")
    assert problems(wrong, kind, text, missing, twice) == [
        f"{missing}: No such file or directory",
        f"{text}: line 2, column 1: {malformed(text)}",
        f"{wrong}: line 6, column 3: spec.devices: {WRONG_TYPE}",
        f'{wrong}: line 7, column 3: unknown field "spec.nick"',
        f'{kind}: line 2, column 1: no kind "Klass" is registered for version "resource.k8s.io/v1"',
        f"{twice}: line 8, column 12: DeviceClass gpu: is there twice, first as {twice}: DeviceClass gpu",
    ]


def malformed(path: str) -> str:
    return next(each.reason for each in load_manifests([path]).problems)


def test_an_object_is_kept_without_what_had_the_wrong_type_and_says_so(tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [{**json.loads(json.dumps(SLICE)), "apiVersion": "resource.k8s.io/v1"}]
    items[0]["kind"] = "ResourceSlice"
    items[0]["spec"]["devices"] = [{"name": "a"}, 5, {"name": "b"}]
    path = write(tmp_path, "it.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1))
    found = load_manifests([path])
    (manifest,) = found.objects
    assert manifest.omitted == ("spec.devices[1]",)
    assert [each.field for each in found.problems] == ["items[0].spec.devices[1]"]
    assert found.problems[0].line > 0
