"""Parameters of policies: the objects behind `params`.

In:  the paramKind of a policy, the paramRef of a binding, the namespace of a request.
Out: the objects; the policy is evaluated once for each. Or a message, if the lack of them is a failure.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind, find_kind
from drakit.apiserver.admission.criteria.registrations import ParamKind, ParamRef
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore, prefix_of
from drakit.base import labels

NONE: Sequence[Plain | None] = (None,)
_MISSING = "no params found for policy binding with `Deny` parameterNotFoundAction"


class Parameters:
    """Finds the parameter objects of bindings in the store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    async def collect(
        self, wanted: ParamKind | None, reference: ParamRef | None, namespace: str
    ) -> Sequence[Plain | None] | str:
        """`NONE` for a policy without parameters: it is evaluated once, with null."""
        if wanted is None or reference is None:
            return NONE
        kind = find_kind(wanted.api_version, wanted.kind)
        if kind is None:
            return f"failed to find resource referenced by paramKind: '{wanted.api_version}, Kind={wanted.kind}'"
        place = reference.namespace or namespace
        if kind.namespaced and not place:
            return "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        if not kind.namespaced and reference.namespace:
            return "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
        found = await self._found(kind, reference, place if kind.namespaced else "")
        if not found and reference.parameter_not_found_action == "Deny":
            return _MISSING
        version = wanted.api_version.rpartition("/")[2]
        return [each.document_in(version) for each in found]

    async def _found(self, kind: Kind, reference: ParamRef, namespace: str) -> list[StoredObject]:
        if reference.selector is None:
            stored = await self._objects.find(kind, namespace, reference.name)
            return [stored] if stored is not None else []
        selector = labels.from_struct(reference.selector)
        page = await self._objects.store.list(prefix_of(kind, namespace))
        every = (self._objects.from_record(kind, record) for record in page.records)
        return [each for each in every if selector.matches(each.labels)]
