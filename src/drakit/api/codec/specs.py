"""Specs that objects share: those of one template are equal, and are read, converted and encoded once.

In:  the spec of a new object that a client in this process sent, with defaults, in the form of the wire.
Out: the one that all objects with an equal spec share, as plain data, as struct and as JSON. Nobody changes it.

The server, validation and the allocator each remember something about a spec by its JSON. It stands here because `api`
is the one room that all three may import. Shared parts are known by identity: an entry holds its parts, so no other
object has their ids. The JSON of anything else is encoded whenever somebody asks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from drakit.api.objects.plain import Plain, encode_hook, from_plain
from drakit.api.registry import Kind
from drakit.base.structs import Model

M = TypeVar("M", bound=Model)

SHARED_SIZE = 8192
"""Bytes of JSON up to which a spec is shared, and something is remembered about it."""
_ENCODER = msgspec.json.Encoder(enc_hook=encode_hook)


class SharedPart:
    """A part that objects share, with its JSON as soon as somebody needed it."""

    __slots__ = ("text", "value")

    def __init__(self, value: Plain | Model, *, text: bytes = b"") -> None:
        self.value = value
        self.text = text


class SharedSpecs:
    """The latest specs, at most `number` of them with keys of `size` bytes in all; the oldest leaves first."""

    def __init__(self, *, number: int = 2048, size: int = 4 * 1024 * 1024) -> None:
        self._number = number
        self._size = size
        self._used = 0
        self._specs: OrderedDict[tuple[str, str, bytes], Plain] = OrderedDict()
        # By id, which is safe: an entry holds its value, so no other object can have the id meanwhile.
        self._parts: dict[int, SharedPart] = {}
        self._structs: dict[int, Model] = {}
        """The structs of specs, by the id of the plain data."""

    def __len__(self) -> int:
        return len(self._specs)

    def find(self, kind: Kind, text: bytes) -> Plain | None:
        """The spec that was shared under this JSON."""
        return self._specs.get((kind.group, kind.kind, text))

    def share(self, kind: Kind, text: bytes, spec: Plain) -> Plain:
        """The spec that all objects of the kind share which a client sent with the spec `text`.

        It is a copy of `spec`, what defaults made of the text: whoever sent a spec may change it.
        """
        own = self.json_if_any(spec)
        if not own or max(len(own), len(text)) > SHARED_SIZE:
            return spec
        found = self.find(kind, text)
        if found is None:
            found = self._specs[kind.group, kind.kind, text] = msgspec.json.decode(own)
            self._parts[id(found)] = SharedPart(found, text=own)
            self._used += len(text)
            self._make_room()
        return found

    def to_struct(self, model: type[M], document: Mapping[str, Any]) -> M:
        """The struct of a document. A shared spec is converted once, and its struct is shared as well."""
        spec = document.get("spec")
        if id(spec) not in self._parts:
            return from_plain(model, document)
        struct = self._structs.get(id(spec))
        if struct is not None:
            # msgspec takes a struct in the place of its plain data, and keeps it as it is.
            return from_plain(model, {**document, "spec": struct})
        made = from_plain(model, document)
        if (struct := getattr(made, "spec", None)) is not None:
            self._structs[id(spec)] = struct
            for part in _asked_for(struct):
                self._parts[id(part)] = SharedPart(part)
        return made

    def with_struct(self, value: M, spec: Plain) -> M | None:
        """The same object with the struct of a shared spec; None if nobody has needed that struct so far."""
        struct = self._structs.get(id(spec))
        return None if struct is None else replace(value, spec=struct)

    def json_of(self, value: Plain | Model) -> bytes:
        """The JSON of a spec, or of a claim's devices; that of a shared one is encoded once."""
        part = self._parts.get(id(value))
        if part is None:
            return _ENCODER.encode(value)
        if not part.text:
            part.text = _ENCODER.encode(value)
        return part.text

    def json_if_any(self, value: Any) -> bytes:
        """Like `json_of`, for any value. Empty when the value has no JSON, e.g. a number that does not fit."""
        try:
            return self.json_of(value)
        except (TypeError, ValueError, OverflowError):
            return b""

    def _make_room(self) -> None:
        while len(self._specs) > self._number or self._used > self._size:
            (_, _, text), spec = self._specs.popitem(last=False)
            self._used -= len(text)
            # Before the spec can be freed: its id may then belong to another object.
            del self._parts[id(spec)]
            if (struct := self._structs.pop(id(spec), None)) is not None:
                for part in _asked_for(struct):
                    self._parts.pop(id(part), None)  # an empty part may be a default, which several specs have


def _asked_for(spec: Model) -> tuple[Model, ...]:
    """The parts of a spec whose JSON somebody asks for: the spec, and what the allocator sees of a claim."""
    devices = getattr(spec, "devices", None)
    return (spec, devices) if isinstance(devices, Model) else (spec,)


SPECS = SharedSpecs()
"""Those of this process."""
