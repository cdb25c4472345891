"""Warnings that Kubernetes does not give: fields that were dropped, objects and fields that nobody acts on.

In:  a change that is valid.
Out: Warning headers. Nothing is refused. `--drakit-warnings` puts the plugin into the chain.
"""

from __future__ import annotations

from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.rules import typed, typed_stored
from drakit.base.gates import FeatureGates
from drakit.validation import dropped_fields, has_warnings, warnings_about


class DrakitWarnings(AdmissionPlugin):
    name = "DrakitWarnings"

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        """Status is written by programs: nobody reads the headers of their answers."""
        return has_warnings(kind.model) and operation in (CREATE, UPDATE) and not subresource

    async def validate(self, change: ObjectChange) -> None:
        old = typed_stored(change.old) if change.old is not None else None
        new = change.typed or typed(change.kind, change.document)
        found = warnings_about(new, old, self._gates)
        if change.undropped is not None:
            found = (*dropped_fields(change.undropped, old, self._gates), *found)
        change.warnings.extend(map(str, found))
