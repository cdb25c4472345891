"""Decode what clients and files send; encode what they get.

In:  JSON or YAML of any served version.
Out: objects in the internal form, with every unknown and duplicate field as an error (strict) or a warning (lenient);
     bytes in any served version, to the letter as Kubernetes writes them.

Two steps: text to plain data (`jsontext`, `yamltext`), plain data through its shape (`shapes`) to a struct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from drakit.api.objects.claims import ResourceClaim, ResourceClaimTemplate
from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain, from_plain, to_json, to_plain
from drakit.api.objects.workloads import Workload
from drakit.api.registry import Kind, find_kind, kind_of
from drakit.api.schemas.compiler import shape_of
from drakit.api.schemas.shapes import Log, Place, path_of
from drakit.api.text import jsontext, yamltext
from drakit.api.text.jsontext import Repeated, parse_json_documents
from drakit.api.text.problems import (
    DUPLICATE,
    Malformed,
    NoNumber,
    NotAnObject,
    Position,
    Problem,
    StrictError,
    WrongType,
)
from drakit.api.text.yamldump import dump_yaml
from drakit.api.text.yamltext import parse_yaml_documents
from drakit.api.versions.conversion import from_internal, to_internal
from drakit.base.structs import Model

JSON = "json"
YAML = "yaml"
_LOCATE_UP_TO = 4_000_000  # characters; finding a place in more than that is not worth the wait

_NOTHING: Mapping[str, Any] = {}
_MOST_PROBLEMS = 100

Object = Model | Partial[Any]
M = TypeVar("M", bound=Model)


class Decoded(msgspec.Struct, frozen=True):
    """A decoded object. `version` is the one that it was sent in, `problems` are what strict decoding refuses."""

    kind: Kind
    version: str
    object: Object
    problems: tuple[Problem, ...] = ()
    data: Mapping[str, Any] = {}
    """What was read, in the version that it came in."""

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(str(problem) for problem in self.problems)


def decode(
    data: bytes | str,
    *,
    syntax: str = "",
    strict: bool = True,
    source: str = "",
    default: tuple[str, str] | None = None,
) -> Decoded:
    """Decode exactly one object. A list is refused.

    `syntax` is `json`, `yaml`, or empty to find out. `default` is group version and kind of data that does not say.
    """
    text = read_text(data, source)
    documents = parse_documents(text, syntax=syntax, source=source)
    # A request body is one object; files go through `decode_all`.
    if len(documents) != 1:
        raise NotAnObject(f"{source or 'the text'}: expected one object, found {len(documents)}")
    decoded = _decode_at(_with_types(documents[0], default), None, text, 0, source)
    if strict and decoded.problems:
        raise StrictError(decoded.problems)
    return decoded


def decode_all(data: bytes | str, *, syntax: str = "", strict: bool = True, source: str = "") -> list[Decoded]:
    """Decode every document; a `List` stands for its items. One bad document, and nothing of the text is used.

    With a `source`, a file's name, problems and errors carry line and column.
    """
    text = read_text(data, source)
    decoded: list[Decoded] = []
    for index, document in enumerate(parse_documents(text, syntax=syntax, source=source)):
        decoded += [_decode_at(each, place, text, index, source) for each, place in _items(document)]
    if strict and (problems := [problem for each in decoded for problem in each.problems]):
        raise StrictError(problems)
    return decoded


def decode_file(path: Path, *, strict: bool = True) -> list[Decoded]:
    """Decode a manifest file; errors name it, with line and column."""
    return decode_all(path.read_bytes(), strict=strict, source=str(path))


def decode_plain(
    document: Any, *, strict: bool = False, place: Place = None, known: Mapping[str, Any] = _NOTHING
) -> Decoded:
    """Decode parsed data; strict raises on problems, lenient returns them. `place` is where the data stands.

    `known` is an object of the same kind and version in the form of `to_wire`: what the data shares with it, the very
    same parts, was decoded before.
    """
    read = read_plain(document, strict=strict, place=place, known=known)
    return Decoded(read.kind, read.version, build(read.kind, read.version, read.data, known), read.problems, read.data)


class ReadPlain(NamedTuple):
    """Data that went through the shape of its kind, in the version that it came in."""

    kind: Kind
    version: str
    data: dict[str, Any]
    problems: tuple[Problem, ...]


def read_plain(
    document: Any, *, strict: bool = False, place: Place = None, known: Mapping[str, Any] = _NOTHING
) -> ReadPlain:
    """The first half of `decode_plain`: without an object."""
    kind, version = kind_and_version(document)
    log: Log = []
    shape = shape_of(kind.group_version(version), kind.kind)
    data = shape.read_again(document, known, log, place) if known else shape.read(document, place, log)
    problems = _different(log) if log else ()
    if strict and problems:
        raise StrictError(problems)
    return ReadPlain(kind, version, data, problems)


def _different(log: Log) -> tuple[Problem, ...]:
    """The first hundred different problems, which is also the limit of Kubernetes."""
    found: dict[Problem, None] = {}
    for what, place in log:
        found[Problem(what, path_of(place))] = None
        if len(found) >= _MOST_PROBLEMS:
            break
    return tuple(found)


def build(kind: Kind, version: str, data: dict[str, Any], known: Mapping[str, Any] = _NOTHING) -> Object:
    """The object of data that went through its shape."""
    if not kind.fully_typed:
        return Partial.of(kind.model, build_document(kind, version, data, known))
    return from_plain(kind.model, _internal(kind, version, data))


def build_document(kind: Kind, version: str, data: dict[str, Any], known: Mapping[str, Any] = _NOTHING) -> Plain:
    """The document of data that went through its shape, in the internal version."""
    shape = shape_of(kind.internal_version, kind.kind)
    same = version == kind.internal
    document: Plain = shape.complete(data, known) if same else shape.complete(_internal(kind, version, data))
    return document


def _internal(kind: Kind, version: str, data: dict[str, Any]) -> Plain:
    converted = to_internal(kind.group_version(version), kind.kind, data)
    return {**converted, "apiVersion": kind.internal_version, "kind": kind.kind}


def kind_and_version(document: Any) -> tuple[Kind, str]:
    """Kind and version from apiVersion and kind. Raise NotAnObject with the message of Kubernetes."""
    if not isinstance(document, dict):
        raise NotAnObject(f"expected an object with apiVersion and kind, found {_brief(document)}")
    kind, group_version = document.get("kind"), document.get("apiVersion")
    if not kind or not isinstance(kind, str):
        raise NotAnObject(f"Object 'Kind' is missing in '{_brief(document)}'")
    if not group_version or not isinstance(group_version, str):
        raise NotAnObject(f"Object 'apiVersion' is missing in '{_brief(document)}'")
    found = find_kind(group_version, kind)
    if found is None:
        raise NotAnObject(f'no kind "{kind}" is registered for version "{group_version}"')
    return found, group_version.rpartition("/")[2]


def parse_documents(text: str, *, syntax: str = "", source: str = "") -> list[Any]:
    """Parse to plain data: JSON when the text begins like JSON, else YAML; text that looks like JSON may be YAML."""
    if syntax == YAML or (not syntax and not text.lstrip().startswith(("{", "["))):
        return parse_yaml_documents(text, source=source)
    try:
        return parse_json_documents(text, source=source)
    except Malformed as malformed:
        # YAML would read `NaN` and its like as text, and the error would be lost.
        if syntax == JSON or isinstance(malformed, NoNumber):
            raise
        try:
            return parse_yaml_documents(text, source=source)
        except Malformed:
            # Both failed. The text begins like JSON, so the error of JSON is the helpful one.
            raise malformed from None


def read_text(data: bytes | str, source: str = "") -> str:
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        raise Malformed("expected UTF-8", jsontext.position_at(before, len(before), source)) from None


def to_wire(value: Object, version: str = "") -> dict[str, Any]:
    """The object as plain data in a served version, to the letter as Kubernetes writes it."""
    if isinstance(value, Partial):
        return _document_in(value, version)
    kind = kind_of(value)
    group_version = kind.group_version(version or kind.internal)
    data = from_internal(group_version, kind.kind, to_plain(value))
    wire: dict[str, Any] = shape_of(group_version, kind.kind).complete({**data, "apiVersion": group_version})
    return wire


def _document_in(value: Partial[Any], version: str) -> dict[str, Any]:
    document = dict(value.document)
    own = str(document.get("apiVersion", ""))
    group, slash, own_version = own.rpartition("/")
    if version in ("", own_version):
        return document
    group_version, kind = group + slash + version, str(document.get("kind", ""))
    data = {**from_internal(group_version, kind, document), "apiVersion": group_version}
    wire: dict[str, Any] = shape_of(group_version, kind).complete(data)
    return wire


def sharing(value: M, known: M, document: Mapping[str, Any]) -> dict[str, Any]:
    """Encode a struct as plain data. Parts that it shares with `known` are taken from `document`, unencoded.

    `document` is `known` as plain data. Of metadata, each part is looked at by itself.
    """
    plain: dict[str, Any] = {}
    model = type(value)
    both = zip(_names_of(model), msgspec.structs.astuple(value), msgspec.structs.astuple(known), strict=True)
    for (attribute, name), mine, theirs in both:
        if mine is theirs:
            if name in document:
                plain[name] = document[name]
        elif isinstance(mine, ObjectMeta):
            plain[name] = sharing(mine, theirs, document[name])
        elif isinstance(mine, Model):
            plain[name] = to_plain(mine)
        else:
            # By way of a struct, which leaves out a field at its default.
            alone = to_plain(model(**{attribute: mine}))
            if name in alone:
                plain[name] = alone[name]
    return plain


@cache
def _names_of(model: type[Model]) -> tuple[tuple[str, str], ...]:
    """The fields by their names in Python and on the wire."""
    return tuple((field.name, field.encode_name) for field in msgspec.structs.fields(model))


def encode(value: Object, version: str = "", *, syntax: str = JSON) -> bytes:
    """The object as bytes in a served version; without one, in the version of its internal form."""
    if syntax == YAML:
        return dump_yaml(to_wire(value, version)).encode()
    if isinstance(value, Partial):
        return msgspec.json.encode(_document_in(value, version))
    kind = kind_of(value)
    group_version = kind.group_version(version or kind.internal)
    # Only these differ from the JSON of the struct; all others skip the way through plain data.
    if group_version == "resource.k8s.io/v1beta1" or has_nulls(value):
        return msgspec.json.encode(to_wire(value, version))
    same = getattr(value, "api_version", "") == group_version
    return to_json(value if same else msgspec.structs.replace(value, api_version=group_version))


def has_nulls(value: Model) -> bool:
    """Whether an empty list must be written as null, which a struct leaves out."""
    match value:
        case ResourceClaim():
            return not value.spec.devices.requests or not all(device.conditions for device in value.status.devices)
        case ResourceClaimTemplate():
            return not value.spec.spec.devices.requests
        case Workload():
            return not value.spec.pod_group_templates
    return False


def _items(document: Any) -> Iterator[tuple[Any, Place]]:
    """The document itself, or what a list holds."""
    if not isinstance(document, dict) or not isinstance(document.get("items"), list):
        yield document, None
        return
    kind, group_version = str(document.get("kind")), str(document.get("apiVersion"))
    if kind != "List" and find_kind(group_version, kind.removesuffix("List")) is None:
        yield document, None
        return
    types = {} if kind == "List" else {"apiVersion": group_version, "kind": kind.removesuffix("List")}
    for index, item in enumerate(document["items"]):
        place: Place = ((None, "items", ""), index, "")
        yield ({**types, **item} if types and type(item) is dict else item), place


def _with_types(document: Any, default: tuple[str, str] | None) -> Any:
    if default is None or not isinstance(document, dict):
        return document
    missing = {
        name: value for name, value in zip(("apiVersion", "kind"), default, strict=True) if not document.get(name)
    }
    if not missing:
        return document
    # A mapping with duplicate keys stays one: the strict decoder has to report them.
    return Repeated([*document.pairs, *missing.items()]) if isinstance(document, Repeated) else {**document, **missing}


def _decode_at(document: Any, place: Place, text: str, index: int, source: str) -> Decoded:
    """Decode a document of a text; where the text has a name, what is wrong gets a position."""
    try:
        decoded = decode_plain(document, place=place)
    except WrongType as error:
        raise _located_type(error, text, index, source) from None
    except NotAnObject as error:
        raise NotAnObject(f"{_type_position(place, text, index, source)}: {error}" if source else str(error)) from None
    return _located(decoded, text, index, source) if source and decoded.problems else decoded


def _located(decoded: Decoded, text: str, index: int, source: str) -> Decoded:
    places = _places(text, index, frozenset(problem.path for problem in decoded.problems))

    def locate(problem: Problem) -> Problem:
        options = places.get(problem.path, [(0, 0)])
        line, column = options[min(problem.kind == DUPLICATE, len(options) - 1)]
        return msgspec.structs.replace(problem, position=Position(source, line, column))

    return msgspec.structs.replace(decoded, problems=tuple(map(locate, decoded.problems)))


def _located_type(error: WrongType, text: str, index: int, source: str) -> WrongType:
    if not source:
        return error
    key = error.path.rstrip("]0123456789[") if error.path.endswith("]") else error.path
    line, column = _places(text, index, frozenset({key})).get(key, [(0, 0)])[0]
    return WrongType(error.reason, error.path, Position(source, line, column))


def _type_position(place: Place, text: str, index: int, source: str) -> Position:
    """The position of kind or apiVersion, or of a field near which they are missing."""
    paths = [path_of((place, name, "")) for name in ("kind", "apiVersion", "metadata", "spec")]
    places = _places(text, index, frozenset(paths))
    found = next((places[path][0] for path in paths if path in places), (0, 0))
    return Position(source, *found)


def _places(text: str, index: int, paths: frozenset[str]) -> dict[str, list[tuple[int, int]]]:
    """Line and column of keys in one document of a text that was parsed before."""
    places: dict[str, list[tuple[int, int]]] = {}
    if len(text) > _LOCATE_UP_TO:
        return places
    for document, path, line, column in _keys(text, paths):
        if document == index:
            places.setdefault(path, []).append((line, column))
    return places


def _keys(text: str, paths: frozenset[str]) -> Iterator[tuple[int, str, int, int]]:
    """The positions of keys; empty if the text is nested so deeply that it cannot be read once more from here."""
    try:
        parse_json_documents(text)
        yield from jsontext.key_positions(text, paths)
    except Malformed:
        with suppress(Malformed):
            yield from yamltext.key_positions(text, paths)


def _brief(document: object) -> str:
    text = msgspec.json.encode(document).decode()
    return text if len(text) <= 200 else text[:200] + "…"
