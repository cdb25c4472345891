"""What an update of a pod is told to plugins as."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.scheduler.framework import Action
from drakit.scheduler.framework.changes import pod_change

SMALL = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
LARGE = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}


def a_pod(spec: dict[str, Any], status: dict[str, Any] | None = None, labels: dict[str, str] | None = None) -> Pod:
    document = {"metadata": {"name": "a", "labels": labels or {}}, "spec": spec, "status": status or {}}
    return Partial.of(Pod, document).view


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (a_pod(SMALL), a_pod(SMALL), Action.UPDATE),
        (a_pod(SMALL), a_pod(SMALL, {"phase": "Pending"}), Action.UPDATE),
        (a_pod(SMALL), a_pod(SMALL, labels={"a": "b"}), Action.UPDATE_POD_LABELS),
        (a_pod(LARGE), a_pod(SMALL), Action.UPDATE_POD_SCALE_DOWN),
        (a_pod(SMALL), a_pod(LARGE), Action.UPDATE),
        (a_pod({**SMALL, "schedulingGates": [{"name": "g"}]}), a_pod(SMALL), Action.UPDATE_POD_GATES),
        (
            a_pod({**SMALL, "schedulingGates": [{"name": "g"}, {"name": "h"}]}),
            a_pod({**SMALL, "schedulingGates": [{"name": "g"}]}),
            Action.UPDATE,
        ),
        (a_pod(SMALL), a_pod({**SMALL, "tolerations": [{"key": "k"}]}), Action.UPDATE_POD_TOLERATIONS),
        (
            a_pod(SMALL),
            a_pod(SMALL, {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "a-gpu"}]}),
            Action.UPDATE_POD_GENERATED_CLAIM,
        ),
        (
            a_pod(SMALL),
            a_pod(SMALL, {"extendedResourceClaimStatus": {"resourceClaimName": "a-gpu", "requestMappings": []}}),
            Action.UPDATE_POD_GENERATED_CLAIM,
        ),
        (
            a_pod(LARGE, labels={"a": "b"}),
            a_pod(SMALL),
            Action.UPDATE_POD_LABELS | Action.UPDATE_POD_SCALE_DOWN,
        ),
    ],
)
def test_an_update_is_told_by_what_changed(old: Pod, new: Pod, expected: Action) -> None:
    assert pod_change(old, new) == expected


def test_a_resize_that_took_effect_asks_for_less() -> None:
    def seen(cpu: str) -> dict[str, Any]:
        return {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}

    assert pod_change(a_pod(SMALL, seen("2")), a_pod(SMALL, seen("1"))) == Action.UPDATE_POD_SCALE_DOWN
