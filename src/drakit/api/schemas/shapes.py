"""The form that plain data must have to be an object of some kind, and the form in which it is written.

In:  plain data as a client sent it.
Out: `read` gives the data without nulls, with canonical quantities and times, and logs every unknown and duplicate
     field; a wrong type raises. `complete` gives the form that Kubernetes writes: what is empty is left out, what is
     always written is there.

A shape is compiled from a schema (see `compiler`); that of an object with known fields is in `structshapes`. Places
are linked tuples, rendered only when something is said.
"""

from __future__ import annotations

import base64
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn

from drakit.api.schemas.gotypes import go_path
from drakit.api.text.jsontext import Repeated
from drakit.api.text.problems import DUPLICATE, TOO_DEEP, WrongType
from drakit.api.text.quantities import read_quantity
from drakit.api.text.times import ZERO_TIME, TimeError
from drakit.base.quantity import QuantityError

# Parent place, segment (field, map key or index), and the struct that declares the field: empty for keys and indexes.
Place = tuple[Any, "str | int", str] | None
Log = list[tuple[str, Place]]
_CONTAINERS = (dict, list)
MAX_DEPTH = 600  # of raw JSON: msgspec and json recurse on Python's stack of a thousand, of which callers need some


def path_of(place: Place) -> str:
    """`spec.devices.requests[0].exactly`."""
    segments: list[str] = []
    while place is not None:
        parent, segment, _ = place
        segments.append(f"[{segment}]" if isinstance(segment, int) else f".{segment}" if parent else segment)
        place = parent
    return "".join(reversed(segments))


def word_for(value: object) -> str:
    """The JSON type of a value, in the words of Go's errors."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


class Shape(ABC):
    """The form of one type. `go` is its name in the errors of Kubernetes. If `leaf`, `complete` changes nothing.

    `exact` is a Python type of which every value is valid: such a value is taken without `read`.
    """

    leaf = True
    exact: type | None = None

    def __init__(self, go: str) -> None:
        self.go = go

    @abstractmethod
    def read(self, value: Any, place: Place, log: Log) -> Any:
        """Return the value in its stored form. Raise WrongType; put unknown and duplicate fields into `log`."""

    @abstractmethod
    def zero(self) -> Any:
        """The value that a null inside a list or map means."""

    def complete(self, value: Any) -> Any:
        return value

    def merge(self, before: Any, after: Any) -> Any:  # noqa: ARG002
        """The value of a field that occurs twice, from the two values that were read. May change `before`."""
        return after

    def mismatch(self, value: object, place: Place, *, literal: bool = False) -> NoReturn:
        word = word_for(value) + (f" {value}" if literal else "")
        names: list[str] = []
        owner, at = "", place
        while at is not None:
            parent, segment, struct = at
            if struct:
                names.append(go_path(struct, str(segment)))
                owner = owner or struct
            at = parent
        target = f"Go struct field {owner}.{'.'.join(reversed(names))}" if names else "Go value"
        raise WrongType(f"json: cannot unmarshal {word} into {target} of type {self.go}", path_of(place))


class TextShape(Shape):
    exact = str

    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        return value if type(value) is str else self.mismatch(value, place)

    def zero(self) -> Any:
        return ""


class BoolShape(Shape):
    exact = bool

    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        return value if type(value) is bool else self.mismatch(value, place)

    def zero(self) -> Any:
        return False


class IntShape(Shape):
    def __init__(self, bits: int) -> None:
        super().__init__(f"int{bits}")
        self._limit = 1 << (bits - 1)

    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        if type(value) is int and -self._limit <= value < self._limit:
            return value
        return self.mismatch(value, place, literal=type(value) in (int, float))

    def zero(self) -> Any:
        return 0


class NumberShape(Shape):
    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        return value if type(value) in (int, float) else self.mismatch(value, place)

    def zero(self) -> Any:
        return 0


class IntOrTextShape(Shape):
    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        if type(value) is str or (type(value) is int and -(1 << 31) <= value < 1 << 31):
            return value
        return self.mismatch(value, place, literal=type(value) in (int, float))

    def zero(self) -> Any:
        return 0


class BytesShape(Shape):
    """Base64 text, in one line or, as tools wrap it, in several; it is written in one."""

    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        if type(value) is not str:
            self.mismatch(value, place)
        joined = value.replace("\n", "").replace("\r", "")
        if not _BASE64.fullmatch(joined):
            raise WrongType(f"illegal base64 data at input byte {_base64_fault(value)}", path_of(place))
        return base64.b64encode(base64.b64decode(joined)).decode()

    def zero(self) -> Any:
        return ""


_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def _base64_fault(text: str) -> int:
    """The offset of the first character that is not base64, or of the last, incomplete group of four."""
    odd = re.search(r"[^A-Za-z0-9+/\r\n]", text)
    return odd.start() if odd else len(text) // 4 * 4


class QuantityShape(Shape):
    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        try:
            return str(read_quantity(value if type(value) is str else str(value)))
        except QuantityError as error:
            raise WrongType(str(error), path_of(place)) from None

    def zero(self) -> Any:
        return "0"


class TimeShape(Shape):
    def __init__(self, canonical: Callable[[str], str]) -> None:
        super().__init__("string")
        self.canonical = canonical

    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        if type(value) is not str:
            self.mismatch(value, place)
        try:
            return None if value == ZERO_TIME else self.canonical(value)
        except TimeError as error:
            raise WrongType(str(error), path_of(place)) from None

    def zero(self) -> Any:
        return None


class AnyShape(Shape):
    """Raw JSON: kept as it is, nulls included. Only here can data be deep, so the depth is checked only here."""

    def read(self, value: Any, place: Place, log: Log) -> Any:  # noqa: ARG002
        if isinstance(value, _CONTAINERS) and _is_deep(value):
            raise WrongType(TOO_DEEP, path_of(place))
        return value

    def zero(self) -> Any:
        return None


def _is_deep(value: dict[str, Any] | list[Any]) -> bool:
    """Whether lists and objects are nested deeper than `MAX_DEPTH`, for which later readers may lack stack."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [child for children in inner for child in children if isinstance(child, _CONTAINERS)]
        if not level:
            return False
    return True


