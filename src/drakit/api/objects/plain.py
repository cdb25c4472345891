"""Between structs and plain data (dicts, lists, strings, numbers), and between structs and trusted bytes.

In:  plain data that is known to fit, or bytes that our own store or an API server wrote.
Out: frozen structs, and back. Fields that a struct does not model are passed over.

What a client or a file sends goes through `drakit.api.codec.documents`, which reports everything that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from drakit.api.text.quantities import read_quantity
from drakit.base.errors import DecodeError
from drakit.base.quantity import Quantity
from drakit.base.status import ListMeta
from drakit.base.structs import Model

M = TypeVar("M", bound=Model)
Plain = dict[str, Any]
"""An object as plain data: what JSON decodes to."""


class ObjectList(Model, Generic[M]):
    """A server's answer to a list request. `metadata` has its resourceVersion and, if there is more, `continue`."""

    metadata: ListMeta = ListMeta()
    items: tuple[M, ...] = ()


def decode_hook(wanted: type, value: object) -> object:
    """Quantities are the one type that msgspec does not know: a string or, in YAML above all, a number."""
    if wanted is Quantity:
        return read_quantity(value if isinstance(value, str) else str(value))
    raise TypeError(f"cannot decode {wanted}")


def encode_hook(value: object) -> str:
    if isinstance(value, Quantity):
        return str(value)
    raise TypeError(f"cannot encode {type(value)}")


_DECODERS: dict[type[Model], Any] = {}
_READY: set[type[Model]] = set()
_READYING = Lock()
_ENCODER = msgspec.json.Encoder(enc_hook=encode_hook)


def from_plain(model: type[M], data: Any) -> M:
    """Turn plain data into a struct; raise DecodeError that says where it does not fit."""
    if model not in _READY:
        _make_ready(model)
    try:
        return msgspec.convert(data, model, dec_hook=decode_hook)
    except msgspec.ValidationError:
        # Nulls are rare: only data that does not fit as it is pays for their removal.
        return _read(model, lambda: msgspec.convert(without_nulls(data, model), model, dec_hook=decode_hook))


def to_plain(value: Model) -> dict[str, Any]:
    """The struct as dicts and lists with the field names of JSON."""
    plain: dict[str, Any] = msgspec.json.decode(_ENCODER.encode(value))
    return plain


def from_json(model: type[M], data: bytes | str) -> M:
    """Decode trusted bytes directly; a server's `"requests": null` is read as a field that is not there."""
    try:
        return decoder(model).decode(data)
    except msgspec.ValidationError:
        return _read(
            model, lambda: msgspec.convert(without_nulls(msgspec.json.decode(data), model), model, dec_hook=decode_hook)
        )
    except msgspec.DecodeError as error:
        raise DecodeError(f"{model.__name__}: {error}") from None


def list_from_json(model: type[M], data: bytes | str) -> ObjectList[M]:
    """Decode a server's list of objects of one kind. Its items have no apiVersion and kind."""
    return from_json(ObjectList[model], data)  # type: ignore[valid-type]


def to_json(value: Model) -> bytes:
    """Encode a struct as it is; `codec.encode` gives the exact form of a served version."""
    return _ENCODER.encode(value)


def decoder(model: type[M]) -> msgspec.json.Decoder[M]:
    """The decoder of a model, made once."""
    made: msgspec.json.Decoder[M] | None = _DECODERS.get(model)
    if made is None:
        _make_ready(model)
        made = _DECODERS[model] = msgspec.json.Decoder(model, dec_hook=decode_hook)
    return made


def _make_ready(model: type[Model]) -> None:
    """Have msgspec look at a model, and at all models within it, in one thread at a time.

    It does so on first use, and a model is known before its fields are. A second thread that came meanwhile would end
    the process. The server works on large objects in threads, and a test may have clusters in several.
    """
    with _READYING:
        msgspec.json.Decoder(model, dec_hook=decode_hook)
        _READY.add(model)


def without_nulls(data: Any, model: type[Model]) -> Any:
    """Plain data without fields that are null. Raw JSON, which the model does not look into, keeps its nulls."""
    return _prune(data, inspect.type_info(model))


def _prune(data: Any, info: inspect.Type) -> Any:
    match info:
        case inspect.StructType() if isinstance(data, dict):
            types = {field.encode_name: field.type for field in info.fields}
            return {
                key: _prune(value, types[key]) if key in types else value
                for key, value in data.items()
                if value is not None
            }
        case inspect.VarTupleType() if isinstance(data, list):
            return [_prune(value, info.item_type) for value in data]
        case inspect.DictType() if isinstance(data, dict):
            return {key: _prune(value, info.value_type) for key, value in data.items()}
        case inspect.UnionType():
            return _prune(data, next(each for each in info.types if not isinstance(each, inspect.NoneType)))
    return data


def _read(model: type[M], convert: Callable[[], M]) -> M:
    try:
        return convert()
    except msgspec.ValidationError as error:
        raise DecodeError(f"{model.__name__}: {error}") from None
