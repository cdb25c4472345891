"""Plain data to a struct; every value that does not fit is reported, not only the first.

In:  parsed YAML or JSON, a model.
Out: the model. Fields that are unknown, repeated or of a wrong type are reported with their paths and left out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from drakit.api.text.jsontext import Repeated
from drakit.base.fields import FieldError, Path, duplicate, forbidden, type_invalid
from drakit.base.structs import Model

M = TypeVar("M", bound=Model)
Errors = list[FieldError]
_LEFT_OUT: Any = object()
_SCALARS: dict[type, tuple[type | tuple[type, ...], str]] = {
    inspect.StrType: (str, "a string"),
    inspect.IntType: (int, "an integer"),
    inspect.FloatType: ((int, float), "a number"),
}


def read(model: type[M], data: Any, path: Path, errors: Errors) -> M:
    """What fits of the data; the rest is in `errors`."""
    fitting = _fit(inspect.type_info(model), data, path, errors)
    return msgspec.convert({} if fitting is _LEFT_OUT else fitting, model)


def untold(found: Iterable[FieldError], errors: Errors) -> Errors:
    """Drop errors about values that were already reported: a default stands in their place."""
    told = tuple(str(error.path) for error in errors)
    return [error for error in found if not any(_is_in(str(error.path), place) for place in told)]


def _is_in(path: str, place: str) -> bool:
    return path == place or path.startswith((f"{place}.", f"{place}["))


def _fit(info: inspect.Type, data: Any, path: Path, errors: Errors) -> Any:
    match info:
        case inspect.UnionType():
            return _fit(next(each for each in info.types if not isinstance(each, inspect.NoneType)), data, path, errors)
        case inspect.StructType():
            return _fit_struct(info, data, path, errors)
        case inspect.VarTupleType():
            return _fit_list(info, data, path, errors)
        case inspect.DictType():
            return data if isinstance(data, dict) else _wrong(path, data, "an object", errors)
        case inspect.BoolType():
            return data if isinstance(data, bool) else _wrong(path, data, "true or false", errors)
        case inspect.AnyType():
            return data
    wanted, noun = _SCALARS[type(info)]
    fits = isinstance(data, wanted) and not isinstance(data, bool)
    return data if fits else _wrong(path, data, noun, errors)


def _fit_struct(info: inspect.StructType, data: Any, path: Path, errors: Errors) -> Any:
    if not isinstance(data, dict):
        return _wrong(path, data, "an object", errors)
    fields = {field.encode_name: field.type for field in info.fields}
    if isinstance(data, Repeated):
        names = [name for name, _ in data.pairs]
        errors += [duplicate(path / name, name) for name in dict.fromkeys(names) if names.count(name) > 1]
    found = {}
    for name, value in data.items():
        if name not in fields:
            errors.append(forbidden(path / name, "unknown field" + _guess(name, list(fields))))
        elif value is not None:
            fitting = _fit(fields[name], value, path / name, errors)
            if fitting is not _LEFT_OUT:
                found[name] = fitting
    return found


def _fit_list(info: inspect.VarTupleType, data: Any, path: Path, errors: Errors) -> Any:
    if not isinstance(data, list):
        return _wrong(path, data, "a list", errors)
    fitting = [_fit(info.item_type, each, path[at], errors) for at, each in enumerate(data)]
    # What does not fit keeps its place, so that the items behind it keep their index in paths.
    return [_empty(info.item_type) if each is _LEFT_OUT else each for each in fitting]


def _empty(info: inspect.Type) -> Any:
    return "" if isinstance(info, inspect.StrType) else {}


def _wrong(path: Path, data: Any, noun: str, errors: Errors) -> Any:
    errors.append(type_invalid(path, data, f"expected {noun}"))
    return _LEFT_OUT


def _guess(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f', did you mean "{close[0]}"?' if close else ""
