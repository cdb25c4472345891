"""Read what a client sends: from bytes to an object of the kind that the path names.

In:  a body in JSON, YAML or protobuf; or an object, from a client in this process.
Out: the object in its storage version with defaults, and warnings. 400 for what cannot be decoded.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from drakit.api.codec.documents import (
    Decoded,
    Object,
    build_document,
    decode_plain,
    has_nulls,
    parse_documents,
    read_plain,
    read_text,
    sharing,
    to_wire,
)
from drakit.api.codec.protobuf import CONTENT_TYPE as PROTOBUF
from drakit.api.codec.protobuf import decode_protobuf
from drakit.api.codec.specs import SPECS
from drakit.api.exchange import Request
from drakit.api.objects.plain import Plain, from_plain, to_plain
from drakit.api.registry import Kind, find_kind
from drakit.api.schemas.compiler import shape_of
from drakit.api.text.problems import Malformed
from drakit.api.versions.coredefaults import default_document
from drakit.api.versions.defaults import TIMED, set_defaults
from drakit.api.versions.neighbourdefaults import LABELLED_BY_TEMPLATE
from drakit.apiserver.failures import ApiError, bad_request, too_large, too_many_elements, unknown_body_format
from drakit.apiserver.kinds.events import CORE, GROUP_VERSION, to_core
from drakit.apiserver.storage.objects import StoredObject
from drakit.base import fields
from drakit.base.errors import DecodeError, Unsupported
from drakit.base.structs import Model
from drakit.validation.resource.opaque import PARAMETERS_LENGTH

T = TypeVar("T")
MAX_BODY = 3 * 1024 * 1024
MAX_ELEMENTS = 100_000
"""Of lists and objects in a body. To parse, convert or free so many holds the interpreter for up to 40 ms each."""
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*+"|[,\[{]', re.DOTALL)
"""What JSON has between elements, or before the first; or a string, in which these do not count."""
_SYNTAX = {"": "json", "application/json": "json", "application/yaml": "yaml"}
_NOTHING: Mapping[str, Any] = {}
_NO_WARNINGS: tuple[str, ...] = ()
_HEAD = ("apiVersion", "kind", "metadata")
_SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'


class Incoming(msgspec.Struct, frozen=True):
    """`document` is in the storage version, with defaults. It and its metadata belong to the request.

    The other parts are shared with `completed`, which nobody changes. A part of the document that is still the same
    object as in `completed` has the form that is stored.
    """

    document: Plain
    completed: Plain
    warnings: tuple[str, ...] = ()
    """About unknown and duplicate fields."""


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_body(request: Request, old: StoredObject | None = None) -> Any:
    """The body as plain data; None when there is no body.

    A client in this process may send a struct that it made of the stored one. Parts that it did not replace are taken
    from the stored document.
    """
    sent = request.document
    if isinstance(sent, Model):
        alike = old is not None and old.kind.fully_typed and type(sent) is type(old.typed)
        return sharing(sent, old.typed, old.document) if old is not None and alike else to_plain(sent)
    if request.document is not None:
        return request.document
    if len(request.body) > MAX_BODY:
        raise too_large(MAX_BODY)
    if not request.body:
        return None
    kind = media_type(request)
    if kind == PROTOBUF:
        return count_elements(_protobuf(request.body), len(request.body))
    if kind not in _SYNTAX:
        raise unknown_body_format()
    syntax = _SYNTAX[kind]
    if syntax == "json":
        check_elements(request.body)
        return parse_body(request.body, syntax)
    return count_elements(parse_body(request.body, syntax), len(request.body))


def read_as(model: type[T], kind: str, plain: Any) -> T:
    """A small object that is not stored: a Scale, a Binding. 400 when it has another form."""
    if isinstance(plain, dict):
        plain = {name: value for name, value in plain.items() if value is not None}
        if plain.get("kind", kind) != kind:
            raise bad_request(f"expected an object of kind {kind}, got {fields.quote(str(plain['kind']))}")
    try:
        return msgspec.convert(plain, model)
    except msgspec.ValidationError as error:
        raise bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from None


def check_elements(body: bytes) -> None:
    """Raise 413 for more elements than any object has: the JSON parser keeps the interpreter until all are read."""
    if len(body) <= MAX_ELEMENTS:
        return
    if max(body.count(b","), body.count(b"[") + body.count(b"{")) <= MAX_ELEMENTS:
        return
    counted = Counter(found[0][:1] for found in _MARK.finditer(body))
    if max(counted[b","], counted[b"["] + counted[b"{"]) > MAX_ELEMENTS:
        raise too_many_elements(MAX_ELEMENTS)


def count_elements(plain: T, size: int) -> T:
    """The same for what was no JSON, and is parsed in small steps: YAML and protobuf. `size` is that of the text."""
    waiting: list[Any] = [plain] if size > MAX_ELEMENTS else []
    left = MAX_ELEMENTS
    while waiting:
        container = waiting.pop()
        left -= len(container)
        if left < 0:
            raise too_many_elements(MAX_ELEMENTS)
        parts = container.values() if isinstance(container, dict) else container
        waiting.extend(part for part in parts if isinstance(part, dict | list))
    return plain


def parse_body(body: bytes, syntax: str) -> Any:
    try:
        documents = parse_documents(read_text(body), syntax=syntax)
    except Malformed as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if len(documents) != 1:
        raise bad_request(f"expected one object in the body, found {len(documents)}")
    return documents[0]


def has_spaced_parameters(request: Request, document: Plain) -> bool:
    """Whether the opaque parameters of a class came with spaces between their JSON tokens.

    Kubernetes compares opaque parameters by their text. A patch writes them without spaces, so parameters that came
    with spaces count as changed, and the class gets a new generation.
    """
    if media_type(request) not in ("", "application/json") or not request.body:
        return False
    configs = (document.get("spec") or {}).get("config") or ()
    parameters = [(each.get("opaque") or {}).get("parameters") for each in configs]
    texts = [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in parameters if each is not None]
    return any(text.encode() not in request.body for text in texts)


_CONFIGS = {
    "DeviceClass": ("spec", "config"),
    "ResourceClaim": ("spec", "devices", "config"),
    "ResourceClaimTemplate": ("spec", "spec", "devices", "config"),
}
"""Where a kind has configurations with opaque parameters."""


def overlong_parameters(request: Request, kind: str) -> list[fields.FieldError]:
    """Opaque parameters of a JSON body that are too long only with the spaces that they were sent with."""
    path = _CONFIGS.get(kind)
    if path is None or len(request.body) <= PARAMETERS_LENGTH or media_type(request) not in ("", "application/json"):
        return []
    try:
        part = msgspec.Raw(request.body)
        for name in path:
            part = msgspec.json.decode(part, type=dict[str, msgspec.Raw])[name]
        configs = msgspec.json.decode(part, type=list[_SentConfig])
    except (msgspec.DecodeError, KeyError):
        return []
    where = fields.Path(path[0])
    for name in path[1:]:
        where /= name
    return [
        fields.too_long(where[index] / "opaque" / "parameters", PARAMETERS_LENGTH)
        for index, each in enumerate(configs)
        if each.opaque is not None and len(each.opaque.parameters) > PARAMETERS_LENGTH
    ]


class _SentOpaque(msgspec.Struct):
    parameters: msgspec.Raw = msgspec.Raw()


class _SentConfig(msgspec.Struct):
    opaque: _SentOpaque | None = None


def _protobuf(body: bytes) -> Any:
    try:
        return decode_protobuf(body)
    except Unsupported:
        raise unknown_body_format() from None
    except DecodeError as error:
        raise bad_request(str(error)) from None


def incoming(
    kind: Kind,
    version: str,
    plain: Any,
    now: datetime,
    *,
    strict: bool,
    known: Mapping[str, Any] = _NOTHING,
    sent: Any = None,
) -> Incoming:
    """Decode an object of this kind from plain data that a client sent in this version.

    `known` is the stored object in that version. Parts that the data shares with it are passed over. `sent` is the
    object of a client in this process, which was never text and has no duplicate fields: then the spec of a new object
    may be one that was read before, and a struct need not be read at all.
    """
    document = _named(kind, version, plain)
    # Only for new objects: an update shares its spec with the stored object anyway.
    # Only what comes from this process: sharing costs a spec that never comes again 7 µs.
    shareable = sent is not None and not known and version == kind.internal and kind.model not in TIMED
    text = _sent_spec(document) if shareable else b""
    if text and (spec := SPECS.find(kind, text)) is not None:
        known = {"spec": spec}
        document = {**document, **known}
    struct: Model | None = None
    if isinstance(sent, Model) and kind.fully_typed and version == kind.internal and _has_known_spec(document, known):
        # What was sent as a new spec has no defaults yet.
        struct = SPECS.with_struct(sent, known["spec"]) if text else sent
    try:
        if struct is not None:
            wire, warnings = _complete_struct(kind, struct, document, known, now), _NO_WARNINGS
        elif kind.fully_typed:
            wire, warnings = _read_struct(document, known, now, strict=strict)
        else:
            wire, warnings = _read_document(document, known, strict=strict)
    except DecodeError as error:
        raise _unhandled(kind, document, str(error)) from None
    # A spec with unknown fields must be decoded again, so that its warnings are given again.
    if text and not known and not warnings and type(wire.get("spec")) is dict:
        wire["spec"] = SPECS.share(kind, text, wire["spec"])
    completed = to_core(wire) if kind is CORE and version == GROUP_VERSION else wire
    return Incoming({**completed, "metadata": dict(completed.get("metadata") or {})}, completed, warnings)


def _complete_struct(kind: Kind, sent: Model, document: Plain, known: Mapping[str, Any], now: datetime) -> Plain:
    """A struct of this process as plain data, with defaults. Its types are right, so it is not read.

    `document` is the same as plain data.
    """
    finished = sent if _is_known(document, known) else set_defaults(sent, now, has_spec_defaults=True)
    if finished is not sent:
        return to_wire(finished)
    # A struct is written as its shape completes it, but for nulls.
    if not has_nulls(sent):
        return document
    wire: Plain = shape_of(kind.internal_version, kind.kind).complete(document, known)
    return wire


def _read_struct(
    document: Plain, known: Mapping[str, Any], now: datetime, *, strict: bool
) -> tuple[Plain, tuple[str, ...]]:
    """An object of a kind that is modelled as a whole, with defaults, in the form of the wire; and its warnings."""
    decoded = decode_plain(document, strict=strict, known=known)
    finished = decoded.object
    if not _is_known(document, known):
        finished = set_defaults(finished, now, has_spec_defaults=_has_known_spec(document, known))
    return _wire(decoded, finished, known), decoded.warnings


def _read_document(document: Plain, known: Mapping[str, Any], *, strict: bool) -> tuple[Plain, tuple[str, ...]]:
    """The same for a kind that is modelled in part. Its view is not made here: admission still changes the object."""
    kind, version, data, problems = read_plain(document, strict=strict, known=known)
    read = build_document(kind, version, data, known)
    # Two fields are raw JSON for the schema and objects for the view. Otherwise what fits the one fits the other.
    entries = (read.get("metadata") or _NOTHING).get("managedFields")
    if "data" in read or (entries and entries is not (known.get("metadata") or _NOTHING).get("managedFields")):
        from_plain(kind.model, read)
    is_complete = _is_known(document, known) and (kind.group, kind.kind) not in LABELLED_BY_TEMPLATE
    finished = read if is_complete else default_document(read, has_spec_defaults=_has_known_spec(document, known))
    return dict(finished), tuple(map(str, problems))


def _sent_spec(document: Plain) -> bytes:
    """The JSON of the spec that a client sent; empty if there is none that could be shared."""
    spec = document.get("spec")
    return SPECS.json_if_any(spec) if type(spec) is dict else b""


def _has_known_spec(document: Plain, known: Mapping[str, Any]) -> bool:
    return known.get("spec") is not None and document.get("spec") is known["spec"]


def _is_known(document: Plain, known: Mapping[str, Any]) -> bool:
    """Whether every part but metadata comes from `known`, and so has its defaults."""
    for name, part in document.items():
        if name not in _HEAD and part is not known.get(name):
            return False
    return _has_known_spec(document, known)


def _wire(decoded: Decoded, complete: Object, known: Mapping[str, Any]) -> Plain:
    """The object in the form of the wire, with defaults. If defaults changed nothing, known parts are passed over."""
    kind = decoded.kind
    if not known or complete is not decoded.object or decoded.version != kind.internal:
        return to_wire(complete)
    wire: Plain = shape_of(kind.internal_version, kind.kind).complete(decoded.data, known)
    return wire


def _named(kind: Kind, version: str, plain: Any) -> Plain:
    """The data with kind and apiVersion. Missing ones are those of the path; others must agree with it."""
    if not isinstance(plain, dict):
        found = "array" if isinstance(plain, list) else type(plain).__name__
        raise bad_request(f"couldn't get version/kind; json parse error: json: cannot unmarshal {found} into an object")
    expected = kind.group_version(version)
    if plain.get("apiVersion") == expected and plain.get("kind") == kind.kind:
        return plain
    given, name = plain.get("apiVersion") or expected, plain.get("kind") or kind.kind
    if not isinstance(given, str) or not isinstance(name, str):
        raise bad_request("couldn't get version/kind; json parse error: apiVersion and kind must be strings")
    _check_kind(kind, expected, given, name)
    if plain.get("apiVersion") and plain.get("kind"):
        return plain
    return {**plain, "apiVersion": given, "kind": name}


def _check_kind(kind: Kind, expected: str, given: str, name: str) -> None:
    document = {"apiVersion": given, "kind": name}
    # Upstream checks the parts of a type in this order, and has a message for each.
    found = find_kind(given, name.removesuffix("List"))
    if found is None:
        raise _unhandled(kind, document, f'no kind "{name}" is registered for version "{given}" {_SCHEME}')
    if name != kind.kind or found.group != expected.rpartition("/")[0]:
        version = given.rpartition("/")[2]
        internal = kind.group.partition(".")[0] or "core"
        why = f"converting ({version}.{name}) to ({internal}.{kind.kind}): unknown conversion"
        raise _unhandled(kind, document, why)
    if given != expected:
        raise bad_request(f"the API version in the data ({given}) does not match the expected API version ({expected})")


def _unhandled(kind: Kind, document: Mapping[str, Any], why: str) -> ApiError:
    version = str(document["apiVersion"]).rpartition("/")[2]
    return bad_request(f'{document["kind"]} in version "{version}" cannot be handled as a {kind.kind}: {why}')
