"""Patches, server-side apply and the ownership of fields. Pure: no I/O, no clock.

In:  an object in the version of the request, as the server writes it, and the body of a patch.
Out: the object after, and its managedFields.

`apply_patch` serves JSON, merge and strategic merge patches. `FieldTracker` keeps `managedFields` over plain writes
(`owners_after`) and serves applies (`apply`). `atom_of` gives the schema of a kind in the form that both work on.
"""

from drakit.apiserver.patching.atoms import Atom, atom_of
from drakit.apiserver.patching.bodies import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    PATCH_TYPES,
    STRATEGIC_MERGE_PATCH,
    PatchBody,
    read_applied,
)
from drakit.apiserver.patching.patches import apply_patch
from drakit.apiserver.patching.tracking import (
    FieldTracker,
    convert_version,
    manager_name,
)

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "PATCH_TYPES",
    "STRATEGIC_MERGE_PATCH",
    "Atom",
    "FieldTracker",
    "PatchBody",
    "apply_patch",
    "atom_of",
    "convert_version",
    "manager_name",
    "read_applied",
]
