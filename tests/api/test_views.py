"""What fits the schema of a kind fits the view that is made of it: the server reads objects without making the view."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import inspect

from drakit.api import KINDS, Kind
from drakit.api.schemas.compiler import shape_of
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
from drakit.api.schemas.structshapes import StructShape
from drakit.base.quantity import Quantity

SIMPLE: dict[type[Shape], tuple[type[inspect.Type], ...]] = {
    TextShape: (inspect.StrType,),
    TimeShape: (inspect.StrType,),
    BytesShape: (inspect.StrType,),
    BoolShape: (inspect.BoolType,),
    IntShape: (inspect.IntType,),
    NumberShape: (inspect.FloatType,),
    IntOrTextShape: (inspect.IntType, inspect.StrType),
}
RAW = {"metadata.managedFields[].fieldsV1", "ControllerRevision.data"}
"""Raw JSON in the schema, an object in the view: the server makes the view of an object that has one."""


def misfits(info: inspect.Type, shape: Shape, place: str, seen: set[tuple[object, Shape]]) -> Iterator[str]:
    """Places where a value may have the shape and not the type."""
    options = info.types if isinstance(info, inspect.UnionType) else (info,)
    given = [each for each in options if not isinstance(each, inspect.NoneType)]
    if any(isinstance(each, inspect.AnyType) for each in given):
        return
    match given, shape:
        case [inspect.StructType() as struct], StructShape():
            yield from _in_struct(struct, shape, place, seen)
        case [inspect.VarTupleType() as some], ListShape():
            yield from misfits(some.item_type, shape.element, f"{place}[]", seen)
        case [inspect.DictType() as some], MapShape():
            yield from misfits(some.value_type, shape.element, f"{place}{{}}", seen)
        case [inspect.DictType(value_type=inspect.AnyType())], StructShape():
            return
        case [inspect.CustomType() as custom], QuantityShape() if custom.cls is Quantity:
            return
        case _ if set(map(type, given)) != set(SIMPLE.get(type(shape), ())):
            yield place


def _in_struct(
    struct: inspect.StructType, shape: StructShape, place: str, seen: set[tuple[object, Shape]]
) -> Iterator[str]:
    if (struct.cls, shape) in seen:
        return
    seen.add((struct.cls, shape))
    for field in struct.fields:
        here = f"{place}.{field.encode_name}" if place else field.encode_name
        if field.required or field.encode_name not in shape.fields:
            yield here
        else:
            yield from misfits(field.type, shape.fields[field.encode_name].shape, here, seen)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.fully_typed], ids=lambda kind: kind.qualified)
def test_whatever_fits_the_schema_fits_the_view(kind: Kind) -> None:
    found = misfits(inspect.type_info(kind.model), shape_of(kind.internal_version, kind.kind), "", set())
    assert not [place for place in found if place not in RAW and f"{kind.kind}.{place}" not in RAW]


def test_a_misfit_is_found() -> None:
    assert list(misfits(inspect.type_info(int), TextShape("string"), "a", set())) == ["a"]
    assert list(misfits(inspect.type_info(dict), AnyShape("raw"), "a", set())) == ["a"]
