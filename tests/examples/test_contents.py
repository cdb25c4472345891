"""The folder of examples is what its README says, and each file stands by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.examples.manifests import EXAMPLES, Manifest, files, listed_files, name_of, objects, values_of

README = EXAMPLES / "README.md"
ROW = re.compile(
    r"^\| \[(?P<label>[^]]+)]\((?P<target>[^)]+)\) \| (?P<source>[^|]+) \| (?P<shows>[^|]+) \|$", re.MULTILINE
)
DOCUMENTS = ("KEP-4381", "KEP-5075", "KEP-5004", "KEP-5517", "concept page", "Kubernetes documentation")

each_listed_file = pytest.mark.parametrize("path", listed_files(), ids=name_of)


def test_the_readme_lists_exactly_the_files_that_exist() -> None:
    rows = list(ROW.finditer(README.read_text()))
    targets = [row["target"] for row in rows]
    assert sorted(targets) == [name_of(path) for path in listed_files()]
    assert [row["label"] for row in rows] == targets
    assert [row["target"] for row in rows if not any(document in row["source"] for document in DOCUMENTS)] == []


@each_listed_file
def test_a_file_opens_with_what_it_shows_and_where_it_is_from(path: Path) -> None:
    opening = [line for line in path.read_text().splitlines()[:3] if line.startswith("# ")]
    assert 1 <= len(opening) <= 2
    assert any(document in " ".join(opening) for document in DOCUMENTS)


@each_listed_file
def test_a_file_brings_the_classes_that_its_requests_name(path: Path) -> None:
    manifests = objects(path)
    asked = {name for manifest in manifests for name in values_of(manifest, "deviceClassName")}
    assert asked <= names(manifests, "DeviceClass")


@each_listed_file
def test_a_file_brings_the_claims_and_templates_that_its_pods_name(path: Path) -> None:
    manifests = objects(path)
    entries = [entry for manifest in manifests for spec in values_of(manifest, "spec") for entry in claim_entries(spec)]
    claims = {entry["resourceClaimName"] for entry in entries if "resourceClaimName" in entry}
    templates = {entry["resourceClaimTemplateName"] for entry in entries if "resourceClaimTemplateName" in entry}
    assert claims <= names(manifests, "ResourceClaim")
    assert templates <= names(manifests, "ResourceClaimTemplate")


@each_listed_file
def test_the_slices_of_a_pool_agree_and_are_all_there(path: Path) -> None:
    pools: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for manifest in objects(path):
        if manifest["kind"] == "ResourceSlice":
            spec = manifest["spec"]
            pool = spec["pool"]
            entry = (pool["generation"], pool["resourceSliceCount"])
            pools.setdefault((spec["driver"], pool["name"]), []).append(entry)
    for entries in pools.values():
        assert len(set(entries)) == 1
        assert entries[0][1] == len(entries)


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_no_object_comes_twice_in_a_file(path: Path) -> None:
    keys = [
        (manifest["apiVersion"], manifest["kind"], manifest["metadata"].get("namespace"), manifest["metadata"]["name"])
        for manifest in objects(path)
    ]
    assert keys
    assert len(set(keys)) == len(keys)


def test_the_scheduler_configuration_in_its_config_map_is_whole() -> None:
    (config_map,) = objects(EXAMPLES / "binding-conditions" / "scheduler-timeout.yaml")
    configuration = yaml.safe_load(config_map["data"]["config.yaml"])
    assert configuration["kind"] == "KubeSchedulerConfiguration"
    (plugin,) = configuration["profiles"][0]["pluginConfig"]
    assert plugin["args"]["bindingTimeout"] == "60s"


def names(manifests: list[Manifest], kind: str) -> set[str]:
    return {manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == kind}


def claim_entries(spec: object) -> list[Manifest]:
    return list(spec.get("resourceClaims", ())) if isinstance(spec, dict) else []
