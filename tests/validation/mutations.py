"""Scenes and objects for the tests of mutations, here and elsewhere."""

from __future__ import annotations

from typing import Any

from tests.conformance.validation import NAMES, cases, substitute

KINDS = (
    "ResourceSlice",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceClass",
    "DeviceTaintRule",
    "ResourcePoolStatusRequest",
    "PodGroup",
    "Workload",
    "Pod",
)


def _good() -> dict[str, list[Any]]:
    """Recorded bodies that were accepted, by kind; a body may leave out its version, which its path tells, too."""
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for case in cases([]):
        for step, expected in zip(case["steps"], case["expect"], strict=True):
            body = step.get("body")
            if step["method"] != "POST" or expected["code"] != 201 or not body or "apiVersion" not in body:
                continue
            if body.get("kind") in found:
                found[body["kind"]].append(substitute(body, NAMES))
    return found


GOOD = _good()
