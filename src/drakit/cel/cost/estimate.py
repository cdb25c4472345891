"""The worst case cost of an expression, known before it meets any data.

In:  a Checked tree, and what the host knows of the sizes behind its variables.
Out: one number. It decides whether an expression may be stored, so it follows upstream to the unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from drakit.cel.checking.checker import Checked
from drakit.cel.checking.types import Type, TypeKind, is_optional
from drakit.cel.cost.calls import Argument, CallCost, estimate_call
from drakit.cel.cost.sizes import LIST_COST, MAP_COST, STRUCT_COST, UNBOUNDED, UNKNOWN, EntrySize, Size, plus, times
from drakit.cel.syntax.ast import (
    ACCUMULATOR,
    CallExpr,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
)
from drakit.cel.values import Uint

Path = tuple[str, ...]
SizeOf = Callable[[Path], Size | None]

_SCALARS = frozenset(
    {TypeKind.BOOL, TypeKind.DOUBLE, TypeKind.DURATION, TypeKind.INT, TypeKind.TIMESTAMP, TypeKind.UINT}
)
_OPTIONAL_STEPS = frozenset(
    {"select_optional_field", "map_optindex_optional_value", "optional_orValue_value", "optional_value"}
)
_SELECTABLE = frozenset({TypeKind.MAP, TypeKind.STRUCT, TypeKind.PARAM})


def estimate(checked: Checked, size_of: SizeOf, *, through_optionals: bool = False) -> int:
    """The most that one evaluation can cost. `size_of` gives the bounds of a path such as device.attributes.@values.

    Upstream loses sight of sizes behind `.?` and `orValue`. With `through_optionals` they are followed, which gives the
    number to decide by whether an evaluation needs counting at all.
    """
    return _Estimator(checked, size_of, through_optionals).cost(checked.tree.root)


@dataclass(slots=True)
class _Local:
    path: Path
    size: Size | None
    entries: EntrySize | None


@dataclass(slots=True)
class _Estimator:
    checked: Checked
    size_of: SizeOf
    through_optionals: bool
    paths: dict[int, Path] = field(default_factory=dict)
    sizes: dict[int, Size] = field(default_factory=dict)
    entries: dict[int, EntrySize] = field(default_factory=dict)
    locals: dict[str, list[_Local]] = field(default_factory=dict)

    def cost(self, expr: Expr) -> int:
        match expr:
            case Literal():
                return 0
            case Ident():
                local = self._local(expr.name)
                self.paths[expr.id] = (expr.name,) if local is None else local.path
                return 1
            case Select():
                return self._select(expr)
            case CallExpr():
                return self._call(expr)
            case ListExpr():
                return self._list(expr)
            case MapExpr():
                return self._map(expr)
            case StructExpr():
                return plus(STRUCT_COST, min(sum(self.cost(entry.value) for entry in expr.entries), UNBOUNDED))
            case Comprehension() if expr.macro == "bind":
                return self._bind(expr)
            case Comprehension():
                return self._comprehension(expr)
        return 0

    # --- what is known of a part

    def _local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def _path(self, expr: Expr) -> Path:
        if isinstance(expr, Ident) and (local := self._local(expr.name)) is not None:
            return local.path
        return self.paths.get(expr.id, ())

    def _size(self, expr: Expr) -> Size | None:
        if expr.id in self.sizes:
            return self.sizes[expr.id]
        if (literal := _literal_size(expr)) is not None:
            return literal
        path = self._path(expr)
        if path and (declared := self.size_of(path)) is not None:
            self.sizes[expr.id] = declared
            return declared
        if _is_scalar(self.checked.types[expr.id]):
            return Size.exactly(1)
        if isinstance(expr, Ident) and (local := self._local(expr.name)) is not None:
            return local.size
        return None

    def _entries(self, expr: Expr) -> EntrySize | None:
        if expr.id in self.entries:
            return self.entries[expr.id]
        if isinstance(expr, Ident) and (local := self._local(expr.name)) is not None:
            return local.entries
        return None

    def _size_or_unknown(self, expr: Expr) -> Size:
        return self._size(expr) or UNKNOWN

    def _argument(self, expr: Expr) -> Argument:
        path = self._path(expr)
        known = () if path and path[0] in {ACCUMULATOR, "__result__"} else path
        return Argument(expr, self.checked.types[expr.id], known, self._size(expr), self.size_of)

    # --- parts

    def _select(self, expr: Select) -> int:
        if expr.id in self.checked.names:
            self.paths[expr.id] = (self.checked.names[expr.id],)
            return 1
        total = self.cost(expr.operand)
        if expr.test_only:
            return total
        if self.checked.types[expr.operand.id].kind in _SELECTABLE:
            total = plus(total, 1)
        self.paths[expr.id] = (*self._path(expr.operand), expr.name)
        return total

    def _call(self, expr: CallExpr) -> int:
        if expr.function == "dyn":
            return self._dyn(expr)
        costs, arguments = [], []
        for arg in expr.args:
            costs.append(self.cost(arg))
            arguments.append(self._argument(arg))
        total, target = 0, None
        if expr.target is not None:
            total = self.cost(expr.target)
            target = self._argument(expr.target)
        # Which overload runs is known only at run time where types are dynamic: the dearest one counts.
        worst, result = 0, None
        for overload in self.checked.overloads[expr.id]:
            estimated = self._overload(expr, overload, target, arguments, costs)
            worst = max(worst, estimated.cost)
            if estimated.size is not None:
                result = estimated.size if result is None else result.union(estimated.size)
            if overload in {"index_list", "index_map"}:
                result = self._indexed(expr, overload)
            elif self.through_optionals and overload in _OPTIONAL_STEPS:
                result = self._through_optional(expr, overload)
            if result is None:
                result = self._size(expr)
        if result is not None:
            self.sizes[expr.id] = result
        return plus(total, worst)

    def _indexed(self, expr: CallExpr, overload: str) -> Size | None:
        entries = self._entries(expr.args[0])
        step = "@items" if overload == "index_list" else "@values"
        self.paths[expr.id] = (*self._path(expr.args[0]), step)
        return None if entries is None else entries.value

    def _through_optional(self, expr: CallExpr, overload: str) -> Size | None:
        if overload == "optional_orValue_value" and expr.target is not None:
            return self._size_or_unknown(expr.target).union(self._size_or_unknown(expr.args[0]))
        held = expr.target if expr.target is not None else expr.args[0]
        if overload == "select_optional_field" and isinstance(expr.args[1], Literal):
            self.paths[expr.id] = (*self._path(held), str(expr.args[1].value))
        elif overload == "map_optindex_optional_value":
            self.paths[expr.id] = (*self._path(held), "@values")
        return self._size(expr) if self.paths.get(expr.id) else self._size(held)

    def _overload(
        self, expr: CallExpr, overload: str, target: Argument | None, args: list[Argument], costs: list[int]
    ) -> CallCost:
        """The cost of a call with its arguments, but without its target."""
        # Saturating, as all sums here: the numbers of upstream are unsigned 64 bit integers.
        before = min(sum(costs), UNBOUNDED)
        match overload:
            case "logical_and" | "logical_or":
                return CallCost(before)
            case "conditional":
                first, second = self._entries(args[1].expr), self._entries(args[2].expr)
                if first is not None and second is not None:
                    self.entries[expr.id] = first.union(second)
                size = args[1].size_or_unknown.union(args[2].size_or_unknown)
                return CallCost(plus(costs[0], max(costs[1], costs[2])), size)
            case "add_list" | "add_string" | "add_bytes":
                first, second = self._entries(args[0].expr), self._entries(args[1].expr)
                if first is not None and second is not None:
                    self.entries[expr.id] = first.union(second)
        call = estimate_call(expr.function, overload, target, args, self.checked.environment.call_costs)
        return CallCost(plus(before, call.cost), call.size)

    def _dyn(self, expr: CallExpr) -> int:
        total = plus(1, self.cost(expr.args[0]))
        self._copy_sizes(expr, expr.args[0])
        return total

    def _copy_sizes(self, to: Expr, source: Expr) -> None:
        if (size := self._size(source)) is not None:
            self.sizes[to.id] = size
        if (entries := self._entries(source)) is not None:
            self.entries[to.id] = entries

    def _list(self, expr: ListExpr) -> int:
        total, element = LIST_COST, Size(UNBOUNDED if expr.elements else 0, 0)
        for part in expr.elements:
            total = plus(total, self.cost(part))
            element = element.union(self._size_or_unknown(part))
        self.entries[expr.id] = EntrySize(True, Size.exactly(1), element)
        return total

    def _map(self, expr: MapExpr) -> int:
        low = UNBOUNDED if expr.entries else 0
        total, key, value = MAP_COST, Size(low, 0), Size(low, 0)
        for entry in expr.entries:
            total = plus(total, self.cost(entry.key))
            total = plus(total, self.cost(entry.value))
            key = key.union(self._size_or_unknown(entry.key))
            value = value.union(self._size_or_unknown(entry.value))
        self.entries[expr.id] = EntrySize(False, key, value)
        return total

    # --- comprehensions

    def _push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def _push_value(self, name: str, expr: Expr) -> None:
        self._push(name, _Local(self._path(expr), self._size(expr), self._entries(expr)))

    def _push_iteration(self, expr: Comprehension) -> None:
        entries = self._entries(expr.range)
        over_list = entries.is_list if entries else self.checked.types[expr.range.id].kind is TypeKind.LIST
        key, value = (entries.key, entries.value) if entries else (None, None)
        path = self._path(expr.range)
        keys = _Local((*path, "@indices" if over_list else "@keys"), key, None)
        values = _Local((*path, "@items" if over_list else "@values"), value, None)
        if expr.variable2:
            self._push(expr.variable, keys)
            self._push(expr.variable2, values)
        else:
            self._push(expr.variable, values if over_list else keys)

    def _comprehension(self, expr: Comprehension) -> int:
        total = plus(self.cost(expr.range), self.cost(expr.init))
        self._push_value(expr.accumulator, expr.init)
        self._push_iteration(expr)
        # Inside the loop both variables are known; the result below sees the accumulator alone.
        each = plus(self.cost(expr.condition), self.cost(expr.step))
        for name in filter(None, (expr.variable, expr.variable2)):
            self.locals[name].pop()
        total = plus(total, self.cost(expr.result))
        self.locals[expr.accumulator].pop()
        count = self._size_or_unknown(expr.range)
        if isinstance(expr.init, Literal):
            self.sizes[expr.id] = self._size_or_unknown(expr.init)
        elif isinstance(expr.init, ListExpr | MapExpr):
            self.sizes[expr.id] = count
            if (entries := self._entries(expr.step)) is not None:
                self.entries[expr.id] = entries
        return plus(total, times(count.high, each))

    def _bind(self, expr: Comprehension) -> int:
        total = plus(self.cost(expr.range), self.cost(expr.init))
        self._push_value(expr.accumulator, expr.init)
        total = plus(total, self.cost(expr.result))
        self.locals[expr.accumulator].pop()
        self._copy_sizes(expr, expr.result)
        return total


def _literal_size(expr: Expr) -> Size | None:
    match expr:
        case Literal(value=str() | bytes() as text):
            return Size.exactly(len(text))
        case Literal(value=bool() | int() | float() | Uint() | None):
            return Size.exactly(1)
        case ListExpr():
            return Size.exactly(len(expr.elements))
        case MapExpr():
            return Size.exactly(len(expr.entries))
    return None


def _is_scalar(t: Type) -> bool:
    while is_optional(t):
        t = t.params[0]
    return t.kind in _SCALARS
