"""Write a tree as text again, with few parentheses, and with macros as the author wrote them.

Invariant: parsing the text gives the same tree, except for ids and offsets.
"""

from __future__ import annotations

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
from drakit.cel.values import Uint, Value

_TERNARY, _OR, _AND, _RELATION, _SUM, _PRODUCT, _UNARY, _MEMBER = range(8)
_INFIX = {
    "_||_": ("||", _OR),
    "_&&_": ("&&", _AND),
    **{f"_{symbol}_": (symbol, _RELATION) for symbol in ("<", "<=", ">", ">=", "==", "!=")},
    "@in": ("in", _RELATION),
    "_+_": ("+", _SUM),
    "_-_": ("-", _SUM),
    "_*_": ("*", _PRODUCT),
    "_/_": ("/", _PRODUCT),
    "_%_": ("%", _PRODUCT),
}
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def unparse(tree: Tree, expr: Expr | None = None) -> str:
    """The text of a tree, or of a part of it."""
    return _Unparser(tree).text(tree.root if expr is None else expr, _TERNARY)


def literal_text(value: Value) -> str:
    """The literal that is parsed to this value."""
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return '"' + "".join(map(_escaped, value)) + '"'
        case bytes():
            return 'b"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in value) + '"'
        case Uint():
            return f"{int(value)}u"
    return repr(value)


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else f"\\U{ord(char):08x}"


class _Unparser:
    def __init__(self, tree: Tree) -> None:
        self._macros = tree.macro_calls

    def text(self, expr: Expr, least: int) -> str:
        """The text of an expression. It gets parentheses when its operator binds weaker than `least`."""
        written = self._macros.get(expr.id)
        strength, text = self._node(expr if written is None else written)
        return text if strength >= least else f"({text})"

    def _node(self, expr: Expr) -> tuple[int, str]:
        match expr:
            case Literal():
                return _MEMBER, literal_text(expr.value)
            case Ident():
                return _MEMBER, expr.name
            case Select():
                chosen = f"{self.text(expr.operand, _MEMBER)}.{expr.name}"
                return _MEMBER, f"has({chosen})" if expr.test_only else chosen
            case CallExpr():
                return self._call(expr)
            case ListExpr():
                marks = ("?" if index in expr.optional else "" for index in range(len(expr.elements)))
                inner = (mark + self.text(part, _TERNARY) for mark, part in zip(marks, expr.elements, strict=True))
                return _MEMBER, f"[{', '.join(inner)}]"
            case MapExpr():
                return _MEMBER, self._map(expr)
            case StructExpr():
                fields = (f"{'?' if e.optional else ''}{e.name}: {self.text(e.value, _TERNARY)}" for e in expr.entries)
                return _MEMBER, f"{expr.name}{{{', '.join(fields)}}}"
            case Comprehension():
                # A macro may copy its target. Such a copy has no text, because nobody wrote it.
                return _MEMBER, f"<{expr.macro}>"
        raise TypeError(type(expr))

    def _map(self, expr: MapExpr) -> str:
        entries = (
            f"{'?' if e.optional else ''}{self.text(e.key, _TERNARY)}: {self.text(e.value, _TERNARY)}"
            for e in expr.entries
        )
        return f"{{{', '.join(entries)}}}"

    def _call(self, expr: CallExpr) -> tuple[int, str]:
        if expr.target is not None:
            return _MEMBER, f"{self.text(expr.target, _MEMBER)}.{expr.function}({self._arguments(expr)})"
        if expr.function in _INFIX:
            return self._infix(expr)
        args = expr.args
        match expr.function:
            case "_?_:_":
                then, other = self.text(args[1], _OR), self.text(args[2], _TERNARY)
                return _TERNARY, f"{self.text(args[0], _OR)} ? {then} : {other}"
            case "!_" | "-_":
                return _UNARY, expr.function[0] + self._operand(args[0])
            case "_[_]":
                return _MEMBER, f"{self.text(args[0], _MEMBER)}[{self.text(args[1], _TERNARY)}]"
            case "_[?_]":
                return _MEMBER, f"{self.text(args[0], _MEMBER)}[?{self.text(args[1], _TERNARY)}]"
            case "_?._" if isinstance(args[1], Literal):
                return _MEMBER, f"{self.text(args[0], _MEMBER)}.?{args[1].value}"
        return _MEMBER, f"{expr.function}({self._arguments(expr)})"

    def _operand(self, expr: Expr) -> str:
        # `-1` would read back as a number and `--x` as x, so what starts with a sign gets brackets.
        text = self.text(expr, _MEMBER)
        signed = isinstance(expr, Literal) and expr.value.__class__ in {int, float}
        return f"({text})" if signed or text.startswith("-") else text

    def _infix(self, expr: CallExpr) -> tuple[int, str]:
        symbol, strength = _INFIX[expr.function]
        logical = strength in {_OR, _AND}
        # `a && b && c` is one node. A node of the same operator as its first term was in parentheses, and keeps them.
        first = strength + 1 if logical else strength
        parts = [self.text(expr.args[0], first), *(self.text(arg, strength + 1) for arg in expr.args[1:])]
        return strength, f" {symbol} ".join(parts)

    def _arguments(self, expr: CallExpr) -> str:
        return ", ".join(self.text(arg, _TERNARY) for arg in expr.args)
