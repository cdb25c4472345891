"""What an environment offers to expressions: functions with their overloads, variables, types, macros.

In:  libraries (lists of Function), variables and struct types of the host.
Out: an Environment that the checker, the cost estimate and the code generator read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from drakit.cel.checking.types import Type, TypeKind, is_dynamic
from drakit.cel.errors import no_such_overload
from drakit.cel.syntax.parser import Macro
from drakit.cel.values import Value, keys, type_name


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    `variadic`: evaluation stops at the first argument that is an error, and the arguments behind it cost nothing.
    `raises` is False when no arguments of the declared types can make it fail.
    """

    id: str
    args: tuple[Type, ...]
    result: Type
    call: Callable[..., Value] | None = None
    member: bool = False
    variadic: bool = False
    raises: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """A name with its overloads.

    `single` implements all overloads and checks the types of its arguments itself. Without it each overload has its own
    implementation. It is called only with arguments of its declared types, unless `unguarded`.
    """

    name: str
    overloads: tuple[Overload, ...]
    single: Callable[..., Value] | None = None
    unguarded: bool = False

    def merged(self, other: Function) -> Function:
        return Function(
            self.name,
            self.overloads + other.overloads,
            self.single or other.single,
            self.unguarded or other.unguarded,
        )

    def overload(self, overload_id: str) -> Overload:
        return next(o for o in self.overloads if o.id == overload_id)


def no_messages(name: str) -> Mapping[str, Type] | None:  # noqa: ARG001
    """Expressions construct nothing but lists and maps."""
    return None


@dataclass(frozen=True, slots=True)
class Environment:
    """All that an expression may name.

    `call_costs` bounds the cost of the host's own overloads; others cost 1. `total` names fields (struct, field) whose
    maps are DefaultMaps: no lookup in them fails. `messages` gives the fields of a type that expressions may construct
    (`a.b.C{field: value}`), and None for other names.
    """

    functions: Mapping[str, Function]
    macros: Mapping[tuple[str, int, bool], Macro]
    variables: Mapping[str, Type] = field(default_factory=dict)
    structs: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)
    call_costs: Mapping[str, int] = field(default_factory=dict)
    total: frozenset[tuple[str, str]] = frozenset()
    messages: Callable[[str], Mapping[str, Type] | None] = no_messages

    def fields_of(self, name: str) -> Mapping[str, Type]:
        """The fields of a struct or message type."""
        known = self.structs.get(name)
        return known if known is not None else self.messages(name) or {}

    def extended(
        self,
        *,
        functions: Iterable[Function] = (),
        macros: Mapping[tuple[str, int, bool], Macro] | None = None,
        variables: Mapping[str, Type] | None = None,
        structs: Mapping[str, Mapping[str, Type]] | None = None,
        call_costs: Mapping[str, int] | None = None,
        total: frozenset[tuple[str, str]] = frozenset(),
        messages: Callable[[str], Mapping[str, Type] | None] | None = None,
    ) -> Environment:
        """A wider environment; this one stays as it is."""
        return Environment(
            functions=collected([*self.functions.values(), *functions]),
            macros={**self.macros, **(macros or {})},
            variables={**self.variables, **(variables or {})},
            structs={**self.structs, **(structs or {})},
            types=self.types,
            call_costs={**self.call_costs, **(call_costs or {})},
            total=self.total | total,
            messages=messages or self.messages,
        )


def collected(functions: Iterable[Function]) -> dict[str, Function]:
    """Functions by name; several of one name become one with all their overloads."""
    table: dict[str, Function] = {}
    for function in functions:
        known = table.get(function.name)
        table[function.name] = function if known is None else known.merged(function)
    return table


def accepts(wanted: Type, value: Value) -> bool:
    """Whether a value is of a declared type. Of lists and maps only the first element is checked."""
    if is_dynamic(wanted) or wanted.kind is TypeKind.PARAM:
        return True
    if type_name(value) != wanted.name:
        return False
    if wanted.kind is TypeKind.LIST and value:
        return accepts(wanted.params[0], value[0])
    if wanted.kind is TypeKind.MAP and value:
        key, held = next(zip(keys(value), value.values(), strict=False))
        return accepts(wanted.params[0], key) and accepts(wanted.params[1], held)
    return True


def implementation(function: Function, overload_ids: tuple[str, ...]) -> Callable[..., Value]:
    """The Python callable behind a call that resolved to these overloads, with its run time guard."""
    if function.single is not None:
        return function.single
    candidates = [function.overload(overload_id) for overload_id in overload_ids]
    # The checker could not decide: the types at run time choose among all overloads, not only among those it found.
    if len(candidates) > 1:
        candidates = [o for o in function.overloads if o.call is not None]
    elif function.unguarded and candidates[0].call is not None:
        return candidates[0].call

    def dispatch(*args: Value) -> Value:
        for overload in candidates:
            if overload.call is None or len(args) != len(overload.args):
                continue
            if function.unguarded or all(map(accepts, overload.args, args)):
                return overload.call(*args)
        raise no_such_overload(function.name, *map(type_name, args))

    return dispatch


def is_variadic(function: Function, overload_ids: tuple[str, ...], argument_count: int) -> bool:
    """Whether evaluation stops at the first argument that is an error, without looking at the others."""
    if argument_count > 2:
        return True
    if function.single is not None:
        return False
    if len(overload_ids) == 1:
        return function.overload(overload_ids[0]).variadic
    return sum(o.call is not None for o in function.overloads) > 1
