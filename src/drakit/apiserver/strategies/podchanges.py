"""Rules for the subresources `resize` and `ephemeralcontainers` of pods.

In:  the pod after and before.
Out: errors with their paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.apiserver.strategies.pods import quality_of_service
from drakit.base.fields import FieldError, Path, forbidden, invalid

_RESIZABLE = ("cpu", "memory")
_SPEC = Path("spec")


def check_resize(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[FieldError]:
    """Only cpu and memory may change, and the pod must keep its quality-of-service class."""
    quality = quality_of_service(new["spec"])
    if quality != quality_of_service(old["spec"]):
        yield invalid(_SPEC, quality, "Pod QOS Class may not change as a result of resizing")
    for part in ("containers", "initContainers"):
        pairs = zip(new["spec"].get(part) or (), old["spec"].get(part) or (), strict=False)
        for index, (after, before) in enumerate(pairs):
            if _fixed(after) != _fixed(before):
                yield forbidden((_SPEC / part)[index] / "resources", "only cpu and memory resources are mutable")


def _fixed(container: Mapping[str, Any]) -> Any:
    resources = container.get("resources") or {}
    amounts = [
        {name: amount for name, amount in (resources.get(kind) or {}).items() if name not in _RESIZABLE}
        for kind in ("limits", "requests")
    ]
    return amounts, resources.get("claims") or []


def check_ephemeral(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[FieldError]:
    """Ephemeral containers may be added, never removed or changed."""
    after = {each["name"]: each for each in new["spec"].get("ephemeralContainers") or ()}
    for each in old["spec"].get("ephemeralContainers") or ():
        at, name = _SPEC / "ephemeralContainers", each["name"]
        if name not in after:
            yield forbidden(at, f'existing ephemeral containers "{name}" may not be removed')
        elif after[name] != each:
            yield forbidden(at, f'existing ephemeral containers "{name}" may not be changed')
