"""Objects for scheduling scenarios, as a user would write them; claims, classes and slices are in `manifests`."""

from __future__ import annotations

from typing import Any

from tests.builders import manifests
from tests.builders.manifests import by_name, by_template, claim, device_class, resource_slice, template

__all__ = ["by_name", "by_template", "claim", "device_class", "node", "pod", "resource_slice", "template"]

from tests.builders.documents import Plain

ROOM = {"cpu": "8", "memory": "16Gi", "pods": "110"}


def node(name: str, *, room: Plain | None = None, spec: Plain | None = None, **labels: str) -> Plain:
    """A node that is ready, with room for a few pods."""
    made = manifests.node(name, **labels)
    allocatable = {**ROOM, **(room or {})}
    made["status"] = {"allocatable": allocatable, "capacity": allocatable}
    if spec:
        made["spec"] = spec
    return made


def pod(name: str, *, cpu: str = "", memory: str = "", spec: Plain | None = None, **others: Any) -> Plain:
    made = manifests.pod(name, **others)
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    if requests:
        made["spec"]["containers"][0]["resources"] = {"requests": requests}
    made["spec"].update(spec or {})
    return made
