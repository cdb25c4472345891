"""What expressions compute with, as Python values.

    bool, str, bytes, float, None   themselves
    int                             int within 64 bits
    uint                            Uint
    list                            tuple
    map                             dict; keys are what `map_key` makes of them, for Python takes 1 for True
    timestamp, duration, optional   Timestamp, Duration, Optional
    type                            TypeValue
    Quantity, Semver, IP, ...       classes that derive from Opaque

Invariant: no function changes a value that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from drakit.cel.errors import EvalError, no_such_overload

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1

Value = Any  # the classes above; a union would say less to the checker than it costs the reader


class Uint(int):
    """An unsigned 64 bit integer."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class Opaque:
    """A value of an extension type: no operators but equality, which is an error between different types.

    Python asks the left operand first, and so does CEL.
    """

    __slots__ = ()
    type_name: ClassVar[str] = ""

    def same(self, other: Any) -> bool:
        """Equality with a value of the same type."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Opaque) and other.type_name == self.type_name:
            return self.same(other)
        raise no_such_overload()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.type_name)


class Message(dict[str, Any]):
    """A value of a named type with fields: `a.b.C{field: value}`. Equal are messages of one type with equal fields."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str, fields: Mapping[str, Value] | None = None) -> None:
        super().__init__(fields or {})
        self.type_name = type_name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message) or other.type_name != self.type_name or other.keys() != self.keys():
            return False
        return all(equals(value, other[name]) for name, value in self.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


class _Key:
    """A key that Python would confuse with another (bools) or cannot hash (maps): found by being the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return str(self.value).lower()


TRUE_KEY, FALSE_KEY = _Key(True), _Key(False)


class DefaultMap(dict[Any, Any]):
    """A map that answers every lookup, with an empty map where it has no entry; the entry is still not `in` it."""

    __slots__ = ()

    def __missing__(self, key: object) -> dict[Any, Any]:
        return _EMPTY


_EMPTY: dict[Any, Any] = {}


class GrowingList(list[Any]):
    """The list that a comprehension is folding: adding to it adds in place. Only the fold itself ever sees it."""

    __slots__ = ()


class GrowingMap(dict[Any, Any]):
    """The same for a map."""

    __slots__ = ()


class Optional:
    """A value, or none. `held` is the value where `present` says that there is one."""

    __slots__ = ("held", "present")

    def __init__(self, value: Value = None, *, present: bool = True) -> None:
        self.held = value
        self.present = present

    @property
    def value(self) -> Value:
        if not self.present:
            raise EvalError("optional.none() dereference")
        return self.held

    def __repr__(self) -> str:
        return f"optional({self.held!r})" if self.present else "optional.none()"


NONE = Optional(present=False)


class TypeValue:
    """A type as a value: what `type(x)` gives."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


class Duration:
    """Nanoseconds, within 64 bits."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(("duration", self.nanos))


class Timestamp:
    """Nanoseconds since 1970 in UTC, and the offset in seconds that the text it came from was written in."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(("timestamp", self.nanos))


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    DefaultMap: "map",
    GrowingList: "list",
    GrowingMap: "map",
    Optional: "optional_type",
    TypeValue: "type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
}


def type_name(value: Value) -> str:
    """The name of a value's type, as errors and `type()` give it."""
    name = _NAMES.get(value.__class__)
    return name if name is not None else value.type_name


def map_key(key: Value) -> Value:
    """A CEL key as the key of the dict behind a map. Lists and maps are keys, but no lookup finds them again."""
    kind = key.__class__
    if kind is bool:
        return TRUE_KEY if key else FALSE_KEY
    return _Key(key) if kind is tuple or isinstance(key, dict) else key


def keys(entries: dict[Any, Any]) -> Iterator[Value]:
    """The keys of a map as CEL values."""
    for key in entries:
        yield key.value if key.__class__ is _Key else key


_MISSING = object()


def find(entries: dict[Any, Any], key: Value) -> tuple[Value, bool]:
    """The value of a key and whether there is one; numbers find each other across their types."""
    # It answers every lookup; `in` still tells whether there is an entry.
    if isinstance(entries, DefaultMap):
        return entries[key] if key.__class__ is str else _EMPTY, True
    value = entries.get(map_key(key), _MISSING)
    return (None, False) if value is _MISSING else (value, True)


