"""Strategic merge patch: a merge patch that merges lists by the keys in their schema.

In:  an object, a patch, and the object's atom: its patch strategies and merge keys.
Out: the patched object; the arguments are not changed.

Directives in the patch: `$patch` (replace or delete, in a map or as an element of a list), `$retainKeys`,
`$setElementOrder/<list>` and `$deleteFromPrimitiveList/<list>`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from drakit.apiserver.patching.atoms import Atom

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE = "$deleteFromPrimitiveList"


class StrategicError(ValueError):
    """A patch with contradictory directives, or with lists that cannot be merged."""


class ListOfLists(StrategicError):
    """Lists in lists do not merge."""

    def __init__(self) -> None:
        super().__init__("lists of lists are not supported")


def strategic_merge(atom: Atom, live: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the patch over the live map. Raises StrategicError."""
    if _PATCH in patch:
        return _directed(patch)
    result = _retained(live, patch)
    rest = {key: value for key, value in patch.items() if key != _RETAIN}
    # Ordered lists first: they are merged with their order and leave the patch.
    for key in [each for each in rest if each.startswith(_ORDER)]:
        _ordered(atom, result, rest, _list_name(key, _ORDER), rest.pop(key))
    for key, value in rest.items():
        if key.startswith(_DELETE):
            name = _list_name(key, _DELETE)
            if value is None:
                result.pop(name, None)
            elif isinstance(result.get(name), list):
                result[name] = _deleted(result[name], value)
        elif value is None:
            result.pop(key, None)
        else:
            _put(result, key, _merged(atom.at(key), result.get(key), value))
    return result


def _directed(patch: Mapping[str, Any]) -> dict[str, Any]:
    if patch[_PATCH] == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if patch[_PATCH] == "delete":
        return {}
    raise StrategicError(f"unknown patch type: {patch[_PATCH]} in map: {dict(patch)}")


