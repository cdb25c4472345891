"""The field structure of every served group and version, as OpenAPI schemas without descriptions.

In:  one compressed file per group and version, and `presence.json`: what the schemas leave open.
Out: for a group and version, its schemas by full name (`io.k8s.api.resource.v1.Device`), with drakit's own additions.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

Schema = Mapping[str, Any]

_SELECTOR = "io.k8s.api.resource.{version}.DeviceTaintSelector"
_POOL_STATUS = ("ResourcePoolStatusRequest", "PoolStatus")


def group_versions() -> tuple[str, ...]:
    """Every group and version that has schemas: `v1`, `apps/v1`, `resource.k8s.io/v1`, …"""
    names = (entry.name for entry in resources.files(__name__).iterdir())
    stems = sorted(name.removesuffix(".json.gz") for name in names if name.endswith(".json.gz"))
    return tuple(stem.replace("core__", "").replace("__", "/") for stem in stems)


@cache
def load(group_version: str) -> Mapping[str, Schema]:
    """The schemas of a group and version by full name. Nobody changes them."""
    schemas = _read(group_version)
    if group_version == "resource.k8s.io/v1beta2":
        schemas |= _pool_status_in_v1beta2()
    if group_version in ("resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3"):
        _select_by_class_and_expression(schemas, group_version.partition("/")[2])
    return schemas


def _read(group_version: str) -> dict[str, Schema]:
    stem = group_version.replace("/", "__") if "/" in group_version else f"core__{group_version}"
    packed = resources.files(__name__).joinpath(f"{stem}.json.gz").read_bytes()
    schemas: dict[str, Schema] = json.loads(gzip.decompress(packed))
    return schemas


def _pool_status_in_v1beta2() -> dict[str, Schema]:
    """ResourcePoolStatusRequest is also served in v1beta2, with the structure that it has in v1alpha3."""
    text = json.dumps({name: each for name, each in _read("resource.k8s.io/v1alpha3").items() if _is_pool_status(name)})
    moved: dict[str, Schema] = json.loads(
        text.replace(".resource.v1alpha3.", ".resource.v1beta2.").replace(
            '"version": "v1alpha3"', '"version": "v1beta2"'
        )
    )
    return moved


def _is_pool_status(name: str) -> bool:
    return name.rpartition(".")[2].startswith(_POOL_STATUS)


def _select_by_class_and_expression(schemas: dict[str, Schema], version: str) -> None:
    """DeviceTaintRules select by class and by CEL, too."""
    prefix = f"io.k8s.api.resource.{version}."
    name = _SELECTOR.format(version=version)
    selector = {"allOf": [{"$ref": f"#/components/schemas/{prefix}DeviceSelector"}], "default": {}}
    schemas[name] = {
        **schemas[name],
        "properties": {
            **schemas[name]["properties"],
            "deviceClassName": {"type": "string"},
            "selectors": {"items": selector, "type": "array", "x-kubernetes-list-type": "atomic"},
        },
    }
    expression = {"allOf": [{"$ref": f"#/components/schemas/{prefix}CELDeviceSelector"}]}
    schemas.setdefault(prefix + "DeviceSelector", {"properties": {"cel": expression}, "type": "object"})
    text = {"default": "", "type": "string"}
    schemas.setdefault(
        prefix + "CELDeviceSelector",
        {"properties": {"expression": text}, "required": ["expression"], "type": "object"},
    )


@cache
def presence(rule: str) -> Mapping[str, frozenset[str]]:
    """For `kept`, `null`, `written` or `omitted`: the fields under that rule by schema name. See presence.json."""
    text = resources.files(__name__).joinpath("presence.json").read_text(encoding="utf-8")
    return _with_moved({name: frozenset(fields) for name, fields in json.loads(text)[rule].items()})


def _with_moved(rules: dict[str, frozenset[str]]) -> Mapping[str, frozenset[str]]:
    moved = {name.replace(".v1alpha3.", ".v1beta2."): fields for name, fields in rules.items() if _is_pool_status(name)}
    selectors = {_SELECTOR.format(version=version) for version in ("v1alpha3", "v1beta2")}
    own = {name: rules[name] | {"deviceClassName"} for name in selectors & rules.keys()}
    return rules | moved | own
