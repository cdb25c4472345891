"""Which type may stand where which is wanted, and what type parameters become on the way.

A Substitution grows while an expression is checked. An attempt that fails leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.cel.checking.types import DYN, Type, TypeKind, is_dynamic

_NULLABLE = frozenset({TypeKind.OPAQUE, TypeKind.STRUCT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP})
_NESTED = frozenset({TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP, TypeKind.TYPE})


class Substitution:
    """What each type parameter stands for."""

    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._undo: list[tuple[str, Type | None]] = []
        self._count = 0

    def fresh(self) -> Type:
        """A type parameter that nothing is known of."""
        self._count += 1
        return Type(TypeKind.PARAM, f"_var{self._count}")

    def assignable(self, t1: Type, t2: Type) -> bool:
        """Whether a t1 may stand where a t2 is wanted; if so, parameters are bound."""
        return self.all_assignable((t1,), (t2,))

    def all_assignable(self, actual: Sequence[Type], wanted: Sequence[Type]) -> bool:
        if len(actual) != len(wanted):
            return False
        # Several overloads are tried one after the other; a failed one must not leave bindings to the next.
        mark = len(self._undo)
        if all(self._assignable(a, w) for a, w in zip(actual, wanted, strict=True)):
            return True
        while len(self._undo) > mark:
            name, before = self._undo.pop()
            if before is None:
                del self._known[name]
            else:
                self._known[name] = before
        return False

    def resolve(self, t: Type, *, free_as_dyn: bool = False) -> Type:
        """The type with all known parameters filled in."""
        if t.closed:
            return t
        while t.kind is TypeKind.PARAM and (found := self._known.get(t.name)) is not None:
            t = found
        if t.kind is TypeKind.PARAM:
            return DYN if free_as_dyn else t
        if t.closed:
            return t
        return Type(t.kind, t.name, tuple(self.resolve(p, free_as_dyn=free_as_dyn) for p in t.params))

    def _bind(self, parameter: Type, t: Type) -> None:
        self._undo.append((parameter.name, self._known.get(parameter.name)))
        self._known[parameter.name] = t

    def _assignable(self, t1: Type, t2: Type) -> bool:
        if t2.kind is TypeKind.PARAM:
            valid, bound = self._substitute(t1, t2)
            if valid or bound:
                return valid
        if t1.kind is TypeKind.PARAM:
            return self._substitute(t2, t1)[0]
        # An error was reported where it arose: it fits everything, so that it is not reported again further up.
        if is_dynamic(t1) or is_dynamic(t2) or TypeKind.ERROR in {t1.kind, t2.kind}:
            return True
        if t1.kind is TypeKind.NULL:
            return _takes_null(t2)
        if t2.kind is TypeKind.NULL:
            return _takes_null(t1)
        if t1.kind is TypeKind.TYPE:
            return t2.kind is TypeKind.TYPE
        if t1.kind is not t2.kind or t1.name != t2.name or len(t1.params) != len(t2.params):
            return False
        return all(self._assignable(a, b) for a, b in zip(t1.params, t2.params, strict=True))

    def _substitute(self, t1: Type, parameter: Type) -> tuple[bool, bool]:
        """Let a parameter stand for t1: whether it can, and whether it already stood for something."""
        if t1 == parameter:
            return True, True
        known = self._known.get(parameter.name)
        if known is None:
            # Occurs check: a parameter that stands for a type with itself in it would never resolve.
            if self._free_of(parameter, t1):
                self._bind(parameter, t1)
                return True, False
            return False, False
        if t1 == known:
            return True, True
        if not self._assignable(t1, known):
            return False, True
        general = most_general(t1, known)
        if self._free_of(parameter, general):
            self._bind(parameter, general)
        return True, True

    def _free_of(self, parameter: Type, within: Type) -> bool:
        if within.closed:
            return True
        if parameter == within:
            return False
        if within.kind is TypeKind.PARAM:
            known = self._known.get(within.name)
            return known is None or self._free_of(parameter, known)
        return all(self._free_of(parameter, p) for p in within.params)


def most_general(t1: Type, t2: Type) -> Type:
    return t1 if _as_general(t1, t2) else t2


def _as_general(t1: Type, t2: Type) -> bool:
    """Whether t1 says no more than t2."""
    if is_dynamic(t1) or t1.kind is TypeKind.PARAM:
        return True
    if is_dynamic(t2) or t2.kind is TypeKind.PARAM or t1.kind is not t2.kind:
        return False
    if t1.kind is TypeKind.TYPE:
        return True
    if t1.kind in _NESTED:
        same = t1.name == t2.name and len(t1.params) == len(t2.params)
        return same and all(map(_as_general, t1.params, t2.params))
    return t1 == t2


def _takes_null(t: Type) -> bool:
    return t.kind in _NULLABLE or t.kind is TypeKind.NULL
