"""Structs, shapes and schemas say the same about every field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from drakit.api import KINDS, Kind, schemas
from drakit.api.schemas.compiler import shape_of
from drakit.api.schemas.shapes import ListShape, MapShape, Shape
from drakit.api.schemas.structshapes import StructShape

ROOT = Path(__file__).parents[2]
OURS = ROOT / "src" / "drakit" / "api" / "schemas"
THEIRS = ROOT.parent / "shared" / "conformance" / "schemas"

WHOLE = [kind for kind in KINDS if kind.fully_typed]
PARTIAL = [kind for kind in KINDS if not kind.fully_typed]


def differences(info: inspect.Type, shape: Shape, path: str, *, whole: bool) -> Iterator[str]:
    """Fields that one side has and the other has not, all the way down."""
    if isinstance(info, inspect.UnionType):
        info = _without_none(info)
    if isinstance(info, inspect.StructType) and isinstance(shape, StructShape):
        fields = {field.encode_name: field.type for field in info.fields}
        yield from (f"{path}.{name}: not in the schema" for name in fields.keys() - shape.fields.keys())
        if whole:
            yield from (f"{path}.{name}: not in the struct" for name in shape.fields.keys() - fields.keys())
        for name in fields.keys() & shape.fields.keys():
            yield from differences(fields[name], shape.fields[name].shape, f"{path}.{name}", whole=whole)
    elif isinstance(info, inspect.VarTupleType) and isinstance(shape, ListShape):
        yield from differences(info.item_type, shape.element, f"{path}[]", whole=whole)
    elif isinstance(info, inspect.DictType) and isinstance(shape, MapShape):
        yield from differences(info.value_type, shape.element, f"{path}[]", whole=whole)
    elif not isinstance(info, inspect.AnyType) and kind_of_type(info) != kind_of_shape(shape):
        yield f"{path}: {kind_of_type(info)} in the struct, {kind_of_shape(shape)} in the schema"


def _without_none(info: inspect.UnionType) -> inspect.Type:
    rest = tuple(each for each in info.types if not isinstance(each, inspect.NoneType))
    return rest[0] if len(rest) == 1 else inspect.UnionType(rest)


def kind_of_type(info: inspect.Type) -> str:
    if isinstance(info, inspect.UnionType) and {type(each) for each in info.types} == {
        inspect.StrType,
        inspect.IntType,
    }:
        return "intortext"
    names: dict[Any, str] = {
        inspect.StrType: "text", inspect.IntType: "int", inspect.BoolType: "bool", inspect.CustomType: "quantity",
        inspect.DictType: "any", inspect.StructType: "struct", inspect.VarTupleType: "list",
    }  # fmt: skip
    return names[type(info)]


def kind_of_shape(shape: Shape) -> str:
    name = type(shape).__name__.removesuffix("Shape").lower()
    return {"time": "text", "bytes": "text", "map": "any"}.get(name, name)


@pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.kind)
def test_a_whole_kind_models_every_field_of_its_schema_and_no_other(kind: Kind) -> None:
    shape = shape_of(kind.internal_version, kind.kind)
    assert list(differences(inspect.type_info(kind.model), shape, kind.kind, whole=True)) == []


@pytest.mark.parametrize("kind", PARTIAL, ids=lambda kind: kind.qualified)
def test_a_view_models_only_fields_that_the_schema_has(kind: Kind) -> None:
    shape = shape_of(kind.internal_version, kind.kind)
    found = list(differences(inspect.type_info(kind.model), shape, kind.kind, whole=False))
    # Views keep some parts as raw JSON; those are no structs on purpose.
    assert [each for each in found if "any in the struct, struct in the schema" not in each] == []


def test_every_struct_field_has_a_default_so_that_a_missing_field_is_never_an_error() -> None:
    for kind in KINDS:
        kind.model()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.qualified)
def test_every_kind_has_a_shape_in_every_version_it_is_served_in(kind: Kind) -> None:
    for version in kind.versions:
        assert "metadata" in shape_of(kind.group_version(version), kind.kind).fields


@pytest.mark.parametrize("group_version", schemas.group_versions())
def test_every_schema_compiles(group_version: str) -> None:
    kinds = [
        declared["kind"]
        for schema in schemas.load(group_version).values()
        for declared in schema.get("x-kubernetes-group-version-kind", ())
        if group_version == f"{declared['group']}/{declared['version']}".lstrip("/")
    ]
    assert kinds
    for kind in kinds:
        assert shape_of(group_version, kind).fields


def test_presence_speaks_only_of_fields_that_exist() -> None:
    known = {name: schema for each in schemas.group_versions() for name, schema in schemas.load(each).items()}
    for rule in ("kept", "null", "written", "omitted"):
        for name, fields in schemas.presence(rule).items():
            assert fields <= known[name]["properties"].keys(), (rule, name)


def test_taint_rules_select_by_class_and_expression_in_both_versions() -> None:
    for version in ("v1alpha3", "v1beta2"):
        selector = schemas.load(f"resource.k8s.io/{version}")[f"io.k8s.api.resource.{version}.DeviceTaintSelector"]
        assert set(selector["properties"]) == {"deviceClassName", "driver", "pool", "device", "selectors"}


def test_pool_status_requests_have_one_structure_in_both_versions() -> None:
    older, newer = (shape_of(f"resource.k8s.io/{v}", "ResourcePoolStatusRequest") for v in ("v1alpha3", "v1beta2"))
    assert outline(older) == outline(newer)


def outline(shape: Shape) -> Any:
    if isinstance(shape, StructShape):
        return {
            name: (outline(field.shape), field.drop, field.always is not None) for name, field in shape.fields.items()
        }
    return outline(shape.element) if isinstance(shape, ListShape | MapShape) else type(shape).__name__


@pytest.mark.skipif(not THEIRS.is_dir(), reason="the recorded schemas are not beside this repository")
def test_the_schemas_are_the_recorded_ones() -> None:
    names = sorted(path.name for path in THEIRS.glob("*.json.gz"))
    assert names == sorted(path.name for path in OURS.glob("*.json.gz"))
    assert all((OURS / name).read_bytes() == (THEIRS / name).read_bytes() for name in names)


def test_an_unknown_kind_has_no_shape() -> None:
    with pytest.raises(KeyError, match=r"resource.k8s.io/v1 has no kind Nonsense"):
        shape_of("resource.k8s.io/v1", "Nonsense")


def test_structs_are_frozen_and_compare_by_value() -> None:
    for kind in KINDS:
        one, other = kind.model(), kind.model()
        assert one == other
        with pytest.raises(AttributeError):
            one.kind = "Other"  # type: ignore[attr-defined]
        assert msgspec.structs.replace(one, kind="Other") != other
