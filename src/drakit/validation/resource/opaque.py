"""Parameters and data that only a driver understands: that they are JSON objects, and how large they may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from drakit.api import OpaqueDeviceConfiguration
from drakit.base.fields import FieldError, Path, invalid, required, too_long
from drakit.validation.fields.names import check_driver

PARAMETERS_LENGTH = 10 * 1024
DATA_LENGTH = 10 * 1024


def check_configuration(
    opaque: OpaqueDeviceConfiguration | None, path: Path, *, stored: bool = False
) -> Iterator[FieldError]:
    """`path` is that of the configuration; parameters that are stored already may be of any length."""
    if opaque is None:
        yield required(path / "opaque")
        return
    yield from check_driver(opaque.driver, path / "opaque" / "driver")
    parameters = path / "opaque" / "parameters"
    if opaque.parameters is None:
        yield required(parameters)
    else:
        yield from check_json_object(opaque.parameters, parameters, None if stored else PARAMETERS_LENGTH)


def check_json_object(value: Any, path: Path, limit: int | None) -> Iterator[FieldError]:
    """The length is that of the compact JSON text, which is what is stored."""
    if limit is not None and len(msgspec.json.encode(value)) > limit:
        yield too_long(path, limit)
    elif not isinstance(value, Mapping):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")
