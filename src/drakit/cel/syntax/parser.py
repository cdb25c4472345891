"""Parse an expression into a tree. Macros are expanded while parsing.

In:  the text, and which macros exist.
Out: a Tree, or CompileError with the position of every error that was found.

Operators are parsed with explicit stacks, so that the Python stack grows only with brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from drakit.cel.errors import CompileError
from drakit.cel.syntax.ast import (
    CallExpr,
    Comprehension,
    Expr,
    FieldEntry,
    Ident,
    ListExpr,
    Literal,
    MapEntry,
    MapExpr,
    Select,
    StructExpr,
    Tree,
)
from drakit.cel.syntax.lexer import RESERVED, Token
from drakit.cel.syntax.literals import LiteralError, read_bytes, read_double, read_int, read_string, read_uint
from drakit.cel.syntax.source import Source
from drakit.cel.syntax.tokens import TokenStream, TooManyFaults, is_name

MAX_DEPTH = 250
MAX_LENGTH = 100_000
MAX_NODES = 50_000  # macros repeat their target: a chain of them would otherwise grow without bound

_PRECEDENCE = {"||": 1, "&&": 2, "<": 3, "<=": 3, ">=": 3, ">": 3, "==": 3, "!=": 3, "in": 3}
_PRECEDENCE |= {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5}
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a UTF-16 pair: valid UTF-8 has none
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

Macro = Callable[["Parser", Expr | None, list[Expr], int], Expr | None]
_Node = TypeVar("_Node", bound=Expr)


def operator_name(symbol: str) -> str:
    """The function behind an infix operator."""
    return "@in" if symbol == "in" else f"_{symbol}_"


class MacroError(Exception):
    """A macro is called with arguments that it does not accept."""

    def __init__(self, at: Expr, message: str) -> None:
        self.offset = at.offset
        super().__init__(message)


class _Limit(Exception):
    """The expression is larger or deeper than the parser allows."""


def parse(source: Source, macros: Mapping[tuple[str, int, bool], Macro], *, max_length: int = MAX_LENGTH) -> Tree:
    """Parse the whole text. Raise CompileError with all errors that were found."""
    # Before the lexer: a huge text must not cost more than its length.
    if len(source.text) > max_length:
        size = f"size: {len(source.text)}, limit {max_length}"
        raise CompileError([source.unplaced(f"expression code point size exceeds limit: {size}")])
    if (surrogate := _SURROGATE.search(source.text)) is not None:
        raise CompileError([source.issue(surrogate.start(), "invalid unicode code point")])
    return Parser(source, macros).run()


class Parser:
    """Parses one text, once. Macros call `ident`, `call` and the like to build their expansion."""

    def __init__(self, source: Source, macros: Mapping[tuple[str, int, bool], Macro]) -> None:
        self.source = source
        self._macros = macros
        self._tokens = TokenStream(source)
        self._next_id = 0
        self._nesting = 0
        self._heights: dict[int, int] = {}  # node id -> depth, counted as upstream's parser counts it
        self._macro_calls: dict[int, CallExpr] = {}
        self._closed: set[int] = set()  # ids of nodes in parentheses: `(a && b) && c` is not flattened

    def run(self) -> Tree:
        issues = self._tokens.issues
        try:
            root = self._expression()
            self._tokens.expect_end()
        except TooManyFaults:
            raise CompileError(issues) from None
        except _Limit as limit:
            raise CompileError([*issues, self.source.unplaced(str(limit))]) from None
        if issues:
            raise CompileError(issues)
        return Tree(root, self._macro_calls)

    # --- nodes, also for macros

    def new_id(self) -> int:
        self._next_id += 1
        if self._next_id > MAX_NODES:
            raise _Limit(f"expression is too large: more than {MAX_NODES} parts")
        return self._next_id

    def literal(self, offset: int, value: object) -> Literal:
        return Literal(self.new_id(), offset, value)

    def ident(self, offset: int, name: str) -> Ident:
        return Ident(self.new_id(), offset, name)

    def call(self, offset: int, function: str, *args: Expr, target: Expr | None = None) -> CallExpr:
        return CallExpr(self.new_id(), offset, function, target, list(args))

    def list_of(self, offset: int, *elements: Expr) -> ListExpr:
        return ListExpr(self.new_id(), offset, list(elements))

    def fold(
        self, offset: int, macro: str, over: Expr, variables: tuple[str, str], accumulator: str, *parts: Expr
    ) -> Comprehension:
        """A comprehension; `parts` are init, condition, step and result."""
        return Comprehension(self.new_id(), offset, macro, over, *variables, accumulator, *parts)

    def _fault(self, offset: int, message: str) -> Literal:
        """Report an error and go on. The returned node takes the place of the part that is wrong."""
        self._tokens.issues.append(self.source.issue(offset, message))
        return self.literal(offset, None)

    # --- depth

    def _measured(self, node: _Node, *parts: Expr, counted: bool = False) -> _Node:
        """Record the depth of a node. `counted` adds one level for the node itself."""
        height = max((self._heights.get(part.id, 0) for part in parts), default=0) + counted
        if height > MAX_DEPTH:
            raise _Limit("max recursion depth exceeded")
        self._heights[node.id] = height
        return node

    # --- grammar

    # Brackets are where the Python stack grows: from `_expression` to the next one there are few calls.

    def _expression(self, *, whole: bool = True) -> Expr:
        """Parse operands and infix operators, by precedence. With `whole`, a conditional (`? :`) may follow."""
        tokens = self._tokens
        if whole:
            self._enter()
        terms, pending = [self._operand()], list[Token]()
        while tokens.at(*_PRECEDENCE):
            token = tokens.take()
            # `>=`, not `>`: operators of equal precedence associate to the left.
            while pending and _PRECEDENCE[pending[-1].text] >= _PRECEDENCE[token.text]:
                self._reduce(terms, pending)
            pending.append(token)
            terms.append(self._operand())
        while pending:
            self._reduce(terms, pending)
        if whole:
            if question := tokens.accept("?"):
                tokens.enter(":")
                # The grammar allows a conditional as the last branch, but in the middle only in parentheses.
                then = self._expression(whole=False)
                tokens.leave(":")
                parts = (terms[0], then, self._expression())
                terms[0] = self._measured(self.call(question.offset, "_?_:_", *parts), *parts, counted=True)
            self._nesting -= 1
        return terms[0]

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_DEPTH:
            raise _Limit(f"expression recursion limit exceeded: {MAX_DEPTH}")

    def _reduce(self, terms: list[Expr], pending: list[Token]) -> None:
        operator = pending.pop()
        right, left = terms.pop(), terms.pop()
        name = operator_name(operator.text)
        logical = operator.text in {"&&", "||"}
        chain = logical and isinstance(left, CallExpr) and left.function == name and left.id not in self._closed
        if chain and isinstance(left, CallExpr):  # a && b && c is one node of three terms
            left.args.append(right)
            terms.append(self._measured(left, *left.args))
        else:
            node = self.call(operator.offset, name, left, right)
            terms.append(self._measured(node, left, right, counted=not logical))

    def _operand(self) -> Expr:
        """Parse one operand: its signs, its value, and the fields, indexes and method calls behind it."""
        tokens, first = self._tokens, self._tokens.current
        odd = self._signs(first)
        node = self._primary()
        while True:
            if dot := tokens.accept("."):
                node = self._selection(node, dot)
            elif bracket := tokens.accept("["):
                tokens.enter("]")
                name = "_[?_]" if tokens.accept("?") else "_[_]"
                index = self._expression()
                tokens.leave("]")
                node = self._measured(self.call(bracket.offset, name, node, index), node, index, counted=True)
            else:
                break
        return self._measured(self.call(first.offset, f"{first.text}_", node), node) if odd else node

    def _signs(self, first: Token) -> bool:
        """Consume a run of one sign (`!` or `-`). Return whether a sign is left, because two cancel each other.

        A single minus before a number stays: it is part of the number.
        """
        tokens = self._tokens
        if not tokens.at("!", "-") or (first.text == "-" and tokens.ahead().kind in {"int", "float"}):
            return False
        count = 0
        while tokens.accept(first.text):
            count += 1
        return count % 2 == 1

    def _selection(self, operand: Expr, dot: Token) -> Expr:
        tokens = self._tokens
        optional = tokens.accept("?")
        name = tokens.current
        if name.kind == "escaped" and tokens.take():
            self._fault(name.offset, "unsupported syntax: '`'")
        elif optional and not (is_name(name) or tokens.expect_field()):
            return operand
        elif not is_name(name):
            tokens.refuse_behind(".")
            return operand
        else:
            tokens.take()
        if optional:
            field = self.literal(name.offset, name.text)
            return self._measured(self.call(dot.offset, "_?._", operand, field), operand, counted=True)
        if name.kind == "escaped" or not tokens.at("("):
            return self._measured(Select(self.new_id(), dot.offset, operand, name.text), operand, counted=True)
        opening, args = self._arguments()
        node = self._macro_or_call(opening.offset, name.text, operand, args)
        return self._measured(node, operand, *args, counted=True)

    def _arguments(self) -> tuple[Token, list[Expr]]:
        tokens = self._tokens
        opening = tokens.take()
        args: list[Expr] = []
        tokens.enter(")", ",")
        if tokens.expect_operand(")") and not tokens.at(")"):
            args.append(self._expression())
            while tokens.accept(","):
                args.append(self._expression())
        tokens.leave(")")
        return opening, args

    def _macro_or_call(self, offset: int, name: str, target: Expr | None, args: list[Expr]) -> Expr:
        written = CallExpr(0, offset, name, target, list(args))
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
        tokens, token = self._tokens, self._tokens.current
        if tokens.at("-", "!") or not tokens.expect_operand():
            return self._signed(token)
        token = tokens.current
        if tokens.accept("("):
            tokens.enter(")")
            inner = self._expression()
            tokens.leave(")")
            self._closed.add(inner.id)
            return inner
        if token.kind == "op":
            return self._symbol(token)
        if is_name(token):
            return self._name()
        return self._literal(tokens.take())

    def _signed(self, token: Token) -> Expr:
        """Parse a negative number. Anything else is an error here, and a null literal stands in for it."""
        tokens = self._tokens
        if token.text == "-" and tokens.accept("-"):
            if tokens.current.kind in {"int", "float"}:
                return self._literal(tokens.take(), negative=True, offset=token.offset)
            tokens.refuse_behind("-")
        return self.literal(token.offset, None)

    def _symbol(self, token: Token) -> Expr:
        """Parse what starts with a symbol: a list, a map, or a name with a leading dot."""
        tokens = self._tokens
        if token.text == "[":
            return self._list()
        if token.text == "{":
            return self._map(tokens.take())
        if token.text == "." and is_name(tokens.ahead()):
            return self._name()
        tokens.take()
        tokens.refuse_behind(token.text)
        return self.literal(token.offset, None)

    def _name(self) -> Expr:
        tokens = self._tokens
        dot = tokens.accept(".")
        token = tokens.take()
        name = ("." if dot else "") + token.text
        if self._starts_message():
            return self._message(name)
        if token.text in RESERVED:
            return self._fault(token.offset, f"reserved identifier: {token.text}")
        if not tokens.at("("):
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
        return self.literal(at, None)  # not a literal: the error was reported before

    def _list(self) -> Expr:
        tokens = self._tokens
        opening = tokens.take()
        elements: list[Expr] = []
        optional: set[int] = set()
        tokens.enter("]", ",")
        if tokens.expect_operand("]", ",", "?"):
            while not tokens.at("]", ","):
                if tokens.accept("?"):
                    optional.add(len(elements))
                elements.append(self._expression())
                if not tokens.expect_more("]") or not tokens.accept(","):
                    break
            tokens.accept(",")
        tokens.leave("]")
        return self._measured(ListExpr(self.new_id(), opening.offset, elements, frozenset(optional)), *elements)

    def _map(self, opening: Token) -> Expr:
        tokens = self._tokens
        entries: list[MapEntry] = []
        tokens.enter("}", ",")
        if tokens.expect_operand("}", ",", "?"):
            while not tokens.at("}", ","):
                optional = tokens.accept("?") is not None
                tokens.enter(":")
                key = self._expression()
                colon = tokens.leave(":")
                entries.append(MapEntry(colon.offset, key, self._expression(), optional))
                if not tokens.expect_more("}") or not tokens.accept(","):
                    break
            tokens.accept(",")
        tokens.leave("}")
        parts = [part for entry in entries for part in (entry.key, entry.value)]
        return self._measured(MapExpr(self.new_id(), opening.offset, entries), *parts)

    def _starts_message(self) -> bool:
        """Whether a message literal (`a.b.C{`) comes here. Its first name is already consumed."""
        tokens, at = self._tokens, 0
        while tokens.ahead(at).text == "." and tokens.ahead(at + 1).kind == "ident":
            at += 2
        return tokens.ahead(at).text == "{" and tokens.ahead(at).kind == "op"

    def _message(self, name: str) -> Expr:
        tokens = self._tokens
        while tokens.accept("."):
            name += "." + tokens.take().text
        opening = tokens.take()
        entries: list[FieldEntry] = []
        tokens.enter("}", ",")
        if tokens.expect_field("}"):
            while not tokens.at("}", ","):
                optional = tokens.accept("?") is not None
                if not tokens.expect_field():
                    break
                entries.append(self._field(optional=optional))
                if not tokens.expect_more("}") or not tokens.accept(","):
                    break
            tokens.accept(",")
        tokens.leave("}")
        parts = [entry.value for entry in entries]
        return self._measured(StructExpr(self.new_id(), opening.offset, name, entries), *parts)

    def _field(self, *, optional: bool) -> FieldEntry:
        tokens = self._tokens
        field = tokens.take()
        if field.kind == "escaped":
            self._fault(field.offset, "unsupported syntax: '`'")
        tokens.enter(":")
        colon = tokens.leave(":")
        return FieldEntry(colon.offset, field.text, self._expression(), optional)
