"""The one configuration that all API structs share.

In:  wire objects in camelCase, sequences, maps.
Out: frozen Structs with snake_case attributes; a field at its default is left out of the encoded form.
"""

from __future__ import annotations

from typing import Any, dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class ModelMeta(msgspec.StructMeta):
    """A metaclass that passes `kw_only` on to subclasses: msgspec inherits every other option."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> ModelMeta:
        return super().__new__(mcs, name, bases, namespace, **{"kw_only": True, **options})


class Model(msgspec.Struct, metaclass=ModelMeta, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """Base of every API struct.

    Invariant: nobody changes an instance or what it holds, so none is ever part of a cycle, and the garbage collector
    need not look at them (`gc=False`: decoding is twice as fast). Sequences are tuples; maps are typed `Mapping`.
    A change is `msgspec.structs.replace`.
    """
