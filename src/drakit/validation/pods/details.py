"""The parts of a pod's spec that drakit itself does not read, as the document has them.

In:  the spec of a pod or of a template, with defaults.
Out: errors for what a container runtime, a kubelet or the network would stumble over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.base.fields import FieldError, Path
from drakit.validation.pods.containerdetails import check_details
from drakit.validation.pods.surroundings import check_surroundings
from drakit.validation.pods.volumes import check_volumes


def check_pod_details(spec: Mapping[str, Any], path: Path, *, pod: str = "") -> Iterator[FieldError]:
    """`pod` is the name of the pod, empty for a template."""
    volumes: set[str] = set()
    if spec.get("volumes"):
        yield from check_volumes(spec["volumes"], path / "volumes", pod, volumes)
    # One below zero stands for the shortest.
    grace = max(spec.get("terminationGracePeriodSeconds") or 0, -1) or 0
    grace = 1 if grace < 0 else grace
    for field in ("containers", "initContainers"):
        if spec.get(field):
            initial = field == "initContainers"
            yield from check_details(spec[field], path / field, volumes, grace, initial=initial)
    yield from check_surroundings(spec, path)
