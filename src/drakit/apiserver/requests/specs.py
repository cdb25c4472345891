"""Specs that were read before: objects that are made of one template have equal ones.

In:  the spec of a new object, as a client in this process sent it.
Out: the same with defaults and in the form in which it is written, shared by all that have it; nobody changes it.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind

_SPECS: OrderedDict[tuple[str, str, bytes], Plain] = OrderedDict()
_SIZE = 8192
_NUMBER = 2048


def text_of(document: Plain) -> bytes:
    """What a spec is known by; nothing, when it is not to be remembered."""
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
    """Of a spec that had nothing unknown in it; a copy, for the client may change what it sent."""
    key = kind.kind, kind.group_version(version), text
    if version == kind.internal and key not in _SPECS and type(completed.get("spec")) is dict:
        _SPECS[key] = msgspec.json.decode(msgspec.json.encode(completed["spec"]))
        if len(_SPECS) > _NUMBER:
            _SPECS.popitem(last=False)
