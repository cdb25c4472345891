"""Objects of every kind, drawn from the shapes that decode them: what the schemas allow, nothing more."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from drakit.api import Kind, decode_plain
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
from drakit.api.text.times import canonical_micro_time

Plain = dict[str, Any]

# Any character that UTF-8 has; half of a surrogate pair is none.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
WORDS = st.sampled_from(
    ["y", "no", "on", "null", "~", "1e3", "014", "<<", "0x1F", ".5", "1_000", "a: b", "# c", "- d", "%e"]
)
QUANTITIES = st.builds(
    "{}{}".format, st.integers(0, 10**9), st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E6", "n"])
)
TIMES = (
    st.datetimes()
    .filter(lambda instant: instant.year > 1)
    .map(lambda instant: f"{instant:%Y-%m-%dT%H:%M:%SZ}".rjust(20, "0"))
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


# An exact request that says nothing at all has no form in v1beta1; taints and node selectors are never so empty.
NEEDED = {
    "ExactDeviceRequest": ("deviceClassName",),
    "DeviceTaint": ("key", "effect"),
    "DeviceTaintRuleSpec": ("taint",),
    "NodeSelector": ("nodeSelectorTerms",),
    "NodeSelectorRequirement": ("key", "operator"),
}


# Where v1beta1 has no way to say: empty, false.
SAID = {"ResourceSliceSpec": ("nodeName", "allNodes")}


@cache
def values(shape: Shape) -> st.SearchStrategy[Any]:
    """What `shape` reads without complaint."""
    match shape:
        case StructShape():
            return structs(shape)
        case ListShape():
            return st.lists(st.deferred(lambda: values(shape.element)), max_size=2)
        case MapShape():
            return st.dictionaries(TEXTS, st.deferred(lambda: values(shape.element)), max_size=2)
        case TextShape():
            return TEXTS | WORDS
        case BoolShape():
            return st.booleans()
        case IntShape():
            limit = 1 << (31 if shape.go == "int32" else 63)
            return st.integers(-limit, limit - 1)
        case IntOrTextShape():
            return st.integers(0, 2**31 - 1) | TEXTS
        case QuantityShape():
            return QUANTITIES
        case TimeShape():
            micro = shape.canonical is canonical_micro_time
            return TIMES.map(lambda text: text.replace("Z", ".000001Z")) if micro else TIMES
        case BytesShape():
            return st.sampled_from(["", "AA==", "Zm9v"])
        case NumberShape():
            return st.floats(allow_nan=False, allow_infinity=False)
        case AnyShape():
            return st.dictionaries(TEXTS, JSON_VALUES, max_size=3)
    raise AssertionError(f"no values for {type(shape).__name__}")


def filled(shape: Shape) -> st.SearchStrategy[Any]:
    """Values of a text, list or struct that are not empty."""
    if isinstance(shape, ListShape):
        return st.lists(values(shape.element), min_size=1, max_size=2)
    return values(shape) if isinstance(shape, StructShape) else st.text("abc-/", min_size=1, max_size=5)


@st.composite
def structs(draw: st.DrawFn, shape: StructShape) -> Plain:
    """An object with a few of its fields."""
    names = sorted(shape.fields)
    chosen = draw(st.lists(st.sampled_from(names), max_size=5, unique=True)) if names else []
    made = {name: draw(values(shape.fields[name].shape)) for name in chosen}
    for name in NEEDED.get(shape.name, ()):
        made[name] = made.get(name) or draw(filled(shape.fields[name].shape))
    return {name: value for name, value in made.items() if value or name not in SAID.get(shape.name, ())}


@st.composite
def documents(draw: st.DrawFn, kind: Kind, version: str = "") -> Plain:
    """A whole document of a kind in a version; without one, in that of the internal form."""
    group_version = kind.group_version(version or kind.internal)
    shape = shape_of(group_version, kind.kind)
    parts = [name for name in shape.fields if name not in ("apiVersion", "kind")]
    drawn = {name: draw(values(shape.fields[name].shape)) for name in parts if name == "spec" or draw(st.booleans())}
    return {"apiVersion": group_version, "kind": kind.kind, **drawn}


def objects(kind: Kind) -> st.SearchStrategy[Any]:
    """Decoded objects of a kind in the internal form."""
    return documents(kind).map(lambda document: decode_plain(document, strict=True).object)
