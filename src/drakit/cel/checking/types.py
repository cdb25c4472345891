"""Static types: what the checker knows about a value before evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class TypeKind(Enum):
    ANY = auto()
    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    DYN = auto()
    ERROR = auto()
    INT = auto()
    LIST = auto()
    MAP = auto()
    NULL = auto()
    OPAQUE = auto()
    PARAM = auto()
    STRING = auto()
    STRUCT = auto()
    TIMESTAMP = auto()
    TYPE = auto()
    UINT = auto()


@dataclass(frozen=True, slots=True)
class Type:
    """`name` is also the name of the value's type at run time; `params` are element, key and value types.

    `closed` says that no type parameter is left in it: nothing that is learned later can change it.
    """

    kind: TypeKind
    name: str
    params: tuple[Type, ...] = ()
    closed: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        closed = self.kind is not TypeKind.PARAM and all(part.closed for part in self.params)
        object.__setattr__(self, "closed", closed)

    def __str__(self) -> str:
        """The type as error messages spell it."""
        match self.kind:
            case TypeKind.ANY:
                return "any"
            case TypeKind.ERROR:
                return "!error!"
            case TypeKind.NULL:
                return "null"
            case TypeKind.DURATION | TypeKind.TIMESTAMP:
                return self.name.rpartition(".")[2].lower()
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"

    @property
    def full_name(self) -> str:
        """The type in the names that values have at run time."""
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(part.full_name for part in self.params)})"


ANY = Type(TypeKind.ANY, "google.protobuf.Any")
BOOL = Type(TypeKind.BOOL, "bool")
BYTES = Type(TypeKind.BYTES, "bytes")
DOUBLE = Type(TypeKind.DOUBLE, "double")
DURATION = Type(TypeKind.DURATION, "google.protobuf.Duration")
DYN = Type(TypeKind.DYN, "dyn")
ERROR = Type(TypeKind.ERROR, "error")
INT = Type(TypeKind.INT, "int")
NULL = Type(TypeKind.NULL, "null_type")
STRING = Type(TypeKind.STRING, "string")
TIMESTAMP = Type(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = Type(TypeKind.TYPE, "type")
UINT = Type(TypeKind.UINT, "uint")


def list_of(element: Type) -> Type:
    return Type(TypeKind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(TypeKind.MAP, "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(TypeKind.OPAQUE, "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type(TypeKind.TYPE, "type", (value,))


def param(name: str) -> Type:
    return Type(TypeKind.PARAM, name)


def struct(name: str) -> Type:
    return Type(TypeKind.STRUCT, name)


def opaque(name: str, *params: Type) -> Type:
    return Type(TypeKind.OPAQUE, name, params)


def is_dynamic(t: Type) -> bool:
    """Whether the type is known only at run time."""
    return t.kind is TypeKind.DYN or t.kind is TypeKind.ANY


def is_optional(t: Type) -> bool:
    return t.kind is TypeKind.OPAQUE and t.name == "optional_type"


def unwrapped(t: Type) -> tuple[Type, bool]:
    """What an optional holds, and whether it was one."""
    return (t.params[0], True) if is_optional(t) else (t, False)


def equivalent(a: Type, b: Type) -> bool:
    """Equal but for the names of type parameters."""
    if a.kind is not b.kind or len(a.params) != len(b.params):
        return False
    if a.kind is not TypeKind.PARAM and a.name != b.name:
        return False
    return all(map(equivalent, a.params, b.params))
