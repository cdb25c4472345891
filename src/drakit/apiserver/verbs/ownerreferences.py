"""An owner that an object names twice is one owner: the second reference is taken out, and the client is warned."""

from __future__ import annotations

from drakit.api.objects.plain import Plain
from drakit.apiserver.verbs.context import ApiCall

_WARNING = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)
_PATCH = "patch"


def drop_sent_duplicates(call: ApiCall, metadata: Plain) -> None:
    """Of an object as it was sent. What a patch makes is looked at after the plugins alone, as upstream does."""
    if call.verb != _PATCH and _has_many(metadata):
        _drop(call, metadata, "")


def drop_admitted_duplicates(call: ApiCall, metadata: Plain) -> None:
    """Of an object as the plugins leave it."""
    if _has_many(metadata):
        _drop(call, metadata, " after mutating admission happens")


def _has_many(metadata: Plain) -> bool:
    return len(metadata.get("ownerReferences") or ()) > 1


def _drop(call: ApiCall, metadata: Plain, when: str) -> None:
    references = metadata["ownerReferences"]
    kept = [each for index, each in enumerate(references) if each not in references[:index]]
    if len(kept) == len(references):
        return
    twice = {str(each.get("uid", "")) for each in kept if references.count(each) > 1}
    warning = _WARNING.format(when=when, uids=", ".join(sorted(twice)))
    # A write that is repeated after a conflict warns once.
    if warning not in call.warnings:
        call.warnings.append(warning)
    metadata["ownerReferences"] = kept
