"""Kinds with a template of pods that others act on: StatefulSet, ReplicationController, PodTemplate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api import Partial
from drakit.api.objects.cluster import ReplicaSet
from drakit.api.objects.plain import from_plain
from drakit.api.objects.pods import PodTemplateSpec
from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, not_supported, required
from drakit.validation.cluster.podselectors import check_pod_selector
from drakit.validation.fields.documentrules import check_name, check_not_negative, check_words
from drakit.validation.fields.metadata import check_labels
from drakit.validation.fields.volumeclaims import check_claim_spec
from drakit.validation.pods.details import check_pod_details
from drakit.validation.pods.spec import check_pod_spec

_SPEC = Path("spec")
_MISMATCH = "`selector` does not match template `labels`"


def _check_template(
    document: Mapping[str, Any], path: Path, *, labels: str = "metadata.labels"
) -> Iterator[FieldError]:
    template = from_plain(PodTemplateSpec, document)
    where = path
    for part in labels.split("."):
        where = where / part
    yield from check_labels(template.metadata.labels, where)
    yield from check_pod_spec(template.spec, path / "spec")
    yield from check_pod_details(document.get("spec") or {}, path / "spec")


def _check_restarts(template: PodTemplateSpec, path: Path) -> Iterator[FieldError]:
    policy = template.spec.restart_policy or "Always"
    if policy != "Always":
        yield not_supported(path / "spec" / "restartPolicy", policy, ("Always",))


def check_stateful_set(obj: Partial[Any]) -> Iterator[FieldError]:
    view, spec = from_plain(ReplicaSet, obj.document).spec, obj.document.get("spec") or {}
    yield from check_not_negative(spec, _SPEC, "replicas", "minReadySeconds")
    if spec.get("serviceName"):
        yield from check_name(spec["serviceName"], names.check_dns_label, _SPEC / "serviceName")
    yield from _check_stateful_policies(spec)
    yield from check_pod_selector(spec, _SPEC, "statefulset", malformed="")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from _check_claim_template(claim, (_SPEC / "volumeClaimTemplates")[index])
    yield from _check_template(spec.get("template") or {}, _SPEC / "template", labels="labels")
    yield from _check_restarts(view.template, _SPEC / "template")


def _check_stateful_policies(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    management = spec.get("podManagementPolicy") or "OrderedReady"
    if management not in ("OrderedReady", "Parallel"):
        yield invalid(_SPEC / "podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    kind = strategy.get("type") or "RollingUpdate"
    if kind not in ("OnDelete", "RollingUpdate"):
        partition = {"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
        shown = {"Type": kind, "RollingUpdate": partition if rolling else None}
        yield invalid(_SPEC / "updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    yield from check_not_negative(rolling, _SPEC / "updateStrategy" / "rollingUpdate", "partition", "maxUnavailable")
    yield from check_not_negative(spec.get("ordinals") or {}, _SPEC / "ordinals", "start")
    for field, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        where = _SPEC / "persistentVolumeClaimRetentionPolicy" / field
        yield from check_words(value, ("Retain", "Delete"), where)


def _check_claim_template(claim: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    name = (claim.get("metadata") or {}).get("name")
    if not name:
        yield required(path / "metadata" / "name")
    else:
        yield from check_name(name, names.check_dns_subdomain, path / "metadata" / "name")
    yield from check_claim_spec(claim.get("spec") or {}, path / "spec")


def check_replication_controller(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = obj.document.get("spec") or {}
    yield from check_not_negative(spec, _SPEC, "minReadySeconds")
    if not spec.get("selector"):
        yield required(_SPEC / "selector")
    yield from check_not_negative(spec, _SPEC, "replicas")
    if spec.get("template") is None:
        yield required(_SPEC / "template")
        return
    template = from_plain(PodTemplateSpec, spec["template"])
    labels = template.metadata.labels
    if any(labels.get(key) != value for key, value in (spec.get("selector") or {}).items()):
        yield invalid(_SPEC / "template" / "metadata" / "labels", dict(labels) or None, _MISMATCH)
    yield from _check_template(spec["template"], _SPEC / "template", labels="labels")
    yield from _check_restarts(template, _SPEC / "template")


def check_pod_template(obj: Partial[Any]) -> Iterator[FieldError]:
    yield from _check_template(obj.document.get("template") or {}, Path("template"), labels="labels")


def check_revision(obj: Partial[Any]) -> Iterator[FieldError]:
    if obj.document.get("data") is None:
        yield required(Path("data"), "data is mandatory")
    yield from check_not_negative(obj.document, Path(), "revision")
