"""Python for operators: inline where static types allow it, a call of the operator on values where they do not."""

from __future__ import annotations

from drakit.cel import operators
from drakit.cel.checking.types import BOOL, INT, STRING, Type, TypeKind, is_optional
from drakit.cel.errors import no_such_overload
from drakit.cel.generation.writer import Fragment, Writer
from drakit.cel.values import INT_MAX, INT_MIN, Optional, Uint, Value, equals

_PLAIN = frozenset({TypeKind.BOOL, TypeKind.BYTES, TypeKind.DOUBLE, TypeKind.INT, TypeKind.STRING, TypeKind.UINT})
_ORDERED = frozenset({TypeKind.BOOL, TypeKind.BYTES, TypeKind.INT, TypeKind.STRING, TypeKind.UINT})
_EXACT = 2**53
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def not_bool(_: Value) -> bool:
    raise no_such_overload()


def as_bool(writer: Writer, code: Fragment) -> Fragment:
    """A condition. A value that is not a bool at run time is an error."""
    if code.type == BOOL:
        return code
    if code.constant:
        text = code.text if code.value.__class__ is bool else f"{writer.known(not_bool)}({code.text})"
        return Fragment(text, BOOL, raises=code.value.__class__ is not bool)
    name = writer.name()
    test = f"({name} if ({name} := {code.text}) is True or {name} is False else {writer.known(not_bool)}({name}))"
    return Fragment(test, BOOL)


# --- access


def _select_dynamic(container: Value, key: Value) -> Value:
    if container.__class__ is Optional:
        return operators.optional_element(container, key)
    return operators.element(container, key)


def select(writer: Writer, container: Fragment, key: Fragment, t: Type, *, total: bool = False) -> Fragment:
    """`container.key` and `container["key"]`, the key a string."""
    if is_optional(container.type):
        return writer.call(operators.optional_element, container, key, t=t)
    if container.type.kind is TypeKind.STRUCT:
        return Fragment(f"{container.text}[{key.text}]", t, container.raises)
    if container.type.kind is TypeKind.MAP:
        return Fragment(f"{container.text}[{key.text}]", t, container.raises or not total)
    return writer.call(_select_dynamic, container, key, t=t)


def index(writer: Writer, container: Fragment, key: Fragment, t: Type, *, total: bool = False) -> Fragment:
    if key.type == STRING:
        return select(writer, container, key, t, total=total)
    if is_optional(container.type):
        return writer.call(operators.optional_element, container, key, t=t)
    if container.dynamic:
        return writer.call(_select_dynamic, container, key, t=t)
    return writer.call(operators.element, container, key, t=t)


# --- comparison


def equality(writer: Writer, left: Fragment, right: Fragment) -> Fragment:
    raises = left.raises or right.raises
    if left.type == right.type and left.type.kind in _PLAIN:
        return Fragment(f"({left.text} == {right.text})", BOOL, raises)
    if right.constant and right.value is None:
        return Fragment(f"({left.text} is None)", BOOL, raises)
    if right.constant and left.dynamic and (inline := _equals_constant(writer, left, right)) is not None:
        return inline
    if left.constant and left.value.__class__ is str and right.dynamic:
        name = writer.name()
        kind = _class(writer, str)
        return Fragment(f"(({name} := {right.text}).__class__ is {kind} and {name} == {left.text})", BOOL, raises)
    return writer.call(equals, left, right, t=BOOL)


def _equals_constant(writer: Writer, left: Fragment, right: Fragment) -> Fragment | None:
    """A dynamic value beside a constant: Python's own `==` where it agrees; extension types raise in theirs."""
    value = right.value
    if value.__class__ is str:
        return Fragment(f"({left.text} == {right.text})", BOOL)
    # Beyond 2**53 a double and an integer that differ can be equal in CEL, and differ in Python.
    if value.__class__ is int and abs(value) < _EXACT:
        if value not in {0, 1}:
            return Fragment(f"({left.text} == {right.text})", BOOL)
        name = writer.name()  # Python takes True for 1
        return Fragment(
            f"(({name} := {left.text}) == {right.text} and {name}.__class__ is not {_class(writer, bool)})", BOOL
        )
    if value.__class__ is bool:
        name, slow = writer.name(), f"{writer.known(equals)}"
        other = f"({name}.__class__ is not {_class(writer, bool)} and {slow}({name}, {right.text}))"
        return Fragment(f"(({name} := {left.text}) is {right.text} or {other})", BOOL)
    return None


def _class(writer: Writer, kind: type) -> str:
    return writer.known(kind)


