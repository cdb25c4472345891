"""Kinds that are modelled in part: what drakit reads of them, as a struct beside the whole document.

In:  the whole object as a JSON document, which is stored and sent as it is.
Out: a struct with the fields that scheduler, controllers, quota and node agent read. Nobody writes a view back:
     a change is a patch of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.plain import from_plain
from drakit.api.objects.wire import nested
from drakit.base.errors import DecodeError
from drakit.base.structs import Model

V = TypeVar("V", bound=Model)


class Partial(msgspec.Struct, Generic[V], frozen=True):
    """Invariant: the fields of `view` have the values that `document` has; neither is ever changed."""

    document: Mapping[str, Any]
    view: V

    @staticmethod
    def of(model: type[V], document: Mapping[str, Any]) -> Partial[V]:
        """Pair a document with a view of it."""
        return Partial(document, from_plain(model, document))

    @staticmethod
    def from_json(model: type[V], data: bytes | str) -> Partial[V]:
        """Pair the document in trusted bytes with a view of it."""
        try:
            return Partial.of(model, msgspec.json.decode(data))
        except msgspec.DecodeError as error:
            raise DecodeError(f"{model.__name__}: {error}") from None


class AnyObject(Model):
    """The view of kinds of which nothing but the metadata is read."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = nested(ObjectMeta)
