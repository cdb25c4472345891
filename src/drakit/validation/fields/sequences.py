"""Lists and maps: how long they may be, what each element must be, which elements must differ.

In:  elements, the path of their list, and a rule for one element.
Out: the errors of all elements. A list over its limit is reported once and not looked into, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from drakit.base.fields import FieldError, Path, duplicate, too_many

T = TypeVar("T")
Rule = Callable[[T, Path], Iterable[FieldError]]

_SHORTEST_CUT = 16


def each(items: Sequence[T], path: Path, rule: Rule[T], *, limit: int | None = None) -> Iterator[FieldError]:
    if limit is not None and len(items) > limit:
        yield too_many(path, len(items), limit)
        return
    for index, item in enumerate(items):
        yield from rule(item, path[index])


def each_once(
    items: Sequence[T],
    path: Path,
    rule: Rule[T],
    key: Callable[[T], Hashable],
    *,
    limit: int | None = None,
    show: Callable[[T], Any] | None = None,
) -> Iterator[FieldError]:
    """As `each`, and no two elements have the same key. An error names what `show` makes of the element, or its key."""
    if limit is not None and len(items) > limit:
        yield too_many(path, len(items), limit)
        return
    yield from each(items, path, rule)
    if len(items) > 1:
        yield from repeated(items, path, key, show=show)


def repeated(
    items: Iterable[T], path: Path, key: Callable[[T], Hashable], *, show: Callable[[T], Any] | None = None
) -> Iterator[FieldError]:
    """One error for each element whose key an earlier one has."""
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        name = key(item)
        if name in seen:
            yield duplicate(path[index], (show or key)(item))
        seen.add(name)


def each_entry(
    entries: Mapping[str, T],
    path: Path,
    key_rule: Rule[str],
    rule: Rule[T] | None,
    *,
    longest_key: int,
    limit: int | None = None,
) -> Iterator[FieldError]:
    """Keys are reported at the map's own path, values below their key, which is cut when it is very long."""
    if limit is not None and len(entries) > limit:
        yield too_many(path, len(entries), limit)
        return
    for key, value in entries.items():
        yield from key_rule(key, path)
        if rule is not None:
            yield from rule(value, path.key(cut(key, longest_key)))


def cut(text: str, length: int) -> str:
    """Text of at most `length`, the middle left out."""
    length = max(length, _SHORTEST_CUT)
    if len(text) <= length:
        return text
    kept = length - len("...")
    return text[: (kept + 1) // 2] + "..." + text[len(text) - kept // 2 :]
