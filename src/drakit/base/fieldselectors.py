r"""Field selectors of a query: `spec.nodeName=a,status.phase!=Failed`; `\`, `,` and `=` in a value are escaped by `\`.

Which fields a kind can be selected by is the registry's to say; here is only the language.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from drakit.base.errors import UsageError

_TERM = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_FEW = 16
"""Terms that are looked at one after the other. More are looked up."""
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
    _wanted: Mapping[tuple[str, bool], frozenset[str]] | None = dataclasses.field(
        init=False, compare=False, repr=False, default=None
    )
    """Values by field and by whether they are wanted, where there are many terms."""

    def __post_init__(self) -> None:
        if len(self.terms) > _FEW:
            found: dict[tuple[str, bool], set[str]] = {}
            for term in self.terms:
                found.setdefault((term.field, term.equal), set()).add(term.value)
            object.__setattr__(self, "_wanted", {key: frozenset(values) for key, values in found.items()})

    def matches(self, fields: Mapping[str, str]) -> bool:
        if self._wanted is None:
            return all(term.matches(fields) for term in self.terms)
        return all(
            # A field has one value: two different ones that are wanted are never there.
            values == {fields.get(name, "")} if equal else fields.get(name, "") not in values
            for (name, equal), values in self._wanted.items()
        )

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
