"""`$(NAME)` in commands, arguments and environment values.

`$$` stands for one dollar sign, so `$$(NAME)` is left as `$(NAME)`. A name that is not known stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, values: Mapping[str, str]) -> str:
    def one(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else values.get(name, match.group(0))

    return _REFERENCE.sub(one, text)


def unknown_names(text: str, values: Mapping[str, str]) -> list[str]:
    """The names that `expand` would leave as they are."""
    return [name for name in _REFERENCE.findall(text) if name and name not in values]
