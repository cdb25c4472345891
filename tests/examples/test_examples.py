"""Every manifest under examples/ is one that a strict server would take: known kinds, known fields, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from drakit.api import StrictError, decode_all, decode_file, encode, find_kind
from tests.examples.manifests import EXAMPLES, files, name_of, objects

each_file = pytest.mark.parametrize("path", files(), ids=name_of)


@each_file
def test_a_manifest_decodes_strictly(path: Path) -> None:
    decoded = decode_file(path, strict=True)
    assert [(each.kind.kind, each.problems) for each in decoded] == [(each["kind"], ()) for each in objects(path)]


@each_file
def test_the_kinds_of_a_manifest_are_served_in_the_version_it_uses(path: Path) -> None:
    for manifest in objects(path):
        kind = find_kind(manifest["apiVersion"], manifest["kind"])
        assert kind is not None
        assert kind.serves(manifest["apiVersion"])
        # A namespaced object says where it goes; an object of the whole cluster cannot.
        assert kind.namespaced == ("namespace" in manifest["metadata"])


@each_file
def test_a_manifest_survives_its_own_version_and_yaml(path: Path) -> None:
    for each in decode_file(path):
        again = decode_all(encode(each.object, each.version, syntax="yaml"), syntax="yaml")
        assert [other.object for other in again] == [each.object]


def test_a_misspelt_field_of_an_example_would_be_found() -> None:
    text = (EXAMPLES / "gpu-pod.yaml").read_text()
    assert "deviceClassName" in text
    with pytest.raises(StrictError, match=r'unknown field "spec.spec.devices.requests\[0\].exactly.deviceClass"'):
        decode_all(text.replace("deviceClassName", "deviceClass"))
