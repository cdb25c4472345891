"""The messages of the protobuf form: their fields with numbers, names and types.

In:  `messages.json.gz`: message (`core.v1.Pod`) → rows `[number, JSON name, form, type]`, in the order of numbers.
Out: fields by message, and the message of an apiVersion and kind.

`form` is one (a value: it is on the wire even when it is empty), pointer (on the wire only if it is set), list, map
(keys are text), or inline (its fields stand in the JSON object around it). `shown` marks fields that JSON shows even
when they are empty. Types that are no messages: string, bytes, bool, int32, int64, time, microtime, duration,
quantity, intorstring, raw (JSON in bytes) and texts (a message that is a list of strings in JSON).
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

import msgspec
from msgspec.structs import replace

VALUE, POINTER, LIST, MAP, INLINE = "one", "pointer", "list", "map", "inline"
META = "meta.v1."
_META_KINDS = frozenset(
    {
        "APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "CreateOptions", "DeleteOptions", "GetOptions",
        "ListOptions", "PartialObjectMetadata", "PartialObjectMetadataList", "PatchOptions", "Status", "UpdateOptions",
        "WatchEvent",
    }
)  # fmt: skip
"""Kinds that are of every group: an envelope may name any version with them."""


class MessageField(msgspec.Struct, frozen=True, array_like=True):
    number: int
    name: str
    form: str
    type: str
    mark: str = ""

    @property
    def shown(self) -> bool:
        """JSON shows the field even when it is empty."""
        return self.mark == "shown"

    @property
    def omits_zero(self) -> bool:
        """JSON leaves out a value that is zero although the field is a struct in Go."""
        return self.mark == "omitzero"


Fields = tuple[MessageField, ...]


class _Messages(Mapping[str, Fields]):
    """Messages by name. There are some 730 and a process needs a few dozen: each is read when it is asked for."""

    def __init__(self, rows: dict[str, msgspec.Raw]) -> None:
        self._rows = rows
        self._read: dict[str, Fields] = {}
        self._read |= _own(self)

    def __getitem__(self, name: str) -> Fields:
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = msgspec.json.decode(self._rows[name], type=Fields)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._rows or name in self._read

    def __iter__(self) -> Iterator[str]:
        return iter({**self._rows, **self._read})

    def __len__(self) -> int:
        return len(self._rows.keys() | self._read.keys())


@cache
def messages() -> Mapping[str, Fields]:
    """The fields of every message, in the order of their numbers."""
    packed = resources.files(__package__).joinpath("messages.json.gz").read_bytes()
    return _Messages(msgspec.json.decode(gzip.decompress(packed), type=dict[str, msgspec.Raw]))


def message_of(api_version: str, kind: str) -> str | None:
    """The message of a kind; None if it has none."""
    group, _, version = api_version.rpartition("/")
    name = f"{group.partition('.')[0] or 'core'}.{version}.{kind}"
    if name in messages():
        return name
    return META + kind if kind in _META_KINDS else None


def _own(found: Mapping[str, Fields]) -> dict[str, Fields]:
    """What drakit serves beyond Kubernetes: see `drakit.api.schemas`. The numbers are those of older versions."""
    own: dict[str, Fields] = {}
    for version in ("v1alpha3", "v1beta2"):
        package = f"resource.{version}."
        selector = found[package + "DeviceTaintSelector"]
        by_class = MessageField(1, "deviceClassName", POINTER, "string")
        by_expression = MessageField(5, "selectors", LIST, package + "DeviceSelector")
        own[package + "DeviceTaintSelector"] = (by_class, *selector, by_expression)
        for name in ("DeviceSelector", "CELDeviceSelector"):
            rows = found["resource.v1." + name]
            own[package + name] = tuple(replace(each, type=_moved(each.type, package)) for each in rows)
    for name in found:
        if name.startswith(("resource.v1alpha3.ResourcePoolStatusRequest", "resource.v1alpha3.PoolStatus")):
            moved = "resource.v1beta2."
            own[_moved(name, moved)] = tuple(replace(each, type=_moved(each.type, moved)) for each in found[name])
    return own


def _moved(type_: str, package: str) -> str:
    return package + type_.rpartition(".")[2] if type_.startswith("resource.") else type_
