"""Secrets of a type that somebody reads: the keys that the reader looks for."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drakit.api import Partial
from drakit.base.fields import FieldError, Path, invalid, required

_DATA = Path("data")
_HIDDEN = "<secret contents redacted>"
_KEYS: Mapping[str, Sequence[str]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_LOGIN = ("username", "password")
_ACCOUNT = "kubernetes.io/service-account.name"


def check_secret_type(obj: Partial[Any]) -> Iterator[FieldError]:
    kind, data = obj.document.get("type") or "", obj.document.get("data") or {}
    if kind == "kubernetes.io/basic-auth" and not any(name in data for name in _LOGIN):
        # One of the two is enough.
        yield from (required(_DATA.key(name)) for name in _LOGIN)
    if kind == "kubernetes.io/service-account-token" and not obj.view.metadata.annotations.get(_ACCOUNT):
        yield required((Path("metadata") / "annotations").key(_ACCOUNT))
    for name in _KEYS.get(kind, ()):
        if name not in data or (name == "ssh-privatekey" and not data[name]):
            yield required(_DATA.key(name))
        elif name.startswith(".") and (problem := _json_problem(data[name])):
            yield invalid(_DATA.key(name), _HIDDEN, problem)


def _json_problem(encoded: str) -> str:
    """What is wrong with a registry's login, in Go's words for the usual mistakes."""
    text = base64.b64decode(encoded or "").decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text):
            return "unexpected end of JSON input"
        place = "after top-level value" if error.msg == "Extra data" else "looking for beginning of value"
        return f"invalid character '{text[error.pos]}' {place}"
    return ""
