"""A v2 document in the protobuf form that kubectl reads: gnostic's `openapi.v2.Document`.

In:  the document as data.
Out: bytes. Names are those of the JSON form; numbers and types are those of the public OpenAPIv2.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

Encoder = Callable[[Any], bytes]
Table = Mapping[str, tuple[int, Encoder]]


def encode_swagger(document: Mapping[str, Any]) -> bytes:
    return _message(_DOCUMENT, document)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _chunk(number: int, value: bytes) -> bytes:
    """A field of wire type 2: text or a message."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _flag(number: int) -> bytes:
    return _varint(number << 3) + b"\x01"


def _message(table: Table, data: Mapping[str, Any], *, extensions: int = 0) -> bytes:
    """The fields of the table in the order of their numbers; `x-...` behind them, as extensions."""
    parts: list[tuple[int, bytes]] = []
    for name, value in data.items():
        known = table.get(name)
        if known is not None:
            number, encoder = known
            values = value if isinstance(value, list) else (value,)
            parts += [(number, _flag(number) if each is True else _chunk(number, encoder(each))) for each in values]
        elif extensions and name.startswith("x-"):
            parts.append((extensions, _chunk(extensions, _named(name, _any(value)))))
    parts.sort(key=lambda part: part[0])
    return b"".join(part for _, part in parts)


def _text(value: Any) -> bytes:
    return str(value).encode()


def _any(value: Any) -> bytes:
    """Any value as text of YAML, of which JSON is a part."""
    return _chunk(2, msgspec.json.encode(value))


def _named(name: str, value: bytes) -> bytes:
    return _chunk(1, name.encode()) + _chunk(2, value)


def _map(number: int, encoder: Encoder) -> Encoder:
    """A map is a message with a repeated pair of name and value."""

    def encode(value: Mapping[str, Any]) -> bytes:
        return b"".join(_chunk(number, _named(name, encoder(each))) for name, each in value.items())

    return encode


def _schema(value: Mapping[str, Any]) -> bytes:
    return _message(_SCHEMA, value, extensions=31)


def _type(value: str) -> bytes:
    return _chunk(1, _text(value))


def _inner(value: Mapping[str, Any]) -> bytes:
    """The schema of elements, and of additional properties: a message around it."""
    return _chunk(1, _schema(value))


def _parameter(value: Mapping[str, Any]) -> bytes:
    """ParametersItem > Parameter > BodyParameter, or NonBodyParameter > one by its place."""
    if value["in"] == "body":
        return _chunk(1, _chunk(1, _message(_BODY, value)))
    number, table = (4, _PATH_PARAMETER) if value["in"] == "path" else (3, _QUERY_PARAMETER)
    return _chunk(1, _chunk(2, _chunk(number, _message(table, value))))


def _operation(value: Mapping[str, Any]) -> bytes:
    return _message(_OPERATION, value, extensions=13)


def _path_item(value: Mapping[str, Any]) -> bytes:
    return _message(_PATH_ITEM, value)


def _answer(value: Mapping[str, Any]) -> bytes:
    return _chunk(1, _message(_RESPONSE, value))


def _requirement(value: Mapping[str, Iterable[str]]) -> bytes:
    return b"".join(
        _chunk(1, _named(name, b"".join(_chunk(1, _text(scope)) for scope in scopes))) for name, scopes in value.items()
    )


def _security(value: Mapping[str, Any]) -> bytes:
    return _chunk(
        2, _message({"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}, value)
    )


def _info(value: Mapping[str, Any]) -> bytes:
    return _message({"title": (1, _text), "version": (2, _text)}, value)


_SCHEMA: Table = {
    "$ref": (1, _text), "format": (2, _text), "description": (4, _text), "required": (19, _text), "enum": (20, _any),
    "additionalProperties": (21, _inner), "type": (22, _type), "items": (23, _inner),
    "properties": (25, _map(1, _schema)),
}  # fmt: skip
_BODY: Table = {"description": (1, _text), "name": (2, _text), "in": (3, _text), "required": (4, _text),
                "schema": (5, _schema)}  # fmt: skip
_PATH_PARAMETER: Table = {"required": (1, _text), "in": (2, _text), "description": (3, _text), "name": (4, _text),
                          "type": (5, _text), "uniqueItems": (19, _text)}  # fmt: skip
_QUERY_PARAMETER: Table = {"required": (1, _text), "in": (2, _text), "description": (3, _text), "name": (4, _text),
                           "type": (6, _text), "uniqueItems": (20, _text)}  # fmt: skip
_RESPONSE: Table = {"description": (1, _text), "schema": (2, _inner)}
_OPERATION: Table = {
    "tags": (1, _text), "description": (3, _text), "operationId": (5, _text), "produces": (6, _text),
    "consumes": (7, _text), "parameters": (8, _parameter), "responses": (9, _map(1, _answer)), "schemes": (10, _text),
}  # fmt: skip
_PATH_ITEM: Table = {
    "get": (2, _operation), "put": (3, _operation), "post": (4, _operation), "delete": (5, _operation),
    "patch": (8, _operation), "parameters": (9, _parameter),
}  # fmt: skip
_DOCUMENT: Table = {
    "swagger": (1, _text), "info": (2, _info), "paths": (8, _map(2, _path_item)), "definitions": (9, _map(1, _schema)),
    "security": (12, _requirement), "securityDefinitions": (13, _map(1, _security)),
}  # fmt: skip
