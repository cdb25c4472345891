"""How values merge at each place of an object, compiled from its schema.

In:  the schemas of a group and version, with their list types, map types and patch strategies.
Out: `atom_of("resource.k8s.io/v1", "ResourceClaim")`, made once. An atom says what a value may be (scalar, list, map,
     or raw JSON), how list elements are identified, and whether fields are owned one by one or all together (atomic).

The word is that of upstream's structured-merge-diff.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from drakit.api import schemas
from drakit.api.schemas import Schema

ATOMIC = "atomic"
GRANULAR = "granular"
KEYED = "map"


class Atom:
    """`scalar`, `items` and `members` are the forms that a value may have. Only raw JSON may have more than one.

    Parts are compiled on first use, because schemas may refer to themselves. Nobody changes an atom.
    """

    __slots__ = ("items", "members", "merge_key", "scalar", "strategies")

    def __init__(
        self,
        *,
        scalar: str = "",
        items: ListAtom | None = None,
        members: MapAtom | None = None,
        merge_key: str = "",
        strategies: frozenset[str] = frozenset(),
    ) -> None:
        self.scalar = scalar
        self.items = items
        self.members = members
        self.merge_key = merge_key
        self.strategies = strategies

    def at(self, name: str) -> Atom:
        """The atom of a field or key; raw JSON where the schema has none."""
        return self.members.at(name) if self.members is not None else DEDUCED

    @property
    def element(self) -> Atom:
        return self.items.element if self.items is not None else DEDUCED


class ListAtom:
    """`type` is `atomic`, `map` (elements are identified by `keys`) or `set` (by their value)."""

    __slots__ = ("element", "keys", "type")

    def __init__(self, element: Atom, type_: str, keys: tuple[str, ...] = ()) -> None:
        self.element = element
        self.type = type_
        self.keys = tuple(sorted(keys))

    def key_default(self, key: str) -> Any:
        members = self.element.members
        return members.defaults.get(key) if members is not None else None


class MapAtom:
    """`fields` are known by name. `element` is the atom of any other key; None if there may be no other keys."""

    __slots__ = ("_compile", "_fields", "atomic", "defaults", "element")

    def __init__(
        self,
        *,
        properties: Mapping[str, Schema],
        compiler: _AtomCompiler | None,
        element: Atom | None = None,
        atomic: bool = False,
    ) -> None:
        self._compile = (compiler, properties)
        self._fields: Mapping[str, Atom] | None = None
        self.defaults = {name: each["default"] for name, each in properties.items() if "default" in each}
        self.element = element
        self.atomic = atomic

    @property
    def fields(self) -> Mapping[str, Atom]:
        if self._fields is None:
            compiler, properties = self._compile
            made = {} if compiler is None else {name: compiler.atom(each) for name, each in properties.items()}
            self._fields = made
        return self._fields

    def at(self, name: str) -> Atom:
        fields = self._fields if self._fields is not None else self.fields
        return fields.get(name) or self.element or DEDUCED

    def with_atomic(self, atomic: bool) -> MapAtom:
        compiler, properties = self._compile
        return MapAtom(properties=properties, compiler=compiler, element=self.element, atomic=atomic)


def _raw() -> tuple[Atom, Atom]:
    """Raw JSON whose maps merge key by key and whose lists are atomic; and raw JSON that is atomic throughout."""
    atomic = Atom(scalar="untyped")
    atomic.items = ListAtom(atomic, ATOMIC)
    atomic.members = MapAtom(properties={}, compiler=None, element=atomic, atomic=True)
    deduced = Atom(scalar="untyped", items=ListAtom(atomic, ATOMIC))
    deduced.members = MapAtom(properties={}, compiler=None, element=deduced)
    return deduced, atomic


DEDUCED, WHOLE = _raw()


@cache
def atom_of(group_version: str, kind: str) -> Atom:
    """The atom of a kind; KeyError if there is none. Kinds of subresources are in the schemas of other groups."""
    group, _, version = group_version.rpartition("/")
    wanted = {"group": group, "kind": kind, "version": version}
    known = schemas.group_versions()
    for each in sorted(known, key=lambda other: other != group_version):
        for name, schema in schemas.load(each).items():
            if wanted in schema.get("x-kubernetes-group-version-kind", ()):
                return _compiler(each).named(name)
    raise KeyError(f"{group_version} has no kind {kind}")


@cache
def _compiler(group_version: str) -> _AtomCompiler:
    return _AtomCompiler(schemas.load(group_version))


class _AtomCompiler:
    def __init__(self, documents: Mapping[str, Schema]) -> None:
        self._documents = documents
        self._done: dict[str, Atom] = {}

    def named(self, name: str) -> Atom:
        if name not in self._done:
            self._done[name] = self.atom(self._documents[name])
        return self._done[name]

    def atom(self, schema: Schema) -> Atom:
        strategies = frozenset(filter(None, schema.get("x-kubernetes-patch-strategy", "").split(",")))
        merge_key = schema.get("x-kubernetes-patch-merge-key", "")
        found = self._form(schema)
        # A field may say otherwise than the type that it is of.
        wanted, members = schema.get("x-kubernetes-map-type"), found.members
        if members is not None and wanted in (ATOMIC, GRANULAR) and members.atomic != (wanted == ATOMIC):
            members = members.with_atomic(wanted == ATOMIC)
        if not strategies and not merge_key and members is found.members:
            return found
        return Atom(scalar=found.scalar, items=found.items, members=members, merge_key=merge_key, strategies=strategies)

    def _form(self, schema: Schema) -> Atom:
        reference = schema.get("$ref") or next((each.get("$ref") for each in schema.get("allOf", ())), None)
        if reference is not None:
            return self.named(reference.rpartition("/")[2])
        match schema.get("type"):
            case "object":
                return Atom(members=self._map(schema))
            case "array":
                keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
                type_ = schema.get("x-kubernetes-list-type", ATOMIC)
                return Atom(items=ListAtom(self.atom(schema["items"]), type_, keys))
            case "string" if schema.get("format") not in ("int-or-string", "date-time", "byte"):
                return Atom(scalar="string")
            case "integer" | "number" | "boolean" as name:
                return Atom(scalar=name)
            case _:
                return Atom(scalar="untyped")

    def _map(self, schema: Schema) -> MapAtom:
        properties = schema.get("properties", {})
        additional = schema.get("additionalProperties")
        element = None if properties else DEDUCED
        if isinstance(additional, Mapping):
            element = self.atom(additional)
        return MapAtom(properties=properties, compiler=self, element=element)
