"""The operators of the language on values whose types are only known now.

In:  two values.
Out: the value, or EvalError: no Python leniency (`True + 1`, `"a" * 2`), 64 bit arithmetic that overflows loudly.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from drakit.cel.errors import EvalError, no_such_overload
from drakit.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    Duration,
    GrowingList,
    Optional,
    Timestamp,
    Uint,
    Value,
    contains_key,
    equals,
    find,
    matches,
    type_name,
)

MAX_ELEMENTS, MAX_TEXT = 1_000_000, 10_000_000
MIN_TIME, MAX_TIME = -62135596800 * 10**9, 253402300799 * 10**9 + 999_999_999


def int_range(value: int) -> int:
    """An int result, unless it left the 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvalError("integer overflow")


def uint_range(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvalError("unsigned integer overflow")


def _duration(nanos: int) -> Duration:
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise EvalError("duration overflow")


def _timestamp(nanos: int, offset: int) -> Timestamp:
    if MIN_TIME <= nanos <= MAX_TIME:
        return Timestamp(nanos, offset)
    raise EvalError("timestamp overflow")


def add(a: Value, b: Value) -> Value:
    kind, other = a.__class__, b.__class__
    if kind is other:
        if kind is int:
            return int_range(a + b)
        if kind is str or kind is float or kind is bytes:
            return a + b
        if kind is tuple:
            return _joined(a, b)
        if kind is Uint:
            return uint_range(int(a) + int(b))
        if kind is Duration:
            return _duration(a.nanos + b.nanos)
    elif kind is GrowingList and other is tuple:
        # In place: otherwise a comprehension over n elements would copy n squared of them.
        a.extend(b)
        return a
    elif kind is Timestamp and other is Duration:
        return _timestamp(a.nanos + b.nanos, a.offset)
    elif kind is Duration and other is Timestamp:
        return _timestamp(a.nanos + b.nanos, b.offset)
    raise no_such_overload()


def _joined(a: tuple[Value, ...], b: tuple[Value, ...]) -> tuple[Value, ...]:
    require_list_size(len(a) + len(b))
    return a + b


def require_list_size(size: int) -> None:
    """Raise EvalError when a list gets too long.

    The cost limit does not prevent that, because some lists cost the same whatever they hold.
    """
    if size > MAX_ELEMENTS:
        raise EvalError(f"list is longer than {MAX_ELEMENTS} elements")


def require_text_size(size: int) -> None:
    """Raise EvalError when a string gets too long.

    The cost limit does not prevent that: many calls cost by their input alone, or are charged after the string exists.
    """
    if size > MAX_TEXT:
        raise EvalError(f"string is longer than {MAX_TEXT} characters")


def subtract(a: Value, b: Value) -> Value:
    kind, other = a.__class__, b.__class__
    if kind is other:
        if kind is int:
            return int_range(a - b)
        if kind is float:
            return a - b
        if kind is Uint:
            return uint_range(int(a) - int(b))
        if kind is Duration or kind is Timestamp:
            return _duration(a.nanos - b.nanos)
    elif kind is Timestamp and other is Duration:
        return _timestamp(a.nanos - b.nanos, a.offset)
    raise no_such_overload()


def multiply(a: Value, b: Value) -> Value:
    kind = a.__class__
    if kind is b.__class__:
        if kind is int:
            return int_range(a * b)
        if kind is float:
            return a * b
        if kind is Uint:
            return uint_range(int(a) * int(b))
    raise no_such_overload()


def divide(a: Value, b: Value) -> Value:
    kind = a.__class__
    if kind is not b.__class__ or kind not in {int, Uint, float}:
        raise no_such_overload()
    if kind is float:
        return _divide_doubles(a, b)
    if b == 0:
        raise EvalError("division by zero")
    if kind is Uint:
        return Uint(int(a) // int(b))
    return int_range(_truncated(a, b))


def _truncated(a: int, b: int) -> int:
    # CEL cuts towards zero, Python rounds down.
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _divide_doubles(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def modulo(a: Value, b: Value) -> Value:
    kind = a.__class__
    if kind is not b.__class__ or kind not in {int, Uint}:
        raise no_such_overload()
    if b == 0:
        raise EvalError("modulus by zero")
    if kind is Uint:
        return Uint(int(a) % int(b))
    # The quotient overflows, so the remainder fails as well, as in Go.
    if a == INT_MIN and b == -1:
        raise EvalError("integer overflow")
    return a - b * _truncated(a, b)


def negate(a: Value) -> Value:
    kind = a.__class__
    if kind is int:
        return int_range(-a)
    if kind is float:
        return -a
    if kind is Duration:
        return _duration(-a.nanos)
    raise no_such_overload()


def negate_bool(a: Value) -> bool:
    if a is True:
        return False
    if a is False:
        return True
    raise no_such_overload()


_NUMBERS = frozenset({int, Uint, float})


def compare(a: Value, b: Value) -> int:
    """-1, 0 or 1; numbers compare across their types."""
    kind, other = a.__class__, b.__class__
    if kind is other and (kind is int or kind is str or kind is bytes or kind is bool or kind is Uint):
        return int(a > b) - int(a < b)
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(a, b)
    if kind is other and (kind is Duration or kind is Timestamp):
        return int(a.nanos > b.nanos) - int(a.nanos < b.nanos)
    raise no_such_overload()


def _compare_numbers(a: float, b: float) -> int:
    # Only NaN differs from itself.
    if a != a or b != b:
        raise EvalError("NaN values cannot be ordered")
    if a.__class__ is float or b.__class__ is float:
        a, b = float(a), float(b)
    return (a > b) - (a < b)


def less(a: Value, b: Value) -> bool:
    return compare(a, b) < 0


def less_equal(a: Value, b: Value) -> bool:
    return compare(a, b) <= 0


def greater(a: Value, b: Value) -> bool:
    return compare(a, b) > 0


def greater_equal(a: Value, b: Value) -> bool:
    return compare(a, b) >= 0


def not_equals(a: Value, b: Value) -> bool:
    """`!=`: true unless the values are equal. Values that cannot be compared are different."""
    return not matches(a, b)


def contained(element: Value, container: Value) -> bool:
    """`in`: an element of a list or a key of a map."""
    if container.__class__ is tuple:
        return any(matches(element, member) for member in container)
    if isinstance(container, dict):
        return contains_key(container, element)
    raise no_such_overload()


def text_of(value: Value) -> str:
    """A value in an error message. Of lists, maps and optionals only the type is shown, because they may be large."""
    if value.__class__ is str:
        return str(value)
    if value is None or value.__class__ is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if value.__class__ is tuple or isinstance(value, dict | Optional):
        return type_name(value)
    return repr(value) if value.__class__ is not Uint else str(int(value))


def list_index(key: Value) -> int:
    """A number as the index into a list."""
    kind = key.__class__
    if kind is int or kind is Uint:
        return int(key)
    if kind is float:
        if key == key and abs(key) < 2**63 and key == int(key):
            return int(key)
        raise EvalError(f"unsupported index value {key} in list")
    raise EvalError(f"unsupported index type '{type_name(key)}' in list")


def element(container: Value, key: Value) -> Value:
    """`container[key]`, and `container.key` where the container's type was not known."""
    found, present = element_if_present(container, key)
    if present:
        return found
    if container.__class__ is tuple:
        raise EvalError(f"index out of bounds: {text_of(key)}")
    raise EvalError(f"no such key: {text_of(key)}")


def element_if_present(container: Value, key: Value) -> tuple[Value, bool]:
    """The element and whether there is one. The index of a list must be a number. Other values have no elements."""
    if isinstance(container, dict):
        if key.__class__ not in {str, int, Uint, bool, float}:
            raise EvalError(f"invalid qualifier type: {type_name(key)}")
        return find(container, key)
    if container.__class__ is tuple:
        index = list_index(key)
        return (container[index], True) if 0 <= index < len(container) else (None, False)
    return None, False


def optional_element(container: Value, key: Value) -> Optional:
    """`container[?key]` and `container.?key`; an optional container is looked into."""
    if container.__class__ is Optional:
        if not container.present:
            return NONE
        container = container.value
    found, present = element_if_present(container, key)
    return Optional(found) if present else NONE


BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "_+_": add,
    "_-_": subtract,
    "_*_": multiply,
    "_/_": divide,
    "_%_": modulo,
    "_<_": less,
    "_<=_": less_equal,
    "_>_": greater,
    "_>=_": greater_equal,
    "_==_": equals,
    "_!=_": not_equals,
    "@in": contained,
}
