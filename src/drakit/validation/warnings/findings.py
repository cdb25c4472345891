"""A warning: a field, the name of the rule, and what is wrong with it."""

from __future__ import annotations

import msgspec

from drakit.base.fields import Path


class FieldWarning(msgspec.Struct, frozen=True):
    """`rule` names the kind of warning, as lint lists it. An empty path means the whole object."""

    rule: str
    path: Path
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if str(self.path) else self.message
