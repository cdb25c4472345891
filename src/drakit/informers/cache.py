"""What the server has, as far as it was told: objects by key and by whatever else components look for.

In:  objects from one informer, each newer than the one before it.
Out: the same objects, shared by all readers and changed by none; reads cost a look-up and never wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, KeysView, Mapping
from typing import Any, Generic, TypeVar

from drakit.api.objects.partial import Partial
from drakit.base.errors import UsageError
from drakit.client import Key, metadata_of

T = TypeVar("T")
IndexFunction = Callable[[T], Collection[Hashable]]

_NOTHING: Mapping[Key, Any] = {}


class _Index(Generic[T]):
    """Invariant: `buckets[value]` holds exactly the cached objects for which `function` yields that value."""

    __slots__ = ("buckets", "function")

    def __init__(self, function: IndexFunction[T]) -> None:
        self.function = function
        self.buckets: dict[Hashable, dict[Key, T]] = {}

    def move(self, key: Key, old: T | None, new: T | None) -> None:
        before = self.function(old) if old is not None else ()
        after = self.function(new) if new is not None else ()
        if before and before != after:
            for value in before:
                if value not in after:
                    self._drop(key, value)
        if new is None:
            return
        for value in after:
            bucket = self.buckets.get(value)
            if bucket is None:
                bucket = self.buckets[value] = {}
            bucket[key] = new

    def _drop(self, key: Key, value: Hashable) -> None:
        bucket = self.buckets.get(value)
        if bucket is None or bucket.pop(key, None) is None:
            return  # a function may yield a value twice
        if not bucket:
            del self.buckets[value]


class ObjectCache(Generic[T]):
    """Objects of one kind. Its informer alone writes."""

    __slots__ = ("_indexes", "_namespaces", "_objects")

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}
        self._namespaces: dict[str, dict[Key, T]] = {}
        self._indexes: dict[str, _Index[T]] = {}

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def named(self, name: str, namespace: str = "") -> T | None:
        return self._objects.get(Key(namespace, name))

    def all(self, namespace: str = "") -> list[T]:
        """All, or those of a namespace; in no order that means anything."""
        return list(self._namespaces.get(namespace, _NOTHING).values() if namespace else self._objects.values())

    def by(self, index: str, value: Hashable) -> list[T]:
        """Those for which the index function yields the value."""
        return list(self._index(index).buckets.get(value, _NOTHING).values())

    def keys_by(self, index: str, value: Hashable) -> list[Key]:
        return list(self._index(index).buckets.get(value, _NOTHING))

    def keys(self) -> KeysView[Key]:
        return self._objects.keys()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Find objects by another value from now on. The same name again must mean the same function."""
        if name in self._indexes:
            if self._indexes[name].function is not function:
                raise UsageError(f"the index {name!r} is there already, and means something else")
            return
        index = self._indexes[name] = _Index(function)
        for key, obj in self._objects.items():
            index.move(key, None, obj)

    def put(self, key: Key, obj: T) -> T | None:
        """For the informer: take in an object; return the one that it replaces."""
        old = self._objects.get(key)
        self._objects[key] = obj
        if key.namespace:
            place = self._namespaces.get(key.namespace)
            if place is None:
                place = self._namespaces[key.namespace] = {}
            place[key] = obj
        for index in self._indexes.values():
            index.move(key, old, obj)
        return old

    def remove(self, key: Key) -> T | None:
        """For the informer: forget an object; return it."""
        old = self._objects.pop(key, None)
        if old is None:
            return None
        if key.namespace:
            place = self._namespaces[key.namespace]
            del place[key]
            if not place:
                del self._namespaces[key.namespace]
        for index in self._indexes.values():
            index.move(key, old, None)
        return old

    def _index(self, name: str) -> _Index[T]:
        try:
            return self._indexes[name]
        except KeyError:
            raise UsageError(f"there is no index {name!r}: {sorted(self._indexes)}") from None


def by_owner(obj: Any) -> list[str]:
    """Index function: the uids of all owners."""
    return [owner.uid for owner in metadata_of(obj).owner_references]


def by_controller(obj: Any) -> list[str]:
    """Index function: the uid of the owner that manages the object."""
    owner = metadata_of(obj).controller
    return [owner.uid] if owner is not None else []


def by_uid(obj: Any) -> list[str]:
    return [metadata_of(obj).uid]


def by_label(name: str) -> IndexFunction[Any]:
    """An index function: the value of a label, where there is one. Make it once: indexes are told apart by it."""

    def values(obj: Any) -> list[str]:
        labels = metadata_of(obj).labels
        return [labels[name]] if name in labels else []

    return values


def by_node(obj: Any) -> list[str]:
    """Index function: the node that a pod is bound to."""
    node = (obj.view if type(obj) is Partial else obj).spec.node_name
    return [node] if node else []
