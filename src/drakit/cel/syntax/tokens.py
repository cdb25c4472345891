"""The tokens of an expression as the parser consumes them, and the error messages where one does not fit.

In:  a Source.
Out: tokens one by one, and issues.

After an error the parser goes on, so that one run reports as many errors as possible. An extra token is skipped. A
missing token is assumed. Where neither helps, tokens are skipped up to one that can follow. The messages and these
choices are those of upstream's generated parser.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from drakit.cel.syntax.lexer import Token, tokenize
from drakit.cel.syntax.source import Source

MAX_MENDS = 30
KEYWORDS = frozenset({"in", "true", "false", "null"})
INFIX = frozenset({"||", "&&", "<", "<=", ">=", ">", "==", "!=", "in", "+", "-", "*", "/", "%"})

_OPERANDS = ("'['", "'{'", "'('", "'.'", "'-'", "'!'", "'true'", "'false'", "'null'")
_KINDS = ("NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER")
_STARTS = frozenset({"[", "{", "(", ".", "-", "!"})
_LITERALS = frozenset({"float", "int", "uint", "string", "bytes"})
_ORDER = ("'['", "']'", "'{'", "'}'", "'('", "')'", "'.'", "','", "'-'", "'!'", "'?'", "':'", *_OPERANDS[-3:], *_KINDS)


@cache
def _expecting(*also: str) -> str:
    """What may start an expression, and these symbols, in the order in which upstream numbers its tokens."""
    names = {*_OPERANDS, *_KINDS, *(f"'{symbol}'" for symbol in also)}
    return "{" + ", ".join(name for name in _ORDER if name in names) + "}"


class TooManyFaults(Exception):
    """The text is too broken to go on."""


class TokenStream:
    """Invariant: the last token is of kind `eof`, and the cursor never passes it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._tokens, self.issues = tokenize(source)
        self._at = 0
        self._mends = 0
        self._silent = False  # after an error, until a token is consumed: more errors would only follow from it
        self._awaited: list[tuple[str, ...]] = []  # per open construct, the symbols that end it or a part of it

    @property
    def current(self) -> Token:
        return self._tokens[self._at]

    def ahead(self, count: int = 1) -> Token:
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "eof":
            self._at += 1
        self._silent = False
        return token

    def at(self, *symbols: str) -> bool:
        return _is(self.current, *symbols)

    def accept(self, symbol: str) -> Token | None:
        return self.take() if self.at(symbol) else None

    # --- what has to come

    def enter(self, *symbols: str) -> None:
        """Begin a construct that these symbols end or divide. Error recovery inside it stops before them."""
        self._awaited.append(symbols)

    def leave(self, symbol: str) -> Token:
        """End the latest construct: consume its symbol, or report an error and return a stand-in."""
        self._awaited.pop()
        if self.at(symbol):
            return self.take()
        token, name = self.current, f"'{symbol}'"
        if _is(self.ahead(), symbol):
            self.complain(f"extraneous input {_shown(token)} expecting {name}")
            self.take()
            return self.take()
        if self._follows(token, symbol):
            self.complain(f"missing {name} at {_shown(token)}")
        else:
            self.complain(f"mismatched input {_shown(token)} expecting {name}")
            self._resume(".", "[")
        return Token("op", symbol, token.offset)

    def expect_end(self) -> None:
        token = self.current
        if token.kind != "eof":
            word = "extraneous" if self.ahead().kind == "eof" else "mismatched"
            self.complain(f"{word} input {_shown(token)} expecting <EOF>")

    def expect_operand(self, *closers: str) -> bool:
        """Whether an expression, or one of `closers`, comes here. One extra token before it is reported and skipped."""
        return _starts(self.current) or self._expect(
            lambda token: _starts(token) or _is(token, *closers), _expecting(*closers)
        )

    def expect_more(self, closer: str) -> bool:
        """After an element: whether a comma or the closing bracket comes. One extra token is reported and skipped."""
        return self._expect(lambda token: _is(token, ",", closer), f"{{'{closer}', ','}}")

    def expect_field(self, closer: str = "") -> bool:
        """Whether the name of a field comes here. One extra token before it is reported and skipped."""
        others = f"'{closer}', ',', '?', " if closer else ""
        symbols = (closer, ",", "?") if closer else ()
        return self._expect(
            lambda token: token.kind == "escaped" or is_name(token) or _is(token, *symbols),
            f"{{{others}IDENTIFIER, ESC_IDENTIFIER}}",
        )

    def _expect(self, fits: Callable[[Token], bool], wanted: str) -> bool:
        if fits(self.current):
            return True
        shown = _shown(self.current)
        if fits(self.ahead()):
            self.complain(f"extraneous input {shown} expecting {wanted}")
            self.take()
            return True
        self.complain(f"mismatched input {shown} expecting {wanted}")
        self._resume()
        return False

    def refuse_behind(self, text: str) -> None:
        """Report that the current token cannot follow this text, and skip to one that can go on."""
        token = self.current
        if text == "." and token.text in {"true", "false", "null"}:
            self.complain(f"mismatched input {_shown(token)} expecting IDENTIFIER")
        else:
            self.complain(f"no viable alternative at input '{text}{'' if token.kind == 'eof' else token.text}'")
        self._resume()

    # --- faults

    def complain(self, message: str) -> None:
        """Report an error at the current token, unless it only follows from the error before."""
        if not self._silent:
            self.issues.append(self.source.issue(self.current.offset, f"Syntax error: {message}"))
        self._silent = True
        self._mends += 1
        if self._mends > MAX_MENDS:
            message = f"Syntax error: error recovery attempt limit exceeded: {MAX_MENDS}"
            self.issues.append(self.source.issue(self.current.offset, message))
            raise TooManyFaults

    def _resume(self, *symbols: str) -> None:
        """Skip to the next token that can follow here."""
        while self.current.kind != "eof" and not self._goes_on(self.current, *symbols):
            self._at += 1

    def _follows(self, token: Token, symbol: str) -> bool:
        """Whether a token may come right behind a symbol."""
        if symbol == ":":
            return _starts(token)
        return token.kind == "eof" or self._goes_on(token, ".", "[")

    def _goes_on(self, token: Token, *symbols: str) -> bool:
        """Whether a token may follow an expression here, in any construct that is open."""
        return _is(token, "?", *symbols, *INFIX) or any(_is(token, *awaited) for awaited in self._awaited)


def _is(token: Token, *symbols: str) -> bool:
    return token.text in symbols and token.kind in {"op", "ident"}


def is_name(token: Token) -> bool:
    return token.kind == "ident" and token.text not in KEYWORDS


def _starts(token: Token) -> bool:
    """Whether an expression may start with a token."""
    if token.kind == "op":
        return token.text in _STARTS
    return token.kind in _LITERALS or (token.kind == "ident" and token.text != "in")


def _shown(token: Token) -> str:
    return f"'{_escaped(token.text)}'"


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
