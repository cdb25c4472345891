"""Give every part of an expression a type and every call its overloads; collect every fault on the way.

In:  a Tree and an Environment.
Out: a Checked tree. Later stages trust it: a part whose static type is not dynamic has that type at run time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from drakit.cel.checking.declarations import Environment, Function
from drakit.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    TypeKind,
    is_dynamic,
    list_of,
    map_of,
    optional_of,
    struct,
    type_of,
    unwrapped,
)
from drakit.cel.checking.unify import Substitution, most_general
from drakit.cel.errors import CompileError, Issue
from drakit.cel.syntax.ast import (
    CallExpr,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
    Tree,
)
from drakit.cel.syntax.source import Source
from drakit.cel.values import Uint

_LITERALS: dict[type, Type] = {
    bool: BOOL,
    bytes: BYTES,
    float: DOUBLE,
    int: INT,
    type(None): NULL,
    str: STRING,
    Uint: UINT,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """A tree whose parts have types.

    `overloads` holds the possible overloads of each call, `names` the variable or type that an identifier or a dotted
    path stands for.
    """

    tree: Tree
    environment: Environment
    types: dict[int, Type]
    overloads: dict[int, tuple[str, ...]]
    names: dict[int, str]

    @property
    def result_type(self) -> Type:
        return self.types[self.tree.root.id]


def check(tree: Tree, source: Source, environment: Environment) -> Checked:
    """Type the tree; namespaced calls (`sets.contains(..)`) lose their target on the way."""
    checker = _Checker(source, environment)
    checker.visit(tree.root)
    if checker.issues:
        raise CompileError(checker.issues)
    # Only now: a later part of the expression may have bound a type parameter of an earlier one.
    types = {node: checker.known.resolve(t, free_as_dyn=True) for node, t in checker.types.items()}
    return Checked(tree, environment, types, checker.overloads, checker.names)


@dataclass(slots=True)
class _Checker:
    source: Source
    environment: Environment
    known: Substitution = field(default_factory=Substitution)
    types: dict[int, Type] = field(default_factory=dict)
    overloads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    scopes: list[dict[str, Type]] = field(default_factory=list)

    def visit(self, expr: Expr) -> Type:
        match expr:
            case Literal():
                t = _LITERALS[type(expr.value)]
            case Ident():
                t = self._ident(expr)
            case Select():
                t = self._select(expr)
            case CallExpr():
                t = self._call(expr)
            case ListExpr():
                t = self._list(expr)
            case MapExpr():
                t = self._map(expr)
            case Comprehension():
                t = self._comprehension(expr)
            case StructExpr():
                t = self._message(expr)
            case _:
                raise TypeError(type(expr))
        self.types[expr.id] = t
        return t

    def _report(self, at: Expr, message: str) -> Type:
        self.issues.append(self.source.issue(at.offset, message))
        return ERROR

    def _mismatch(self, at: Expr, wanted: Type, found: Type) -> Type:
        wanted, found = (self.known.resolve(t, free_as_dyn=True) for t in (wanted, found))
        return self._report(at, f"expected type '{wanted}' but found '{found}'")

    # --- names

    def _lookup(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        environment = self.environment
        if name in environment.variables:
            return environment.variables[name]
        found = environment.types.get(name)
        return None if found is None else type_of(found)

    def _ident(self, expr: Ident) -> Type:
        found = self._lookup(expr.name)
        if found is None:
            return self._report(expr, f"undeclared reference to '{expr.name}' (in container '')")
        self.names[expr.id] = expr.name.removeprefix(".")
        return found

    def _select(self, expr: Select) -> Type:
        path = dotted(expr)
        # The longest name wins: `a.b` may be a variable, and only otherwise a field of `a`.
        found = self._lookup(path) if path is not None else None
        if found is not None and path is not None:
            self.names[expr.id] = path.removeprefix(".")
            return found
        t = self._field(expr, expr.operand, expr.name, optional=False)
        return BOOL if expr.test_only else t

    def _field(self, expr: Expr, operand: Expr, name: str, *, optional: bool) -> Type:
        held, was_optional = unwrapped(self.known.resolve(self.visit(operand)))
        t = ERROR
        if held.kind is TypeKind.MAP:
            t = held.params[1]
        elif held.kind is TypeKind.STRUCT:
            fields = self.environment.fields_of(held.name)
            t = fields[name] if name in fields else self._report(expr, f"undefined field '{name}'")
        elif held.kind is TypeKind.PARAM:
            self.known.assignable(DYN, held)
            t = DYN
        else:
            if not is_dynamic(held) and held.kind is not TypeKind.ERROR:
                self._report(expr, f"type '{held}' does not support field selection")
            t = DYN
        t = optional_of(t) if optional or was_optional else t
        return self.known.resolve(t)

    # --- calls

    def _call(self, expr: CallExpr) -> Type:
        if expr.function == "_?._":
            return self._optional_select(expr)
        for arg in expr.args:
            self.visit(arg)
        functions = self.environment.functions
        if expr.target is None:
            expr.function = expr.function.removeprefix(".")
            function = functions.get(expr.function)
            return self._undeclared(expr) if function is None else self._resolve(expr, function)
        prefix = dotted(expr.target)
        qualified = f"{prefix}.{expr.function}".removeprefix(".") if prefix is not None else ""
        # Before the target is visited: the prefix of a namespaced function is no variable, and would be reported.
        if qualified in functions:
            expr.function, expr.target = qualified, None
            return self._resolve(expr, functions[qualified])
        self.visit(expr.target)
        function = functions.get(expr.function)
        return self._undeclared(expr) if function is None else self._resolve(expr, function)

    def _undeclared(self, expr: CallExpr) -> Type:
        return self._report(expr, f"undeclared reference to '{expr.function}' (in container '')")

    def _optional_select(self, expr: CallExpr) -> Type:
        operand, name = expr.args
        self.types[name.id] = STRING
        self.overloads[expr.id] = ("select_optional_field",)
        assert isinstance(name, Literal)  # noqa: S101 - the parser builds it so
        return self._field(expr, operand, str(name.value), optional=True)

    def _resolve(self, expr: CallExpr, function: Function) -> Type:
        given = [self.types[e.id] for e in ([expr.target] if expr.target is not None else []) + expr.args]
        if function.name in {"_&&_", "_||_"}:
            return self._logical(expr, function, given)
        result: Type | None = None
        matching: list[str] = []
        for overload in function.overloads:
            if overload.member != (expr.target is not None) or len(overload.args) != len(given):
                continue
            *wanted, declared = self._instance((*overload.args, overload.result))
            if not self.known.all_assignable(given, wanted):
                continue
            matching.append(overload.id)
            declared = self.known.resolve(declared)
            if result is None:
                result = declared
            # Several overloads are possible and differ in their result: only the run time tells.
            elif not is_dynamic(result) and declared != result:
                result = DYN
        if result is None:
            return self._no_overload(expr, function.name, given)
        self.overloads[expr.id] = tuple(matching)
        return result

    def _logical(self, expr: CallExpr, function: Function, given: list[Type]) -> Type:
        self.overloads[expr.id] = (function.overloads[0].id,)
        wrong = False
        for arg, t in zip(expr.args, given, strict=True):
            if not self.known.assignable(t, BOOL):
                self._mismatch(arg, BOOL, t)
                wrong = True
        return ERROR if wrong else BOOL

    def _instance(self, types: tuple[Type, ...]) -> list[Type]:
        """The signature with its own, fresh type parameters."""
        names: dict[str, Type] = {}

        def renew(t: Type) -> Type:
            if t.closed:
                return t
            if t.kind is TypeKind.PARAM:
                if t.name not in names:
                    names[t.name] = self.known.fresh()
                return names[t.name]
            return Type(t.kind, t.name, tuple(map(renew, t.params)))

        return [renew(t) for t in types]

    def _no_overload(self, expr: CallExpr, name: str, given: list[Type]) -> Type:
        types = [str(self.known.resolve(t, free_as_dyn=True)) for t in given]
        first = "" if expr.target is None else f"{types.pop(0)}."
        signature = f"{first}({', '.join(types)})"
        return self._report(expr, f"found no matching overload for '{name}' applied to '{signature}'")

    # --- literals

    def _held(self, at: Expr, *, optional: bool) -> Type:
        """The type of an element; an optional one is unwrapped."""
        t = self.visit(at)
        if not optional:
            return t
        inner, was_optional = unwrapped(t)
        if not was_optional and not is_dynamic(inner):
            self._mismatch(at, optional_of(inner), inner)
        return inner

    def _joined(self, before: Type | None, now: Type) -> Type:
        if before is None:
            return now
        if self.known.assignable(before, now):
            return most_general(before, now)
        return DYN  # a validator refuses mixed literals, but for the arguments of `format`

    def _list(self, expr: ListExpr) -> Type:
        element: Type | None = None
        for index, part in enumerate(expr.elements):
            element = self._joined(element, self._held(part, optional=index in expr.optional))
        return list_of(self.known.fresh() if element is None else element)

    def _map(self, expr: MapExpr) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in expr.entries:
            key = self._joined(key, self.visit(entry.key))
            value = self._joined(value, self._held(entry.value, optional=entry.optional))
        if key is None or value is None:
            return map_of(self.known.fresh(), self.known.fresh())
        return map_of(key, value)

    def _message(self, expr: StructExpr) -> Type:
        name = expr.name.removeprefix(".")
        fields = self.environment.messages(name)
        if fields is None:
            return self._report(expr, f"undeclared reference to '{expr.name}' (in container '')")
        for entry in expr.entries:
            given = self._held(entry.value, optional=entry.optional)
            wanted = fields.get(entry.name)
            if wanted is None:
                self.issues.append(self.source.issue(entry.offset, f"undefined field '{entry.name}'"))
            elif not self.known.assignable(wanted, given):
                found = self.known.resolve(given, free_as_dyn=True)
                words = f"expected type of field '{entry.name}' is '{wanted}' but provided type is '{found}'"
                self.issues.append(self.source.issue(entry.offset, words))
        return struct(name)

    # --- comprehensions

    def _comprehension(self, expr: Comprehension) -> Type:
        over = self.known.resolve(self.visit(expr.range))
        accumulated = self.visit(expr.init)
        # Two scopes: the result sees the accumulator, but not the iteration variables.
        self.scopes.append({expr.accumulator: accumulated})
        self.scopes.append(self._iteration(expr, over))
        self._assert(expr.condition, BOOL)
        self._assert(expr.step, accumulated)
        self.scopes.pop()
        result = self.visit(expr.result)
        self.scopes.pop()
        return self.known.resolve(result)

    def _iteration(self, expr: Comprehension, over: Type) -> dict[str, Type]:
        """The types of the iteration variables."""
        two = bool(expr.variable2)
        match over.kind:
            case TypeKind.LIST:
                first, second = (INT, over.params[0]) if two else (over.params[0], ERROR)
            case TypeKind.MAP:
                first, second = over.params
            case TypeKind.DYN | TypeKind.ERROR | TypeKind.PARAM:
                self.known.assignable(DYN, over)
                first = second = DYN
            case _:
                message = (
                    f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
                )
                first = second = self._report(expr.range, message)
        return {expr.variable: first, expr.variable2: second} if two else {expr.variable: first}

    def _assert(self, expr: Expr, wanted: Type) -> None:
        found = self.visit(expr)
        if not self.known.assignable(wanted, found):
            self._mismatch(expr, wanted, found)


def dotted(expr: Expr) -> str | None:
    """`a.b.c` as one name, or None when the expression is no such path."""
    parts: list[str] = []
    while isinstance(expr, Select) and not expr.test_only:
        parts.append(expr.name)
        expr = expr.operand
    if not isinstance(expr, Ident):
        return None
    return ".".join([expr.name, *reversed(parts)])
