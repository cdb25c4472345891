"""What is wrong with manifests, and where."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from drakit.base.errors import DecodeError


class ManifestProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong in one text.

    `rule` names the sort of problem, `object` what the object calls itself. `path` is the field inside the object;
    `prefix` leads to the object when it stands in a list. Line and column count from one; zero is: not known.
    """

    rule: str
    source: str
    reason: str
    object: str = ""
    document: int = 0
    prefix: str = ""
    path: str = ""
    line: int = 0
    column: int = 0

    @property
    def field(self) -> str:
        """The field from the top of its document."""
        separator = "." if self.prefix and self.path and not self.path.startswith("[") else ""
        return f"{self.prefix}{separator}{self.path}"

    @property
    def message(self) -> str:
        if self.rule.endswith("-field"):
            return f'{self.rule.removesuffix("-field")} field "{self.field}"'
        return f"{self.field}: {self.reason}" if self.rule == "wrong-type" and self.field else self.reason

    def __str__(self) -> str:
        if self.line:
            return f"{self.source}: line {self.line}, column {self.column}: {self.message}"
        nth = f"document {self.document + 1}: " if self.document else ""
        return f"{self.source}: {nth}{self.message}"


class BadManifests(DecodeError):
    """Manifests that cannot be used; `problems` has everything that is wrong with them."""

    def __init__(self, problems: Iterable[ManifestProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
