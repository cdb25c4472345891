"""Fields that differ between two objects, found field by field with their paths: slow, and simple to read.

The server finds the same as sets of nodes (`comparing.compare`), and is held against this.
"""

from __future__ import annotations

from typing import Any

from drakit.apiserver.patching.atoms import ATOMIC, Atom, ListAtom, MapAtom
from drakit.apiserver.patching.comparing import MISSING, form_of
from drakit.apiserver.patching.elements import grouped
from drakit.apiserver.patching.fieldsets import Elements


class Walk:
    """The paths of fields that were added, modified and removed from `old` to `new`."""

    def __init__(self, atom: Atom, old: Any, new: Any) -> None:
        self.added: set[Elements] = set()
        self.modified: set[Elements] = set()
        self.removed: set[Elements] = set()
        self._visit(atom, old, new, ())

    def _visit(self, atom: Atom, old: Any, new: Any, path: Elements) -> None:
        before, after = form_of(atom, old), form_of(atom, new)
        if old is MISSING:
            self._differ(after, MISSING, new, path)
        elif new is MISSING or old is None or new is None or before is after:
            self._differ(before if new is MISSING or new is None else after, old, new, path)
        else:
            # Raw JSON that changes its form is removed and added.
            self._differ(before, old, MISSING, path)
            self._differ(after, MISSING, new, path)

    def _differ(self, form: MapAtom | ListAtom | None, old: Any, new: Any, path: Elements) -> None:
        leaf = form is None or not (_filled(old) or _filled(new)) or _atomic(form)
        if not leaf and isinstance(form, MapAtom):
            self._maps(form, _if_a(dict, old), _if_a(dict, new), path)
        elif not leaf and isinstance(form, ListAtom):
            self._lists(form, grouped(form, _if_a(list, old)), grouped(form, _if_a(list, new)), path)
        if not path:
            return  # the root is no field
        if old is MISSING:
            self.added.add(path)
        elif new is MISSING:
            self.removed.add(path)
        elif leaf and old != new:
            self.modified.add(path)

    def _maps(self, form: MapAtom, old: dict[str, Any], new: dict[str, Any], path: Elements) -> None:
        for key in old | new:
            self._visit(form.at(key), old.get(key, MISSING), new.get(key, MISSING), (*path, "f:" + key))

    def _lists(self, form: ListAtom, old: dict[str, Any], new: dict[str, Any], path: Elements) -> None:
        for element in old | new:
            before, after, here = old.get(element, []), new.get(element, []), (*path, element)
            if len(before) <= 1 and len(after) <= 1:
                self._visit(form.element, *(each[0] if each else MISSING for each in (before, after)), here)
            elif not before:
                self.added.add(here)
            elif not after:
                self.removed.add(here)
            elif before != after:
                self.modified.add(here)


def _if_a(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else kind()


def _filled(value: Any) -> bool:
    return bool(value) and isinstance(value, dict | list)


def _atomic(form: MapAtom | ListAtom) -> bool:
    return form.atomic if isinstance(form, MapAtom) else form.type == ATOMIC
