r"""Field selectors of a query: `spec.nodeName=a,status.phase!=Failed`; `\`, `,` and `=` in a value are escaped by `\`.

Which fields a kind can be selected by is the registry's to say; here is only the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from drakit.base.errors import UsageError

_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_SPECIAL = re.compile(r"([\\,=])")


@dataclass(frozen=True, slots=True)
class Term:
    field: str
    value: str
    equal: bool = True

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) is self.equal

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All terms hold; none means everything. A field that is not there counts as empty."""

    terms: tuple[Term, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(term.matches(fields) for term in self.terms)

    def required_value(self, field: str) -> str | None:
        """The one value that `field` must have, when the selector says so."""
        return next((term.value for term in self.terms if term.field == field and term.equal), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


EVERYTHING = FieldSelector()


def parse(text: str) -> FieldSelector:
    """Raise UsageError in Kubernetes' words."""
    return FieldSelector(tuple(_term(part, text) for part in sorted(_split(text)) if part))


def escape(value: str) -> str:
    return _SPECIAL.sub(r"\\\1", value)


def _split(text: str) -> Iterator[str]:
    start, escaped = 0, False
    for index, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _term(part: str, text: str) -> Term:
    found = _TERM.fullmatch(part)
    if not found:
        raise UsageError(f"invalid selector: '{text}'; can't understand '{part}'")
    return Term(found[1], _unescape(found[3]), found[2] != "!=")


def _unescape(value: str) -> str:
    out, characters = [], iter(value)
    for char in characters:
        if char in ",=":
            raise UsageError(f"invalid field selector: unescaped character in value: {ord(char)}")
        if char == "\\":
            char = next(characters, "")
            if not char or char not in "\\,=":
                raise UsageError(f"invalid field selector: invalid escape sequence: \\{char}")
        out.append(char)
    return "".join(out)
