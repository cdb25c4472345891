"""Which objects a list or a watch is about.

In:  label and field selectors of a query, and the fields that a kind can be selected by.
Out: a test for objects, and the key or the prefix in the store under which all that can match are.
"""

from __future__ import annotations

from drakit.api.registry import Kind
from drakit.apiserver.failures import bad_request
from drakit.apiserver.kinds.events import GROUP_VERSION, core_field
from drakit.apiserver.requests.options import ListOptions
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import key_of, prefix_of
from drakit.apiserver.strategies import strategy_of
from drakit.base import fieldselectors


class SelectionPredicate:
    """Labels and fields that objects of one kind must have, and where in the store these objects are."""

    def __init__(self, kind: Kind, group_version: str, namespace: str, name: str, options: ListOptions) -> None:
        self._strategy = strategy_of(kind)
        self._labels = options.labels
        self._fields = _with_name(options.fields, name)
        if group_version == GROUP_VERSION:
            self._fields = _in_core_terms(self._fields)
        for term in self._fields.terms:
            if term.field not in self._strategy.selectable:
                unselectable = self._strategy.unselectable
                raise bad_request(unselectable.format(group_version=group_version, name=term.field))
        self.everything = not self._labels.requirements and not self._fields.terms
        self.prefix, self.key = self._place(kind, namespace)

    def _place(self, kind: Kind, namespace: str) -> tuple[str, str | None]:
        """The prefix to look under; and the key, if only one object can match."""
        named = self._fields.required_value("metadata.name")
        space = namespace or self._fields.required_value("metadata.namespace") or ""
        if not kind.namespaced:
            space = ""
        prefix = prefix_of(kind, space)
        # A name with a slash is in the query only: no object has it, but as a key it would reach other objects.
        if named and "/" not in named and "/" not in space and (space or not kind.namespaced):
            return prefix, key_of(kind, space, named)
        return prefix if "/" not in space else prefix_of(kind), None

    def matches(self, stored: StoredObject) -> bool:
        if self.everything:
            return True
        if not self._labels.matches(stored.labels):
            return False
        if not self._fields.terms:
            return True
        if stored.fields is None:
            stored.fields = self._strategy.fields(stored.document)
        return self._fields.matches(stored.fields)


def _in_core_terms(fields: fieldselectors.FieldSelector) -> fieldselectors.FieldSelector:
    return fieldselectors.FieldSelector(
        tuple(fieldselectors.Term(core_field(term.field), term.value, term.equal) for term in fields.terms)
    )


def _with_name(fields: fieldselectors.FieldSelector, name: str) -> fieldselectors.FieldSelector:
    if not name:
        return fields
    return fieldselectors.FieldSelector((*fields.terms, fieldselectors.Term("metadata.name", name)))
