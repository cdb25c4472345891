"""A cache of decoded specs: objects that come from one template have equal specs.

In:  the spec of a new object, as a client in this process sent it.
Out: the same spec with defaults, in the form of the wire. All objects that have it share it; nobody changes it.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind

_SPECS: OrderedDict[tuple[str, str, bytes], Plain] = OrderedDict()
_SIZE = 8192
"""Longer specs are not cached."""
_NUMBER = 2048
"""How many specs are cached; the oldest leaves first."""


def text_of(document: Plain) -> bytes:
    """The key of a spec in the cache; empty if it is not to be cached."""
    spec = document.get("spec")
    if type(spec) is not dict:
        return b""
    try:
        text = msgspec.json.encode(spec)
    except (TypeError, ValueError, OverflowError):  # no JSON, or raw JSON that fits no encoder
        return b""
    return text if len(text) <= _SIZE else b""


def find(kind: Kind, version: str, text: bytes) -> Plain | None:
    return _SPECS.get((kind.kind, kind.group_version(version), text))


def remember(kind: Kind, version: str, text: bytes, completed: Plain) -> None:
    """Cache a spec without unknown fields. It is copied: the client may change what it sent."""
    key = kind.kind, kind.group_version(version), text
    if version == kind.internal and key not in _SPECS and type(completed.get("spec")) is dict:
        _SPECS[key] = msgspec.json.decode(msgspec.json.encode(completed["spec"]))
        if len(_SPECS) > _NUMBER:
            _SPECS.popitem(last=False)
