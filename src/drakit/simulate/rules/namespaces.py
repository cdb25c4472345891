"""What must hold of namespaces: nothing is made in one that ends, and it takes everything with it.

In:  every write of the store, by its key and document.
Out: what is wrong with it, in words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from drakit.api.objects.plain import Plain

NAMESPACES = "/registry/core/namespaces/"
_NAMESPACED = 6
"""Parts of a key such as `/registry/core/pods/default/a`."""


class NamespaceLives:
    def __init__(self) -> None:
        self._ending: dict[str, bool] = {}
        """Of each namespace that is there, whether it is being deleted."""
        self._keys: dict[str, set[str]] = defaultdict(set)

    def forget(self) -> None:
        self._ending.clear()
        self._keys.clear()

    def ending(self) -> list[str]:
        return sorted(name for name, ends in self._ending.items() if ends)

    def put(self, key: str, document: Plain | None) -> Iterator[str]:
        """An object is stored; of one that is no namespace, the key alone is looked at."""
        if key.startswith(NAMESPACES):
            name = key.removeprefix(NAMESPACES)
            self._ending[name] = bool((document or {}).get("metadata", {}).get("deletionTimestamp"))
        elif (name := _namespace(key)) and key not in self._keys[name]:
            self._keys[name].add(key)
            if self._ending.get(name, True):
                state = "is being deleted" if name in self._ending else "is not there"
                yield f"{key} is made in namespace {name}, which {state}"

    def remove(self, key: str) -> Iterator[str]:
        if key.startswith(NAMESPACES):
            name = key.removeprefix(NAMESPACES)
            self._ending.pop(name, None)
            for left in sorted(self._keys[name]):
                yield f"namespace {name} is gone, and {left} is there"
        elif name := _namespace(key):
            self._keys[name].discard(key)


def _namespace(key: str) -> str:
    parts = key.split("/")
    return parts[4] if len(parts) == _NAMESPACED else ""
