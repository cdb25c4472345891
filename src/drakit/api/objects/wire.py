"""How a field of an API struct is written in JSON.

`Model` leaves out what is at its default. Kubernetes does not leave out everything: a required string is written even
when empty, a nested object that is no pointer is written as `{}`. The constructors here declare such fields: they have
a default, so that decoding never fails on a missing field (validation says so, with its path), and are always written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from drakit.base.quantity import Quantity

# msgspec never takes the result of a factory (other than list, dict, set) for the default: the field is always written.
_ZERO = Quantity.parse("0")


def text(*, name: str | None = None) -> Any:
    """A string that is written even when it is empty."""
    return msgspec.field(default_factory=str, name=name)


def number() -> Any:
    """An integer that is written even when it is zero."""
    return msgspec.field(default_factory=int)


def constant(value: str) -> Any:
    """A string with the default `value` that is always written: apiVersion and kind."""
    return msgspec.field(default_factory=lambda: value)


def nested(make: Callable[[], Any]) -> Any:
    """An object that is written even when nothing is in it."""
    return msgspec.field(default_factory=make)


def zero() -> Any:
    """A quantity that is written even when it is zero."""
    return msgspec.field(default_factory=lambda: _ZERO)


def nothing() -> Any:
    """An optional object that is written as null when it is not there."""
    return msgspec.field(default_factory=lambda: None)


def mapping() -> Any:
    """A map that is left out when it is empty."""
    return msgspec.field(default_factory=dict)
