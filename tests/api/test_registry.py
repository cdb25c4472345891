"""Kinds are found by every name that they go by."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from drakit.api import (
    KINDS,
    DeviceClass,
    ResourceClaim,
    ResourceClaimSpec,
    deprecation,
    find_kind,
    find_plural,
    group_versions,
    kind_of,
    lookup,
    served_in,
)
from drakit.base.errors import Unsupported

DISCOVERY = Path(__file__).parents[1] / "conformance" / "data" / "api" / "discovery.jsonl.gz"


@pytest.mark.parametrize(
    "name",
    [
        "resourceclaims", "resourceclaim", "ResourceClaim", "RESOURCECLAIMS", "resourceclaims.resource.k8s.io",
        "resourceclaim.v1beta1.resource.k8s.io", "resourceclaims.resource",
    ],
)  # fmt: skip
def test_a_kind_is_found_by_any_of_its_names(name: str) -> None:
    assert lookup(name).model is ResourceClaim


@pytest.mark.parametrize(
    ("name", "kind"),
    [("po", "Pod"), ("no", "Node"), ("ns", "Namespace"), ("sa", "ServiceAccount"), ("cm", "ConfigMap"), ("ev", "Event"),
     ("quota", "ResourceQuota"), ("rs", "ReplicaSet"), ("rs.apps", "ReplicaSet"), ("svc", "Service"),
     ("pods.v1.", "Pod")],
)  # fmt: skip
def test_short_names_are_names(name: str, kind: str) -> None:
    assert lookup(name).kind == kind


def test_of_two_kinds_with_one_name_the_core_one_comes_first() -> None:
    assert lookup("events").group == ""
    assert lookup("events.events.k8s.io").group == "events.k8s.io"


def test_a_name_that_is_none_gives_names_that_come_close() -> None:
    with pytest.raises(
        Unsupported, match=r"doesn't have a resource type \"resourceclaimz\"; did you mean resourceclaim"
    ):
        lookup("resourceclaimz")


def test_a_qualified_name_in_a_version_that_is_not_served_gives_the_served_ones() -> None:
    with pytest.raises(Unsupported, match=r"did you mean resourceclaims\.v1\.resource\.k8s\.io"):
        lookup("resourceclaims.v3.resource.k8s.io")
    with pytest.raises(Unsupported, match="did you mean pods"):
        lookup("pods.core")


def test_kinds_are_found_by_group_version_and_kind_or_plural() -> None:
    claim = find_kind("resource.k8s.io/v1beta2", "ResourceClaim")
    assert claim is not None
    assert claim is find_plural("resource.k8s.io/v1", "resourceclaims")
    assert (claim.singular, claim.list_kind, claim.qualified) == (
        "resourceclaim", "ResourceClaimList", "resourceclaims.resource.k8s.io",
    )  # fmt: skip
    assert claim.subresource("status") is not None
    assert claim.subresource("scale") is None
    assert find_kind("resource.k8s.io/v1", "DeviceTaintRule") is None
    assert find_plural("v1", "nonsense") is None


def test_a_struct_knows_its_kind() -> None:
    assert kind_of(ResourceClaim).plural == "resourceclaims"
    assert kind_of(DeviceClass()).namespaced is False
    with pytest.raises(Unsupported, match="ResourceClaimSpec is no kind of its own"):
        kind_of(ResourceClaimSpec)


def test_names_lead_to_one_kind_only() -> None:
    for group_version in group_versions():
        kinds = served_in(group_version)
        names = [name for kind in kinds for name in {kind.plural, kind.singular, *kind.short_names}]
        assert len(names) == len(set(names)), group_version


def test_models_name_the_internal_version_of_their_kind() -> None:
    for kind in KINDS:
        made = kind.model()
        if made.kind:  # type: ignore[attr-defined]
            assert (made.kind, made.api_version) == (kind.kind, kind.internal_version)  # type: ignore[attr-defined]
        assert kind.internal in kind.versions


def test_taint_rules_and_pool_status_requests_are_served_in_v1beta2_and_v1alpha3() -> None:
    for plural in ("devicetaintrules", "resourcepoolstatusrequests"):
        assert set(lookup(plural).versions) == {"v1beta2", "v1alpha3"}


def discovered() -> list[dict[str, object]]:
    cases = [json.loads(line) for line in gzip.decompress(DISCOVERY.read_bytes()).splitlines()]
    bodies = [answer["body"] for case in cases for answer in case["expect"] if isinstance(answer["body"], dict)]
    return [body for body in bodies if body.get("kind") == "APIResourceList"]


@pytest.mark.parametrize("body", discovered(), ids=lambda body: body["groupVersion"])
def test_the_registry_says_what_a_server_says_in_discovery(body: dict[str, object]) -> None:
    ours = []
    for kind in served_in(str(body["groupVersion"])):
        resource = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
        }
        ours.append({**resource, "verbs": list(kind.verbs)})
        ours += [
            {**resource, "name": f"{kind.plural}/{sub.name}", "singularName": "", "verbs": list(sub.verbs)}
            for sub in kind.subresources
        ]
    resources: list[dict[str, object]] = body["resources"]  # type: ignore[assignment]
    theirs = [{name: value for name, value in each.items() if name != "storageVersionHash"} for each in resources]
    assert ours == theirs


@pytest.mark.parametrize(
    ("group_version", "kind", "text"),
    [
        ("resource.k8s.io/v1", "ResourceClaim", None),
        ("v1", "Pod", None),
        ("resource.k8s.io/v1beta1", "ResourceClaim", "deprecated in v1.35+, unavailable in v1.38+"),
        ("resource.k8s.io/v1beta2", "ResourceSlice", "deprecated in v1.36+, unavailable in v1.39+"),
        ("resource.k8s.io/v1beta2", "DeviceTaintRule", None),  # from v1.39 on
        ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", None),
        ("resource.k8s.io/v1alpha3", "DeviceTaintRule", "deprecated in v1.36+, unavailable in v1.39+"),
    ],
)
def test_deprecations_are_announced_once_the_release_has_come(group_version: str, kind: str, text: str | None) -> None:
    said = deprecation(group_version, kind)
    assert said == (text and f"{group_version} {kind} is {text}")
