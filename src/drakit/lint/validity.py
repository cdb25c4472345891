"""Manifests that a server would accept, or every reason why not.

In:  manifests as they were read; the feature gates that are on.
Out: problems: those of reading, objects that are there twice, and broken rules, each with its file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from drakit.api import Partial, ResourceClaim, ResourceClaimStatus
from drakit.api.codec.documents import Object
from drakit.base.fields import FieldError
from drakit.base.gates import FeatureGates
from drakit.manifests import ManifestProblem, Manifests, repeated
from drakit.validation import Context, validate_create, validate_status_update


def problems_of(manifests: Manifests, gates: FeatureGates) -> list[ManifestProblem]:
    """All problems. Objects of kinds that are modelled in part are not validated."""
    context = Context(gates=gates)
    broken = [
        each.problem("invalid", str(error.path), f"{each.title}: {error}")
        for each in manifests.objects
        for error in _broken_rules(each.object, context)
        if not _follows(str(error.path), each.reported)
    ]
    return [*manifests.problems, *manifests.locate(broken), *manifests.locate(repeated(manifests.objects))]


def _broken_rules(value: Object, context: Context) -> Iterator[FieldError]:
    if isinstance(value, Partial):
        return
    yield from validate_create(value, context)
    if isinstance(value, ResourceClaim) and value.status.allocation and not value.metadata.deletion_timestamp:
        unallocated = replace(value, status=ResourceClaimStatus())
        yield from validate_status_update(value, unallocated, context)


def _follows(path: str, reported: Iterable[str]) -> bool:
    """Whether a problem at, above or below the path was reported already: the broken rule only follows from it."""
    return any(path.startswith(each) or each.startswith(path) for each in reported)