class ListShape(Shape):
    def __init__(self, element: Shape) -> None:
        super().__init__("[]" + element.go)
        self.element = element
        self.leaf = element.leaf

    def read(self, value: Any, place: Place, log: Log) -> Any:
        if type(value) is not list:
            self.mismatch(value, place)
        exact, read = self.element.exact, self.element.read
        if exact and all(type(each) is exact for each in value):
            return value
        return [
            self.element.zero() if each is None else read(each, (place, index, ""), log)
            for index, each in enumerate(value)
        ]

    def zero(self) -> Any:
        return []

    def complete(self, value: Any) -> Any:
        return value if self.leaf else [self.element.complete(each) for each in value]


class MapShape(Shape):
    def __init__(self, element: Shape) -> None:
        super().__init__("map[string]" + element.go)
        self.element = element
        self.leaf = element.leaf

    def read(self, value: Any, place: Place, log: Log) -> Any:
        if not isinstance(value, dict):
            self.mismatch(value, place)
        result: dict[str, Any] = {}
        for key, each in value.pairs if type(value) is Repeated else value.items():
            here: Place = (place, key, "")
            if key in result:
                log.append((DUPLICATE, here))
            result[key] = self.element.zero() if each is None else self.element.read(each, here, log)
        return result

    def zero(self) -> Any:
        return {}

    def complete(self, value: Any) -> Any:
        return value if self.leaf else {key: self.element.complete(each) for key, each in value.items()}

    def merge(self, before: Any, after: Any) -> Any:
        """Keys of both. For a key of both the last value replaces the first: values are not merged."""
        before.update(after)
        return before
