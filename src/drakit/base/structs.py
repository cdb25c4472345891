"""The one configuration that all API structs share.

In:  wire objects in camelCase, sequences, maps.
Out: frozen Structs with snake_case attributes; a field at its default is left out of the encoded form.
"""

from __future__ import annotations

import msgspec


class Model(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every API struct.

    Invariant: nobody changes an instance or what it holds. Sequences are tuples; maps are typed `Mapping`.
    A change is `msgspec.structs.replace`.
    """
