"""Collects the statements of generated Python code, with names for its temporaries and constants.

No text of an expression becomes Python source: an author could inject code that way. All values, strings and numbers
included, are passed in as globals under generated names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from drakit.cel.checking.types import DYN, Type, is_dynamic
from drakit.cel.values import Value

Lines = list[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A Python expression. `atom`: a name, free to repeat. `constant`: its value is known, and is `value`."""

    text: str
    type: Type
    raises: bool = True
    atom: bool = False
    constant: bool = False
    value: Value = None

    @property
    def dynamic(self) -> bool:
        return is_dynamic(self.type)

    def typed(self, t: Type) -> Fragment:
        return replace(self, type=t)


@dataclass(slots=True)
class Writer:
    """Collects statements; `level` is the indentation of the next one."""

    lines: Lines = field(default_factory=list)
    level: int = 0
    names: dict[str, object] = field(default_factory=dict)
    _count: int = 0

    def line(self, text: str) -> None:
        self.lines.append((self.level, text))

    @contextmanager
    def indented(self, header: str) -> Iterator[None]:
        self.line(header)
        self.level += 1
        yield
        self.level -= 1

    @contextmanager
    def captured(self) -> Iterator[Lines]:
        """Collect the statements of a `with` block in a list of their own, for `place` to insert later."""
        before, level = self.lines, self.level
        self.lines, self.level = [], 0
        yield self.lines
        self.lines, self.level = before, level

    def place(self, lines: Lines) -> None:
        self.lines.extend((self.level + level, text) for level, text in lines)

    def name(self) -> str:
        """A local name that nothing else has."""
        self._count += 1
        return f"t{self._count}"

    def known(self, value: object) -> str:
        """A global name for a value."""
        self._count += 1
        name = f"k{self._count}"
        self.names[name] = value
        return name

    def constant(self, value: Value, t: Type) -> Fragment:
        if value is None or value is True or value is False:
            return Fragment(repr(value), t, raises=False, atom=True, constant=True, value=value)
        return Fragment(self.known(value), t, raises=False, atom=True, constant=True, value=value)

    def spilled(self, code: Fragment, at: int | None = None) -> Fragment:
        """Assign a value to a name: at the end, or before the statement at index `at`."""
        if code.atom:
            return code
        name = self.name()
        self.lines.insert(len(self.lines) if at is None else at, (self.level, f"{name} = {code.text}"))
        return Fragment(name, code.type, raises=False, atom=True)

    def call(self, function: object, *args: Fragment, t: Type = DYN, raises: bool = True) -> Fragment:
        text = f"{self.known(function)}({', '.join(arg.text for arg in args)})"
        return Fragment(text, t, raises or any(arg.raises for arg in args))
