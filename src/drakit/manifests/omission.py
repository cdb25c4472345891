"""Plain data without one of its values. Pure.

In:  data and a path in it.
Out: a copy that has nothing at the path.
"""

from __future__ import annotations

import re
from typing import Any


def below(path: str, prefix: str) -> str:
    """The path inside the object that stands at the prefix."""
    return path.removeprefix(prefix).removeprefix(".")


def without(value: Any, path: str) -> Any:
    """The value with nothing at the path. Keys may have dots: the longest that fits is meant."""
    if not path:
        return None
    if isinstance(value, list) and (found := re.match(r"\[(\d+)\]\.?", path)):
        number, rest = int(found[1]), path[found.end() :]
        return [without(each, rest) if position == number else each for position, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    fitting = [key for key in value if path == key or path.startswith((f"{key}.", f"{key}["))]
    key = max(fitting, key=len, default=None)
    rest = path[len(key or "") :].removeprefix(".")
    return {each: without(inner, rest) if each == key else inner for each, inner in value.items()}
