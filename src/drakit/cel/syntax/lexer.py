"""Cut an expression into tokens.

In:  the text.
Out: tokens with offsets, ending with one of kind `eof`; characters that start no token become issues.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from drakit.cel.errors import Issue
from drakit.cel.syntax.source import Source

RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
# Triple quotes before single ones: the first two quotes would otherwise be an empty string.
_TEXT = "|".join(
    (
        r"[rR]\"\"\"(?s:.*?)\"\"\"",
        r"[rR]'''(?s:.*?)'''",
        rf"\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"",
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r"[rR]\"[^\"\n\r]*\"",
        r"[rR]'[^'\n\r]*'",
        rf"\"(?:{_ESCAPE}|[^\\\"\n\r])*\"",
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
# The order decides: the prefixes `b` and `r` belong to a string and are no names, and `1.5` and `1u` are no ints.
_TOKEN = re.compile(
    rf"(?P<space>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<bytes>[bB](?:{_TEXT}))"
    rf"|(?P<string>{_TEXT})"
    r"|(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])"
    r"|(?P<int>0x[0-9a-fA-F]+|\d+)"
    r"|(?P<ident>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<escaped>`[A-Za-z0-9_./ -]+`)"
    r"|(?P<op>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])",
    re.ASCII,
)

# What upstream's lexer has consumed when it gives up: a string without its end, half an escape, half an operator.
_CUT_ESCAPE = r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?"
_BROKEN = re.compile(
    rf"\"(?:{_ESCAPE}|[^\\\"\n\r])*(?:{_CUT_ESCAPE})?"
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*(?:{_CUT_ESCAPE})?"
    r"|`[A-Za-z0-9_./ -]*|[=&|]|"
)


class Token(NamedTuple):
    kind: str
    text: str
    offset: int


def tokenize(source: Source) -> tuple[list[Token], list[Issue]]:
    """All tokens, and an issue for each character that belongs to none."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    at, text = 0, source.text
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            end = _end_of_fault(text, at)
            shown = text[at:end].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
            issues.append(source.issue(at, f"Syntax error: token recognition error at: '{shown}'"))
            at = end
            continue
        kind = found.lastgroup or ""
        if kind != "space":
            tokens.append(Token(kind, found.group(), at))
        at = found.end()
    tokens.append(Token("eof", "<EOF>", len(text)))
    return tokens, issues


def _end_of_fault(text: str, at: int) -> int:
    """The offset after the first character that fits no token. The error message shows everything before it."""
    return min(_BROKEN.match(text, at).end() + 1, len(text))  # type: ignore[union-attr]  # matches anywhere