def _retained(live: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    if _RETAIN not in patch:
        return dict(live)
    if not isinstance(patch[_RETAIN], list):
        raise StrategicError("invalid patch format of retainKeys")
    names = {each for each in patch[_RETAIN] if isinstance(each, str)}
    for key, value in patch.items():
        if key != _RETAIN and value is not None and not key.startswith((_ORDER, _DELETE)) and key not in names:
            raise StrategicError("invalid patch format of retainKeys")
    return {key: value for key, value in live.items() if key in names}


def _list_name(key: str, prefix: str) -> str:
    directive, slash, name = key.partition("/")
    if directive != prefix or not slash:
        what = "primitive list" if prefix == _DELETE else "setElementOrder list"
        raise StrategicError(f"invalid patch format of {what}")
    return name


def _merged(atom: Atom, live: Any, patch: Any) -> Any:
    """The merged value of one field. Values of different types do not merge: the patch replaces."""
    if _is_map(live) and _is_map(patch):
        return dict(patch) if "replace" in atom.strategies else strategic_merge(atom, live, patch)
    if isinstance(live, list) and isinstance(patch, list):
        return _merged_list(atom, live, patch) if "merge" in atom.strategies else patch
    return _plain(patch)


def _is_map(value: Any) -> bool:
    """The two kinds that nearly all values have come first: asking an abstract class takes six times as long."""
    kind = type(value)
    return kind is dict or (kind is not str and isinstance(value, Mapping))


class _Removed:
    """Marks a value that a directive removes."""


_REMOVED = _Removed()


def _put(target: dict[str, Any], key: str, value: Any) -> None:
    if value is _REMOVED:
        target.pop(key, None)
    else:
        target[key] = value


def _plain(patch: Any) -> Any:
    """The patch as a value, where there is nothing to merge with: without nulls and directives."""
    if _is_map(patch):
        if _PATCH in patch:
            return _REMOVED
        parts = {key: _plain(value) for key, value in patch.items() if value is not None}
        return {key: value for key, value in parts.items() if value is not _REMOVED}
    if isinstance(patch, list):
        return [made for made in map(_plain, patch) if made is not _REMOVED]
    return patch


def _merged_list(atom: Atom, live: list[Any], patch: list[Any]) -> list[Any]:
    if not live and not patch:
        return live
    if not _of_maps(live, patch):
        both = list(dict.fromkeys([*map(_scalar, live), *map(_scalar, patch)]))
        return _in_order(both, patch, live, "")
    key = atom.merge_key
    if not key:
        raise StrategicError("cannot merge lists without merge key")
    base, additions = _without_directives(live, patch, key)
    merged = list(base)
    # Reversed, so that of several elements with one key the first wins.
    places = {_rank(each[key]): index for index, each in reversed(list(enumerate(merged))) if key in each}
    for item in additions:
        value = _rank(_key_of(item, key))
        if value in places:
            merged[places[value]] = strategic_merge(atom.element, merged[places[value]], item)
        else:
            places[value] = len(merged)
            merged.append(item)
    return _in_order(merged, additions, base, key)


def _of_maps(*lists: list[Any]) -> bool:
    items = [item for each in lists for item in each]
    if any(isinstance(item, list) for item in items):
        raise ListOfLists
    maps = [isinstance(item, Mapping) for item in items]
    if any(maps) and not all(maps):
        raise StrategicError("list element types are not identical")
    return bool(maps) and maps[0]


def _scalar(value: Any) -> Hashable:
    if not isinstance(value, Hashable):
        raise ListOfLists
    return value


def _without_directives(live: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The live list after deletions, and the elements to merge into it. `$patch: replace` drops the live list."""
    gone: set[Any] = set()
    additions: list[Any] = []
    replace = False
    for item in patch:
        match item.get(_PATCH):
            case None if _PATCH not in item:
                additions.append(item)
            case "delete":
                gone.add(_rank(_key_of(item, key)))
            case "replace":
                replace = True
            case "merge":
                raise StrategicError("merging lists cannot yet be specified in the patch")
            case unknown:
                raise StrategicError(f"unknown patch type: {unknown} in map: {dict(item)}")
    if replace:
        return additions, []
    return [each for each in live if key not in each or _rank(each[key]) not in gone], additions


def _key_of(item: Any, key: str) -> Any:
    if not isinstance(item, Mapping) or key not in item:
        raise StrategicError(f"map: {item} does not contain declared merge key: {key}")
    return item[key]


def _deleted(live: list[Any], gone: Any) -> list[Any]:
    if not isinstance(gone, list):
        raise StrategicError("invalid patch format of primitive list")
    names = {_rank(each) for each in gone}
    return [each for each in live if _rank(each) not in names]


def _ordered(atom: Atom, result: dict[str, Any], patch: dict[str, Any], name: str, order: Any) -> None:
    """Merge a list for which the patch gives the order, and remove it from the patch."""
    if not isinstance(order, list):
        raise StrategicError("invalid patch format of setElementOrder list")
    field = atom.at(name)
    key = field.merge_key
    live, additions = result.get(name), patch.pop(name, None)
    if live is None and additions is None:
        return
    if not isinstance(live, list | None) or not isinstance(additions, list | None):
        raise StrategicError("invalid patch format of setElementOrder list")
    # An order that leaves out what the patch adds is refused before anything is merged.
    _check_order(additions or [], order, key)
    if additions is None:
        merged = list(live or [])
    elif live is None:
        merged = _plain(additions)
    elif "merge" in field.strategies:
        merged = _merged_list(field, live, additions)
    else:
        merged = additions
    result[name] = _in_order(merged, order, live or [], key)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Patched elements must be in the order list, in the same order. Deleted ones need not be."""
    if not patch or not order:
        return
    wanted = [_identity(each, key) for each in order]
    at = 0
    for item in patch:
        if isinstance(item, Mapping) and _PATCH in item:
            continue
        try:
            at = wanted.index(_identity(item, key), at) + 1
        except ValueError:
            message = f"The order in patch list:\n{patch}\n doesn't match {_ORDER} list:\n{order}\n"
            raise StrategicError(message) from None


def _identity(item: Any, key: str) -> Any:
    return _key_of(item, key) if key else item


def _in_order(merged: list[Any], order: Sequence[Any], live: list[Any], key: str) -> list[Any]:
    """Sort: elements in `order` in that order, other elements next to their live neighbours."""
    ranks = {_rank(_identity(each, key)): index for index, each in reversed(list(enumerate(order)))}
    places = {_rank(_identity(each, key)): index for index, each in reversed(list(enumerate(live)))}
    named = [each for each in merged if _rank(_identity(each, key)) in ranks]
    named.sort(key=lambda each: ranks[_rank(_identity(each, key))])
    others = [each for each in merged if _rank(_identity(each, key)) not in ranks]
    others.sort(key=lambda each: places.get(_rank(_identity(each, key)), len(live)))
    return _interleave(named, others, [places.get(_rank(_identity(each, key))) for each in named],
                       [places.get(_rank(_identity(each, key)), len(live)) for each in others])  # fmt: skip


def _interleave(named: list[Any], others: list[Any], at: list[int | None], stands: list[int]) -> list[Any]:
    """Merge both lists. An element that is not in `order` stays before the ones that it stood before."""
    result: list[Any] = []
    taken = 0
    for each, place in zip(named, at, strict=True):
        while place is not None and taken < len(others) and stands[taken] < place:
            result.append(others[taken])
            taken += 1
        result.append(each)
    return result + others[taken:]


def _rank(value: Any) -> Any:
    """A hashable form of a value. In Python `True == 1`; here they must differ."""
    if type(value) is str:
        return value
    return (type(value) is bool, value) if isinstance(value, Hashable) else repr(value)
