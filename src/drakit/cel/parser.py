"""Turn text into a tree, macros unfolded on the way.

In:  the text, and which macros exist.
Out: a Tree, or CompileError with the place of every fault that was found.

Operators are parsed with explicit stacks, so that the Python stack grows only with brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from drakit.cel.ast import Call, Comprehension, Entry, Expr, Ident, ListExpr, Literal, MapExpr, Select, StructExpr, Tree
from drakit.cel.errors import CompileError
from drakit.cel.lexer import RESERVED, Token, tokenize
from drakit.cel.literals import LiteralError, read_bytes, read_double, read_int, read_string, read_uint
from drakit.cel.source import Source

MAX_DEPTH = 250
MAX_LENGTH = 100_000
MAX_NODES = 50_000  # macros repeat their target: a chain of them would otherwise grow without bound

_PRECEDENCE = {"||": 1, "&&": 2, "<": 3, "<=": 3, ">=": 3, ">": 3, "==": 3, "!=": 3, "in": 3}
_PRECEDENCE |= {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: no text of the wire has one
_KEYWORDS = frozenset({"in", "true", "false", "null"})
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

Macro = Callable[["Parser", Expr | None, list[Expr], int], Expr | None]
_Node = TypeVar("_Node", bound=Expr)


def operator_name(symbol: str) -> str:
    """The function behind an infix operator."""
    return "@in" if symbol == "in" else f"_{symbol}_"


class MacroError(Exception):
    """A macro that is used in a way it has no meaning for."""

    def __init__(self, at: Expr, message: str) -> None:
        self.offset = at.offset
        super().__init__(message)


class _SyntaxFault(Exception):
    def __init__(self, offset: int, message: str) -> None:
        self.offset = offset
        super().__init__(message)


def parse(source: Source, macros: Mapping[tuple[str, int, bool], Macro], *, max_length: int = MAX_LENGTH) -> Tree:
    """Read the whole text; raise CompileError when any of it makes no sense."""
    if len(source.text) > max_length:
        size = f"size: {len(source.text)}, limit {max_length}"
        raise CompileError([source.issue(0, f"expression code point size exceeds limit: {size}")])
    if (surrogate := _SURROGATE.search(source.text)) is not None:
        raise CompileError([source.issue(surrogate.start(), "invalid unicode code point")])
    return Parser(source, macros).run()


class Parser:
    """One pass over one text. Macros use `ident`, `call` and the like to build their expansion."""

    def __init__(self, source: Source, macros: Mapping[tuple[str, int, bool], Macro]) -> None:
        self.source = source
        self._macros = macros
        self._tokens, self._issues = tokenize(source)
        self._at = 0
        self._next_id = 0
        self._nesting = 0
        self._heights: dict[int, int] = {}  # node id -> how deep, counted as upstream's reader counts
        self._macro_calls: dict[int, Call] = {}
        self._closed: set[int] = set()  # ids of what stood in brackets: `(a && b) && c` keeps its shape

    def run(self) -> Tree:
        try:
            root = self._expression()
            if self._token.kind != "eof":
                raise self._unexpected("<EOF>")
        except _SyntaxFault as fault:
            self._issues.append(self.source.issue(fault.offset, str(fault)))
            raise CompileError(self._issues) from None
        if self._issues:
            raise CompileError(self._issues)
        return Tree(root, self._macro_calls)

    # --- nodes, also for macros

    def new_id(self) -> int:
        self._next_id += 1
        if self._next_id > MAX_NODES:
            raise _SyntaxFault(self._token.offset, f"expression is too large: more than {MAX_NODES} parts")
        return self._next_id

    def literal(self, offset: int, value: object) -> Literal:
        return Literal(self.new_id(), offset, value)

    def ident(self, offset: int, name: str) -> Ident:
        return Ident(self.new_id(), offset, name)

    def call(self, offset: int, function: str, *args: Expr, target: Expr | None = None) -> Call:
        return Call(self.new_id(), offset, function, target, list(args))

    def list_of(self, offset: int, *elements: Expr) -> ListExpr:
        return ListExpr(self.new_id(), offset, list(elements))

    def fold(
        self, offset: int, macro: str, over: Expr, variables: tuple[str, str], accumulator: str, *parts: Expr
    ) -> Comprehension:
        """A comprehension; `parts` are init, condition, step and result."""
        return Comprehension(self.new_id(), offset, macro, over, *variables, accumulator, *parts)

    # --- tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _is(self, symbol: str) -> bool:
        token = self._tokens[self._at]
        return token.text == symbol and token.kind in {"op", "ident"}

    def _accept(self, symbol: str) -> Token | None:
        return self._take() if self._is(symbol) else None

    def _expect(self, symbol: str) -> Token:
        if not self._is(symbol):
            raise self._unexpected(f"'{symbol}'")
        return self._take()

    def _unexpected(self, wanted: str) -> _SyntaxFault:
        token = self._token
        return _SyntaxFault(token.offset, f"Syntax error: mismatched input '{token.text}' expecting {wanted}")

    def _fault(self, offset: int, message: str) -> Literal:
        """Note a fault that the parser can read past; the node stands in for what was wrong."""
        self._issues.append(self.source.issue(offset, message))
        return self.literal(offset, None)

    # --- depth

    def _measured(self, node: _Node, *parts: Expr, counted: bool = False) -> _Node:
        """Remember how deep a node is."""
        height = max((self._heights.get(part.id, 0) for part in parts), default=0) + counted
        if height > MAX_DEPTH:
            raise _SyntaxFault(node.offset, "max recursion depth exceeded")
        self._heights[node.id] = height
        return node

    # --- grammar

    # Brackets are where the Python stack grows: from `_expression` to the next one there are three calls, no more.

    def _expression(self, *, whole: bool = True) -> Expr:
        """Operands joined by infix operators, by precedence; `whole` with `? :` behind them."""
        if whole:
            self._enter()
        terms, pending = [self._operand()], list[Token]()
        while (token := self._token).text in _PRECEDENCE and token.kind in {"op", "ident"}:
            self._take()
            while pending and _PRECEDENCE[pending[-1].text] >= _PRECEDENCE[token.text]:
                self._reduce(terms, pending)
            pending.append(token)
            terms.append(self._operand())
        while pending:
            self._reduce(terms, pending)
        if whole:
            if question := self._accept("?"):
                then = self._expression(whole=False)
                self._expect(":")
                parts = (terms[0], then, self._expression())
                terms[0] = self._measured(self.call(question.offset, "_?_:_", *parts), *parts, counted=True)
            self._nesting -= 1
        return terms[0]

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_DEPTH:
            raise _SyntaxFault(self._token.offset, f"expression recursion limit exceeded: {MAX_DEPTH}")

    def _reduce(self, terms: list[Expr], pending: list[Token]) -> None:
        operator = pending.pop()
        right, left = terms.pop(), terms.pop()
        name = operator_name(operator.text)
        logical = operator.text in {"&&", "||"}
        chain = logical and isinstance(left, Call) and left.function == name and left.id not in self._closed
        if chain and isinstance(left, Call):  # a && b && c is one node of three terms
            left.args.append(right)
            terms.append(self._measured(left, *left.args))
        else:
            node = self.call(operator.offset, name, left, right)
            terms.append(self._measured(node, left, right, counted=not logical))

    def _operand(self) -> Expr:
        """Signs, what they stand before, and all that is selected from it."""
        first = self._token
        odd = self._signs(first)
        node = self._primary()
        while True:
            if dot := self._accept("."):
                node = self._selection(node, dot)
            elif bracket := self._accept("["):
                name = "_[?_]" if self._accept("?") else "_[_]"
                index = self._expression()
                self._expect("]")
                node = self._measured(self.call(bracket.offset, name, node, index), node, index, counted=True)
            else:
                break
        return self._measured(self.call(first.offset, f"{first.text}_", node), node) if odd else node

    def _signs(self, first: Token) -> bool:
        """Take all equal signs; whether they come to one. The one sign of a number belongs to the number."""
        if first.kind != "op" or first.text not in {"!", "-"}:
            return False
        if first.text == "-" and self._tokens[self._at + 1].kind in {"int", "float"}:
            return False
        count = 0
        while self._accept(first.text):
            count += 1
        return count % 2 == 1

    def _selection(self, operand: Expr, dot: Token) -> Expr:
        optional = self._accept("?")
        name = self._take()
        if name.kind == "escaped":
            self._fault(name.offset, "unsupported syntax: '`'")
        elif name.kind != "ident" or name.text in _KEYWORDS:
            self._at -= 1
            raise self._unexpected("IDENTIFIER")
        if optional:
            field = self.literal(name.offset, name.text)
            return self._measured(self.call(dot.offset, "_?._", operand, field), operand, counted=True)
        if not self._is("("):
            return self._measured(Select(self.new_id(), dot.offset, operand, name.text), operand, counted=True)
        opening, args = self._arguments()
        node = self._macro_or_call(opening.offset, name.text, operand, args)
        return self._measured(node, operand, *args, counted=True)

    def _arguments(self) -> tuple[Token, list[Expr]]:
        opening = self._expect("(")
        args: list[Expr] = []
        if not self._accept(")"):
            args.append(self._expression())
            while self._accept(","):
                args.append(self._expression())
            self._expect(")")
        return opening, args

    def _macro_or_call(self, offset: int, name: str, target: Expr | None, args: list[Expr]) -> Expr:
        written = Call(0, offset, name, target, list(args))
        macro = self._macros.get((name, len(args), target is not None))
        if macro is None:
            return self.call(offset, name, *args, target=target)
        try:
            expanded = macro(self, target, args, offset)
        except MacroError as error:
            return self._fault(error.offset, str(error))
        if expanded is None:
            return self.call(offset, name, *args, target=target)
        self._macro_calls[expanded.id] = written
        return expanded

    def _primary(self) -> Expr:
        token = self._token
        if token.kind == "op" and token.text == "(":
            self._take()
            inner = self._expression()
            self._expect(")")
            self._closed.add(inner.id)
            return inner
        if token.kind == "op":
            return self._symbol(token)
        if token.kind == "ident" and token.text not in _KEYWORDS:
            return self._name()
        return self._literal(self._take())

    def _symbol(self, token: Token) -> Expr:
        """What starts with a symbol: a list, a map, a signed number, a name with a dot in front."""
        following = self._tokens[self._at + 1].kind if token.text in {".", "-"} else ""
        if token.text == "[":
            return self._list()
        if token.text == "{":
            return self._map(self._take())
        if token.text == "." and following == "ident":
            return self._name()
        if token.text == "-" and following in {"int", "float"}:
            self._take()
            return self._literal(self._take(), negative=True, offset=token.offset)
        raise self._unexpected("an expression")

    def _name(self) -> Expr:
        dot = self._accept(".")
        token = self._take()
        if token.text in _KEYWORDS:
            raise _SyntaxFault(token.offset, f"Syntax error: mismatched input '{token.text}' expecting IDENTIFIER")
        if self._starts_message():
            return self._message(("." if dot else "") + token.text)
        if token.text in RESERVED:
            return self._fault(token.offset, f"reserved identifier: {token.text}")
        name = ("." if dot else "") + token.text
        if not self._is("("):
            return self.ident(token.offset, name)
        opening, args = self._arguments()
        return self._measured(self._macro_or_call(opening.offset, name, None, args), *args)

    def _literal(self, token: Token, *, negative: bool = False, offset: int | None = None) -> Expr:
        at = token.offset if offset is None else offset
        try:
            match token.kind:
                case "int":
                    return self.literal(at, read_int(token.text, negative=negative))
                case "uint":
                    return self.literal(at, read_uint(token.text))
                case "float":
                    return self.literal(at, read_double(token.text, negative=negative))
                case "string":
                    return self.literal(at, read_string(token.text))
                case "bytes":
                    return self.literal(at, read_bytes(token.text))
                case "ident" if token.text in _CONSTANTS:
                    return self.literal(at, _CONSTANTS[token.text])
        except LiteralError as error:
            return self._fault(at, str(error))
        self._at -= 1
        raise self._unexpected("an expression")

    def _list(self) -> Expr:
        opening = self._take()
        elements: list[Expr] = []
        optional: set[int] = set()
        while not self._is("]"):
            if self._is(",") and not elements:
                break
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._is(","):
                break
            self._take()
        self._accept(",")
        self._expect("]")
        return self._measured(ListExpr(self.new_id(), opening.offset, elements, frozenset(optional)), *elements)

    def _map(self, opening: Token) -> Expr:
        entries: list[Entry] = []
        while not self._is("}"):
            if self._is(",") and not entries:
                break
            optional = self._accept("?") is not None
            key = self._expression()
            colon = self._expect(":")
            entries.append(Entry(colon.offset, key, self._expression(), optional))
            if not self._is(","):
                break
            self._take()
        self._accept(",")
        self._expect("}")
        parts = [part for entry in entries for part in (entry.key, entry.value)]
        return self._measured(MapExpr(self.new_id(), opening.offset, entries), *parts)

    def _starts_message(self) -> bool:
        """Whether `a.b.C{` stands here; the first name is already taken."""
        at = self._at
        while self._tokens[at].text == "." and self._tokens[at + 1].kind == "ident":
            at += 2
        return self._tokens[at].text == "{" and self._tokens[at].kind == "op"

    def _message(self, name: str) -> Expr:
        while self._accept("."):
            name += "." + self._take().text
        opening = self._expect("{")
        entries: list[tuple[str, Expr]] = []
        while not self._is("}") and not self._is(","):
            self._accept("?")
            field = self._take()
            if field.kind != "ident":
                self._at -= 1
                raise self._unexpected("IDENTIFIER")
            self._expect(":")
            entries.append((field.text, self._expression()))
            if not self._accept(","):
                break
        self._accept(",")
        self._expect("}")
        parts = [value for _, value in entries]
        return self._measured(StructExpr(self.new_id(), opening.offset, name, entries), *parts)