def inequality(writer: Writer, left: Fragment, right: Fragment) -> Fragment:
    raises = left.raises or right.raises
    if left.type == right.type and left.type.kind in _PLAIN:
        return Fragment(f"({left.text} != {right.text})", BOOL, raises)
    if right.constant and right.value.__class__ is str and left.dynamic:
        name, kind = writer.name(), _class(writer, str)
        return Fragment(f"(({name} := {left.text}).__class__ is not {kind} or {name} != {right.text})", BOOL, raises)
    return writer.call(operators.not_equals, left, right, t=BOOL, raises=False)


def ordering(writer: Writer, symbol: str, left: Fragment, right: Fragment) -> Fragment:
    raises = left.raises or right.raises
    if left.type == right.type and left.type.kind in _ORDERED:
        return Fragment(f"({left.text} {symbol} {right.text})", BOOL, raises)
    if left.dynamic and right.type in {INT, STRING}:
        return _ordered_dynamic(writer, symbol, left, right)
    if right.dynamic and left.type in {INT, STRING} and left.atom:
        return _ordered_dynamic(writer, _FLIPPED[symbol], right, left, flipped=True)
    return writer.call(operators.BINARY[f"_{symbol}_"], left, right, t=BOOL)


def _ordered_dynamic(
    writer: Writer, symbol: str, left: Fragment, right: Fragment, *, flipped: bool = False
) -> Fragment:
    """Compare inline when the dynamic side has the class of the other side; otherwise call the operator."""
    if not right.atom:
        left, right = writer.spilled(left), writer.spilled(right)
    name, kind = writer.name(), _class(writer, int if right.type == INT else str)
    real = _FLIPPED[symbol] if flipped else symbol
    slow = writer.known(operators.BINARY[f"_{real}_"])
    args = f"{right.text}, {name}" if flipped else f"{name}, {right.text}"
    inline = f"{name} {symbol} {right.text}"
    return Fragment(f"({inline} if ({name} := {left.text}).__class__ is {kind} else {slow}({args}))", BOOL)


# --- arithmetic


def _overflow() -> int:
    return operators.int_range(INT_MAX + 1)


def arithmetic(writer: Writer, symbol: str, left: Fragment, right: Fragment, t: Type) -> Fragment:
    raises = left.raises or right.raises
    same = left.type == right.type
    if same and left.type == INT and symbol in {"+", "-", "*"}:
        name = writer.name()
        low, high = writer.known(INT_MIN), writer.known(INT_MAX)
        check = f"{low} <= ({name} := {left.text} {symbol} {right.text}) <= {high}"
        return Fragment(f"({name} if {check} else {writer.known(_overflow)}())", t)
    if same and symbol == "+" and left.type.kind in {TypeKind.STRING, TypeKind.BYTES}:
        return Fragment(f"({left.text} + {right.text})", t, raises)
    if same and left.type.kind is TypeKind.DOUBLE and symbol in {"+", "-", "*"}:
        return Fragment(f"({left.text} {symbol} {right.text})", t, raises)
    return writer.call(operators.BINARY[f"_{symbol}_"], left, right, t=t)


def negation(writer: Writer, operand: Fragment, t: Type) -> Fragment:
    return writer.call(operators.negate, operand, t=t)


def negated(writer: Writer, operand: Fragment) -> Fragment:
    condition = as_bool(writer, operand)
    return Fragment(f"(not {condition.text})", BOOL, condition.raises)


# --- membership

_HASHABLE = frozenset({str, int, float, Uint})


def membership(writer: Writer, element: Fragment, container: Fragment, *, literal: bool) -> Fragment:
    """`in`. With a `literal` empty list the element is not evaluated. With another empty list its error counts."""
    if container.constant and container.value == () and literal:
        return writer.constant(False, BOOL)
    if container.constant and container.value.__class__ is tuple:
        return _in_constants(writer, element, container)
    if container.type.kind is TypeKind.MAP and element.type == STRING:
        return Fragment(f"({element.text} in {container.text})", BOOL, element.raises or container.raises)
    return writer.call(
        operators.contained, element, container, t=BOOL, raises=container.type.kind not in {TypeKind.LIST, TypeKind.MAP}
    )


def _in_constants(writer: Writer, element: Fragment, container: Fragment) -> Fragment:
    values = container.value
    if not all(value.__class__ in _HASHABLE for value in values):
        return writer.call(operators.contained, element, container, t=BOOL, raises=False)
    members = writer.known(frozenset(values))
    if element.type.kind in {TypeKind.STRING, TypeKind.INT}:
        return Fragment(f"({element.text} in {members})", BOOL, element.raises)
    name, classes = writer.name(), writer.known(_HASHABLE)  # neither True, which Python takes for 1, nor a map
    test = f"(({name} := {element.text}).__class__ in {classes} and {name} in {members})"
    return Fragment(test, BOOL, element.raises)
