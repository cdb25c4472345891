"""OpenAPI documents: complete, consistent, and in the form that kubectl looks for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drakit.api.registry import KINDS, group_versions
from drakit.apiserver import openapi
from tests.conformance.vectors import read_vectors

CASES = Path(__file__).parents[2] / "conformance" / "data" / "api" / "discovery.jsonl.gz"
RESOURCE = [each for each in group_versions() if each.startswith("resource.k8s.io/")]
METHODS = ("get", "post", "put", "patch", "delete")


def document(group_version: str) -> dict[str, Any]:
    group, _, version = group_version.rpartition("/")
    return openapi.document(group, version)


def operations(group_version: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document(group_version)["paths"].items():
        yield from ((path, method, item[method]) for method in METHODS if method in item)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from [each.rpartition("/")[2]] if key == "$ref" else references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


@pytest.mark.parametrize("group_version", group_versions())
def test_every_reference_leads_somewhere(group_version: str) -> None:
    found = document(group_version)
    assert set(references(found)) <= set(found["components"]["schemas"])


@pytest.mark.parametrize("group_version", group_versions())
def test_every_operation_has_an_id_of_its_own(group_version: str) -> None:
    identifiers = [operation["operationId"] for _, _, operation in operations(group_version)]
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("group_version", group_versions())
def test_path_parameters_are_declared(group_version: str) -> None:
    for path, item in document(group_version)["paths"].items():
        declared = {each["name"] for each in item.get("parameters", []) if each["in"] == "path"}
        assert declared == {part[1:-1] for part in path.split("/") if part.startswith("{")}


@pytest.mark.parametrize("group_version", group_versions())
def test_every_patch_takes_field_validation(group_version: str) -> None:
    """kubectl looks at the first PATCH of a kind to find out whether the server validates fields."""
    for _, method, operation in operations(group_version):
        names = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
        if method == "patch" and operation["x-kubernetes-action"] != "connect":
            assert names == {"dryRun", "fieldManager", "fieldValidation", "force"}
        elif method in ("post", "put") and operation["x-kubernetes-action"] != "connect":
            assert names == {"dryRun", "fieldManager", "fieldValidation"}


def test_every_served_kind_has_paths_and_a_schema() -> None:
    for kind in KINDS:
        for version in kind.versions:
            found = document(kind.group_version(version))
            named = {"group": kind.group, "kind": kind.kind, "version": version}
            about = [op["x-kubernetes-group-version-kind"] for _, _, op in operations(kind.group_version(version))
                     if "x-kubernetes-group-version-kind" in op]  # fmt: skip
            assert named in about
            declared = [
                each for schema in found["components"]["schemas"].values()
                for each in schema.get("x-kubernetes-group-version-kind", [])
            ]  # fmt: skip
            assert named in declared


def test_actions_and_ids_are_those_that_generators_know() -> None:
    found = {
        op["operationId"]: op["x-kubernetes-action"] for _, _, op in operations("v1") if "x-kubernetes-action" in op
    }
    for identifier, action in {
        "listCoreV1NamespacedPod": "list",
        "createCoreV1NamespacedPod": "post",
        "deleteCoreV1CollectionNamespacedPod": "deletecollection",
        "readCoreV1NamespacedPod": "get",
        "replaceCoreV1NamespacedPodStatus": "put",
        "patchCoreV1Node": "patch",
        "deleteCoreV1Namespace": "delete",
        "listCoreV1PodForAllNamespaces": "list",
        "watchCoreV1NamespacedPodList": "watchlist",
        "createCoreV1NamespacedPodBinding": "post",
        "createCoreV1NamespacedPodEviction": "post",
        "connectCoreV1GetNamespacedPodExec": "connect",
    }.items():
        assert found[identifier] == action


def test_a_subresource_names_its_own_kind() -> None:
    paths = document("v1")["paths"]
    eviction = paths["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]
    assert eviction["x-kubernetes-group-version-kind"] == {"group": "policy", "kind": "Eviction", "version": "v1"}
    reference = eviction["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert reference.endswith("io.k8s.api.policy.v1.Eviction")


def test_strategies_of_patches_are_in_the_document() -> None:
    schemas = document("resource.k8s.io/v1")["components"]["schemas"]
    reserved = schemas["io.k8s.api.resource.v1.ResourceClaimStatus"]["properties"]["reservedFor"]
    assert reserved["x-kubernetes-patch-merge-key"] == "uid"
    assert reserved["x-kubernetes-patch-strategy"] == "merge"


def reachable(group_version: str) -> set[str]:
    """The types that objects of the group are made of."""
    schemas = document(group_version)["components"]["schemas"]
    todo = [name for name in schemas if ".resource." in name and "x-kubernetes-group-version-kind" in schemas[name]]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += references(schemas[name])
    return seen


@pytest.mark.parametrize("group_version", RESOURCE)
def test_every_field_of_the_resource_group_is_described(group_version: str) -> None:
    schemas = document(group_version)["components"]["schemas"]
    for name in reachable(group_version):
        assert schemas[name].get("description"), name
        for field, each in schemas[name].get("properties", {}).items():
            assert each.get("description"), f"{name}.{field}"


@pytest.mark.parametrize("group_version", group_versions())
def test_every_field_of_every_kind_is_described(group_version: str) -> None:
    schemas = document(group_version)["components"]["schemas"]
    for name, schema in schemas.items():
        for field, each in schema.get("properties", {}).items():
            assert each.get("description"), f"{name}.{field}"


def test_every_kind_is_described() -> None:
    for kind in KINDS:
        for version in kind.versions:
            name = schema_of(kind.group_version(version), kind.kind)
            schema = document(kind.group_version(version))["components"]["schemas"][name]
            assert schema.get("description") or set(kind.verbs) == {"create"}, name


def schema_of(group_version: str, kind: str) -> str:
    group, _, version = group_version.rpartition("/")
    wanted = {"group": group, "kind": kind, "version": version}
    found: dict[str, Any] = document(group_version)["components"]["schemas"]
    return next(name for name, each in found.items() if wanted in each.get("x-kubernetes-group-version-kind", ()))


def test_descriptions_of_other_groups_speak_of_what_exists() -> None:
    every = [schema for each in group_versions() for schema in document(each)["components"]["schemas"].items()]
    names = {name.rpartition(".")[2] for name, _ in every}
    fields = {field for _, schema in every for field in schema.get("properties", {})}
    text = (Path(openapi.__file__).parent / "descriptions.json").read_text()
    found = json.loads(text)
    assert found["others"].keys() <= names
    assert found["fields"].keys() <= fields


def test_descriptions_speak_of_fields_that_exist() -> None:
    known: dict[str, set[str]] = {}
    for group_version in RESOURCE:
        for name, schema in document(group_version)["components"]["schemas"].items():
            known.setdefault(name.rpartition(".")[2], set()).update(schema.get("properties", {}))
    text = (Path(openapi.__file__).parent / "descriptions.json").read_text()
    for name, fields in json.loads(text)["types"].items():
        assert name == "*" or fields.keys() - {""} <= known[name], name


def recorded() -> list[Any]:
    cases = [case for case in read_vectors([CASES]) if "/openapi/v3/" in case["steps"][0]["path"]]
    projected = [case for case in cases if case["steps"][0].get("project")]
    assert len(projected) >= 5
    return [pytest.param(case, id=case["id"]) for case in projected]


@pytest.mark.parametrize("case", recorded())
def test_paths_and_schemas_are_those_of_a_real_server(case: dict[str, Any]) -> None:
    step = case["steps"][0]
    found: Any = document("/".join(step["path"].split("/")[-2:]))
    for key in step["project"].removeprefix("keys:").split("."):
        found = found[key]
    assert sorted(found) == case["expect"][0]["body"]["keys"]


def test_the_index_leads_to_every_document_by_its_hash() -> None:
    paths = openapi.index()["paths"]
    assert set(paths) == {f"apis/{each}" if "/" in each else f"api/{each}" for each in group_versions()}
    body, tag = openapi.encoded("resource.k8s.io/v1")
    assert json.loads(body) == document("resource.k8s.io/v1")
    address = paths["apis/resource.k8s.io/v1"]["serverRelativeURL"]
    assert address == f"/openapi/v3/apis/resource.k8s.io/v1?hash={tag}"


def test_the_index_can_be_limited_to_what_is_served() -> None:
    assert list(openapi.index(["v1"])["paths"]) == ["api/v1"]


def test_a_version_that_is_not_served_has_no_document() -> None:
    with pytest.raises(KeyError):
        openapi.document("none", "v1")
