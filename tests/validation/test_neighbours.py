"""Rules of the kinds around pods, with the paths and words of Kubernetes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from drakit.api import decode_plain, lookup, set_defaults
from drakit.validation import validate_create, validate_update
from tests.apiserver.neighbours import NEIGHBOURS, ONCE, TEMPLATE, neighbour

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATTERN: dict[str, Any] = {"onPodConditions": [{"type": "DisruptionTarget"}]}


def made(plural: str, **changes: Any) -> Any:
    document = neighbour(plural, **changes)
    namespace = {"namespace": "default"} if lookup(plural).namespaced else {}
    document["metadata"] = {"uid": "u", **namespace, **document["metadata"]}
    return set_defaults(decode_plain(document, strict=True).object, NOW)


def errors(plural: str, **changes: Any) -> list[str]:
    return [str(each) for each in validate_create(made(plural, **changes))]


@pytest.mark.parametrize("plural", sorted(NEIGHBOURS))
def test_an_ordinary_object_is_valid(plural: str) -> None:
    assert errors(plural) == []


def job(**spec: Any) -> list[str]:
    return errors("jobs", spec={"template": ONCE, **spec})


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (lambda: job(template=TEMPLATE), 'restartPolicy: Required value: valid values: "OnFailure", "Never"'),
        (lambda: job(parallelism=-1), "spec.parallelism: Invalid value: -1: must be greater than or equal to 0"),
        (lambda: job(completionMode="Indexed", parallelism=1), "spec.completions: Required value: when"),
        (lambda: job(backoffLimitPerIndex=1), "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed"),
        (lambda: job(completionMode="Sorted"), 'spec.completionMode: Unsupported value: "Sorted"'),
        (lambda: job(podFailurePolicy={"rules": [{**PATTERN, "action": "Panic"}]}), "rules[0].action: Unsupported"),
        (
            lambda: job(podFailurePolicy={"rules": [{"action": "FailJob"}]}),
            "specifying one of OnExitCodes and OnPodConditions is required",
        ),
        (lambda: errors("cronjobs", spec={**cron(), "schedule": "soon"}), "spec.schedule: Invalid value: \"soon\""),
        (lambda: errors("cronjobs", spec={**cron(), "concurrencyPolicy": "Maybe"}), "spec.concurrencyPolicy: Unsupp"),
        (
            lambda: errors("poddisruptionbudgets", spec={"minAvailable": 1, "maxUnavailable": 1}),
            "minAvailable and maxUnavailable cannot be both set",
        ),
        (lambda: errors("poddisruptionbudgets", spec={"minAvailable": "120%"}), "must not be greater than 100%"),
        (lambda: errors("runtimeclasses", handler="Not_A_Label"), "handler: Invalid value"),
        (lambda: errors("statefulsets", spec={"template": TEMPLATE, "serviceName": "s"}), "spec.selector: Required"),
        (lambda: errors("persistentvolumeclaims", spec={}), "spec.accessModes: Required value: at least 1 access mode"),
        (lambda: errors("persistentvolumes", spec={"capacity": {"storage": "1Gi"}}), "must specify a volume type"),
        (lambda: errors("storageclasses", provisioner=""), "provisioner: Required value"),
        (lambda: errors("horizontalpodautoscalers", spec={"maxReplicas": 0}), "must be set and greater than 0"),
        (lambda: errors("ingresses", spec={}), "either `defaultBackend` or `rules` must be specified"),
        (lambda: errors("endpointslices", addressType="Telex"), 'addressType: Unsupported value: "Telex"'),
        (lambda: errors("ipaddresses", metadata={"name": "010.0.0.1"}), "not a valid IP address"),
        (lambda: errors("apiservices", metadata={"name": "v2.example.com"}), "must be `spec.version"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(found: Any, wanted: str) -> None:
    assert any(wanted in each for each in found()), found()


def cron() -> dict[str, Any]:
    spec: dict[str, Any] = NEIGHBOURS["cronjobs"][1]["spec"]
    return spec


def test_what_must_stay_stays() -> None:
    before = made("jobs", spec={"template": ONCE, "completions": 2, "parallelism": 1})
    after = made("jobs", spec={"template": ONCE, "completions": 3, "parallelism": 1})
    assert [str(each.path) for each in validate_update(after, before)] == ["spec.completions"]
    paths = [
        str(each.path) for each in validate_update(made("storageclasses", provisioner="b"), made("storageclasses"))
    ]
    assert paths == ["provisioner"]
