"""Cut an expression into tokens.

In:  the text.
Out: tokens with offsets, ending with one of kind `eof`; characters that start no token become issues.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from drakit.cel.errors import Issue
from drakit.cel.source import Source

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
            issues.append(source.issue(at, f"Syntax error: token recognition error at: '{text[at]}'"))
            at += 1
            continue
        kind = found.lastgroup or ""
        if kind != "space":
            tokens.append(Token(kind, found.group(), at))
        at = found.end()
    tokens.append(Token("eof", "<EOF>", len(text)))
    return tokens, issues