def contains_key(entries: dict[Any, Any], key: Value) -> bool:
    return map_key(key) in entries


_NUMBERS = frozenset({int, Uint, float})
_PLAIN = frozenset({str, int, float, bool, bytes, Uint})


def equals(a: Value, b: Value) -> bool:
    """`==`: false across types (but for numbers); an error where an extension type meets another type."""
    # Equal classes first: nearly all comparisons of selectors are of two strings or two numbers of one type.
    kind = a.__class__
    if kind is b.__class__ and kind in _PLAIN:
        return bool(a == b)
    if a is None or b is None:
        return a is None and b is None
    if kind in _NUMBERS:
        return b.__class__ in _NUMBERS and same_number(a, b)
    if kind in _PLAIN:
        return False
    compare = _EQUALITIES.get(kind)
    return bool(a == b) if compare is None else compare(a, b, {})


def same_number(a: Value, b: Value) -> bool:
    """Numbers of two types compare as doubles when one of them is a double."""
    if a.__class__ is float or b.__class__ is float:
        return float(a) == float(b)
    return bool(a == b)


_Seen = dict[tuple[int, int], bool]  # pairs of containers by identity: what is compared once is not compared again


def _equal_lists(a: Value, b: Value, seen: _Seen) -> bool:
    return b.__class__ is tuple and len(a) == len(b) and all(_alike(x, y, seen) for x, y in zip(a, b, strict=True))


def _equal_maps(a: Value, b: Value, seen: _Seen) -> bool:
    if not isinstance(b, dict) or len(a) != len(b):
        return False
    for key, value in a.items():
        other, found = find(b, key)
        if not found or not _alike(value, other, seen):
            return False
    return True


def _equal_optionals(a: Value, b: Value, seen: _Seen) -> bool:
    if b.__class__ is not Optional or a.present != b.present:
        return False
    if not a.present:
        return True
    compare = _EQUALITIES.get(a.held.__class__)
    return equals(a.held, b.held) if compare is None or b.held is None else compare(a.held, b.held, seen)


def _alike(a: Value, b: Value, seen: _Seen) -> bool:
    """Inside lists and maps only a clear difference counts; elements that cannot be compared do not."""
    compare = _EQUALITIES.get(a.__class__)
    try:
        if compare is None or b is None:
            return equals(a, b)
        pair = id(a), id(b)  # lists of lists of one list are wide, however short their text is
        if pair not in seen:
            seen[pair] = compare(a, b, seen)
        return seen[pair]
    except EvalError:
        return True


_EQUALITIES: dict[type, Callable[[Value, Value, _Seen], bool]] = {
    tuple: _equal_lists,
    dict: _equal_maps,
    DefaultMap: _equal_maps,
    Optional: _equal_optionals,
}


def matches(a: Value, b: Value) -> bool:
    """Equal, where an error means no: how members of lists are looked for."""
    try:
        return equals(a, b)
    except EvalError:
        return False


_SIZED = frozenset({str, tuple, dict, bytes, DefaultMap, GrowingList, GrowingMap})


def size(value: Value) -> int:
    """Number of characters, bytes, elements or entries; 1 for what has no size."""
    kind = value.__class__
    if kind in _SIZED:
        return len(value)
    measure = getattr(value, "cel_size", None)
    return 1 if measure is None else int(measure())


def weight(value: Value, most: int) -> int:
    """How many elements and characters a value holds all in all; no more than somewhat over `most` are looked at."""
    total, stack = 0, [value]
    while stack and total <= most:
        held = stack.pop()
        kind = held.__class__
        total += 1
        if kind is str or kind is bytes:
            total += len(held)
        elif kind is tuple:
            total += len(held)
            stack.extend(held[: most + 1])
        elif isinstance(held, dict):
            total += len(held)
            stack.extend(keys(held))
            stack.extend(held.values())
        elif kind is Optional and held.present:
            stack.append(held.held)
    return total
