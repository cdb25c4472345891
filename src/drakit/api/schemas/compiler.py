"""Compile schemas to shapes.

In:  the schemas of a group and version, and what `presence.json` adds to them.
Out: `shape_of("resource.k8s.io/v1", "ResourceClaim")`, made once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from threading import Lock
from typing import Any

from drakit.api import schemas
from drakit.api.schemas import Schema
from drakit.api.schemas.gotypes import go_type
from drakit.api.schemas.shapes import (
    AnyShape,
    BoolShape,
    BytesShape,
    IntOrTextShape,
    IntShape,
    ListShape,
    MapShape,
    NumberShape,
    QuantityShape,
    Shape,
    TextShape,
    TimeShape,
)
from drakit.api.schemas.structshapes import Field, StructShape
from drakit.api.text.times import canonical_micro_time, canonical_time

_COMPILING = Lock()
_LEAVES: dict[str, Shape] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QuantityShape("resource.Quantity"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": TimeShape(canonical_time),
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": TimeShape(canonical_micro_time),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": IntOrTextShape("intstr.IntOrString"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": AnyShape("runtime.RawExtension"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": AnyShape("v1.FieldsV1"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": AnyShape("v1.Patch"),
}


@cache
def shape_of(group_version: str, kind: str) -> StructShape:
    """The shape of a kind; KeyError when the group and version has no such kind."""
    for name, schema in schemas.load(group_version).items():
        if _declares(schema, group_version, kind):
            # A shape is known before its fields are: another thread must not see it meanwhile.
            with _COMPILING:
                shape = _compiler(group_version).named(name)
            if isinstance(shape, StructShape):
                return shape
    raise KeyError(f"{group_version} has no kind {kind}")


def _declares(schema: Schema, group_version: str, kind: str) -> bool:
    group, _, version = group_version.rpartition("/")
    wanted = {"group": group, "kind": kind, "version": version}
    return wanted in schema.get("x-kubernetes-group-version-kind", ())


@cache
def _compiler(group_version: str) -> _Compiler:
    return _Compiler(schemas.load(group_version))


class _Compiler:
    def __init__(self, documents: Mapping[str, Schema]) -> None:
        self._documents = documents
        self._done: dict[str, Shape] = dict(_LEAVES)

    def named(self, name: str) -> Shape:
        if name not in self._done:
            schema = self._documents[name]
            short = name.rpartition(".")[2]
            struct = StructShape(short, ".".join(name.split(".")[-2:]))
            self._done[name] = struct  # before its fields: one may lead back here
            struct.declare({field: self._field(name, schema, field) for field in schema.get("properties", {})})
        return self._done[name]

    def _field(self, struct: str, schema: Schema, name: str) -> Field:
        declared = schema["properties"][name]
        shape = self._shape(declared)
        shape.go = go_type(struct, name) or shape.go
        kept = _ruled("kept", struct, name)
        required = name in schema.get("required", ()) and not kept and not _ruled("omitted", struct, name)
        collection = isinstance(shape, ListShape | MapShape)
        if _ruled("null", struct, name) or (collection and required):
            return Field(shape, drop=collection, always=_nothing)
        if collection:
            return Field(shape, drop=True, always=None)
        if isinstance(shape, StructShape):
            nested = "default" in declared
            return Field(shape, drop=False, always=(lambda: shape.complete({})) if nested else None)
        if required or _ruled("written", struct, name):
            return Field(shape, drop=False, always=shape.zero)
        scalar = isinstance(shape, TextShape | BoolShape | IntShape | NumberShape | BytesShape)
        return Field(shape, drop=scalar and not kept, always=None)

    def _shape(self, declared: Mapping[str, Any]) -> Shape:
        reference = declared.get("$ref") or next((each["$ref"] for each in declared.get("allOf", ())), None)
        if reference is not None:
            return self.named(reference.rpartition("/")[2])
        match declared.get("type"), declared.get("format"):
            case "array", _:
                return ListShape(self._shape(declared["items"]))
            case "object", _ if "additionalProperties" in declared:
                return MapShape(self._shape(declared["additionalProperties"]))
            case "string", "byte":
                return BytesShape("[]uint8")
            case "string", _:
                return TextShape("string")
            case "integer", width:
                return IntShape(32 if width == "int32" else 64)
            case "boolean", _:
                return BoolShape("bool")
            case "number", _:
                return NumberShape("float64")
        return AnyShape("interface {}")


def _ruled(rule: str, struct: str, field: str) -> bool:
    return field in schemas.presence(rule).get(struct, ())


def _nothing() -> None:
    return None
