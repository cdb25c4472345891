"""Fields that a server did not keep: it knows them only behind a gate that is off there, or not at all.

In:  a slice as it was sent, and as the server has it.
Out: the paths of what is missing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drakit.api import ResourceSlice, to_plain


def dropped_fields(sent: ResourceSlice, stored: ResourceSlice) -> list[str]:
    """Paths such as `spec.devices[].taints`, each once: what one device lost, all lost."""
    return list(dict.fromkeys(_missing(to_plain(sent.spec), to_plain(stored.spec), "spec")))


def _missing(sent: Any, stored: Any, path: str) -> Iterator[str]:
    if isinstance(sent, dict) and isinstance(stored, dict):
        for name, value in sent.items():
            if name not in stored:
                if value not in (None, [], {}):
                    yield f"{path}.{name}"
            else:
                yield from _missing(value, stored[name], f"{path}.{name}")
    elif isinstance(sent, list) and isinstance(stored, list):
        for one, other in zip(sent, stored, strict=False):
            yield from _missing(one, other, f"{path}[]")
