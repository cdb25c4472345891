"""How the kinds around pods are written that have controllers elsewhere, or none: batch, policy, storage, network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.strategies.base import KindStrategy, dotted, restore
from drakit.base import names

_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_UID_LABEL = _UID_LABELS[1]
_COPIED = (("PersistentVolumeClaim", ""), ("VolumeSnapshot", "snapshot.storage.k8s.io"))
_VANISHED = ("cephfs", "rbd")


class OwnStatusStrategy(KindStrategy):
    """A spec and a status that is written apart from it; changes of the spec are not counted."""

    has_status = True
    status_metadata = True


class WorkloadControllerStrategy(OwnStatusStrategy):
    """As above, and changes of the spec are counted."""

    generation = True


class ConditionalStrategy(KindStrategy):
    """An update must say which version it replaces."""

    unconditional = False


class ReturnedStrategy(KindStrategy):
    """A deletion is answered with the object."""

    returns_deleted = True


class JobStrategy(WorkloadControllerStrategy):
    """A job's pods have a label with its uid, unless the job says which pods are its own."""

    orphans_dependents = True
    deletion_warning = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
        "set propagationPolicy=Orphan to suppress this warning"
    )
    extra_fields = dotted("status.successful")
    unselectable = 'field label "{name}" not supported for Job'

    def prepare_create(self, new: Plain) -> None:
        super().prepare_create(new)
        # A job without labels of its own was given those of its pods, and has all that these will have.
        shared = new["metadata"].get("labels") in (None, {}, _pod_labels(new["spec"]))
        if not new["spec"].get("manualSelector"):
            new["spec"] = _with_own_labels(new["spec"], new["metadata"])
        if shared and _pod_labels(new["spec"]):
            new["metadata"]["labels"] = dict(_pod_labels(new["spec"]))

    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:
        yield from _name_warnings(new, old)

    def fields(self, document: Mapping[str, Any]) -> dict[str, str]:
        found = super().fields(document)
        found["status.successful"] = str((document.get("status") or {}).get("succeeded", 0))
        return found


def _pod_labels(spec: Mapping[str, Any]) -> Mapping[str, str]:
    return (spec.get("template", {}).get("metadata") or {}).get("labels") or {}


def _with_own_labels(spec: Mapping[str, Any], metadata: Mapping[str, Any]) -> Plain:
    template = spec.get("template") or {}
    own = {**dict.fromkeys(_NAME_LABELS, metadata.get("name", "")), **dict.fromkeys(_UID_LABELS, metadata["uid"])}
    inner = template.get("metadata") or {}
    labels = {**own, **(inner.get("labels") or {})}
    selector = spec.get("selector") or {}
    wanted = {_UID_LABEL: metadata["uid"], **(selector.get("matchLabels") or {})}
    return {
        **spec,
        "selector": {**selector, "matchLabels": wanted},
        "template": {**template, "metadata": {**inner, "labels": labels}},
    }


def _name_warnings(new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:
    problems = names.check_dns_label(new["metadata"].get("name", "")) if old is None else []
    if problems:
        yield (
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        )


class CronJobStrategy(WorkloadControllerStrategy):
    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:
        yield from _name_warnings(new, old)


class StatefulSetStrategy(WorkloadControllerStrategy):
    """How many pods may be missing during an update is a field behind a gate that is off by default upstream."""

    def prepare_create(self, new: Plain) -> None:
        super().prepare_create(new)
        strategy = new["spec"].get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate") or {}
        if "maxUnavailable" in rolling:
            kept = {name: value for name, value in rolling.items() if name != "maxUnavailable"}
            new["spec"] = {**new["spec"], "updateStrategy": {**strategy, "rollingUpdate": kept}}


class ReplicationControllerStrategy(WorkloadControllerStrategy):
    orphans_dependents = True
    extra_fields = dotted("status.replicas")
    unselectable = "field label not supported: {name}"

    def fields(self, document: Mapping[str, Any]) -> dict[str, str]:
        found = super().fields(document)
        found["status.replicas"] = found["status.replicas"] or "0"
        return found


class BudgetStrategy(WorkloadControllerStrategy):
    unconditional = False


class PodTemplateStrategy(KindStrategy):
    generation = True
    returns_deleted = True

    def changes_generation(self, new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
        return new.get("template") != old.get("template")


class CountedStrategy(KindStrategy):
    """No status; changes of the spec are counted."""

    generation = True


class EndpointSliceStrategy(KindStrategy):
    generation = True

    def prepare_create(self, new: Plain) -> None:
        super().prepare_create(new)
        # The field is left from an older version; nobody may set it in this one.
        endpoints = new.get("endpoints") or ()
        if any("deprecatedTopology" in each for each in endpoints):
            new["endpoints"] = [
                {name: value for name, value in each.items() if name != "deprecatedTopology"} for each in endpoints
            ]

    def changes_generation(self, new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
        return any(new.get(part) != old.get(part) for part in ("endpoints", "ports", "addressType"))


class CreatedByUpdateStrategy(KindStrategy):
    create_on_update = True


class RuntimeClassStrategy(CreatedByUpdateStrategy):
    unconditional = False


class AttachmentStrategy(KindStrategy):
    has_status = True
    returns_deleted = True
    unconditional = False


class CSINodeStrategy(ReturnedStrategy):
    unconditional = False


class CSIDriverStrategy(CSINodeStrategy):
    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:  # noqa: ARG002
        if new["spec"].get("tokenRequests") and new["spec"].get("serviceAccountTokenInSecrets") is None:
            yield (
                "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
                "possible logging of tokens in volume attributes"
            )


class VolumeStrategy(KindStrategy):
    """The status tells since when the volume is in its phase."""

    has_status = True
    status_metadata = True
    returns_deleted = True

    def prepare_create(self, new: Plain) -> None:
        created = new["metadata"].get("creationTimestamp")
        new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": created}

    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:  # noqa: ARG002
        spec = new["spec"]
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            yield (
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
                "Instead, the recommended approach is to use dynamic provisioning."
            )
        for source in _VANISHED:
            if spec.get(source) is not None:
                yield f"spec.{source}: deprecated in v1.28, non-functional in v1.31+"

    def prepare(self, subresource: str, new: Plain, old: Mapping[str, Any], now: str) -> None:
        super().prepare(subresource, new, old, now)
        status, before = new.get("status") or {}, old.get("status") or {}
        stamped = status.get("lastPhaseTransitionTime") != before.get("lastPhaseTransitionTime")
        if subresource == "status" and status.get("phase") != before.get("phase") and not stamped:
            new["status"] = {**status, "lastPhaseTransitionTime": now}


class VolumeClaimStrategy(OwnStatusStrategy):
    """What a volume is filled from may be said in an older and in a newer field: both say it in the end."""

    returns_deleted = True

    def prepare_create(self, new: Plain) -> None:
        new["status"] = {"phase": "Pending"}
        new["spec"] = _with_both_sources(new["spec"])


def _with_both_sources(spec: Mapping[str, Any]) -> Plain:
    older, newer = spec.get("dataSource"), spec.get("dataSourceRef")
    if newer is None and older is not None and (older.get("kind"), older.get("apiGroup") or "") not in _COPIED:
        # The older field is for these two kinds, and was always silent about others. Beside a newer one it must match.
        older = None
    kept = {name: value for name, value in spec.items() if name != "dataSource"}
    if older is not None and newer is None:
        return {**kept, "dataSource": older, "dataSourceRef": {"apiGroup": None, **older}}
    if newer is not None and older is None and not newer.get("namespace"):
        return {**kept, "dataSource": newer}
    return {**kept, "dataSource": older} if older is not None else kept


class APIServiceStrategy(KindStrategy):
    """A group that this server serves itself is available."""

    has_status = True
    unconditional = False

    def prepare_create(self, new: Plain) -> None:
        super().prepare_create(new)
        if new["spec"].get("service") is None:
            since = new["metadata"].get("creationTimestamp")
            local = {
                "type": "Available", "status": "True", "lastTransitionTime": since, "reason": "Local",
                "message": "Local APIServices are always available",
            }  # fmt: skip
            new["status"] = {"conditions": [local]}


class ServiceRangeStrategy(OwnStatusStrategy):
    status_metadata = False


class SigningRequestStrategy(KindStrategy):
    """What is asked for never changes. Who asked is set by the server. Only `approval` approves and denies."""

    has_status = True
    status_metadata = True
    extra_fields = dotted("spec.signerName")
    select_namespace = False
    unselectable = "field label not supported: {name}"

    def set_requester(self, new: Plain, user: str, uid: str, groups: tuple[str, ...], extra: Mapping[str, Any]) -> None:
        asked = {"username": user, "uid": uid, "groups": list(groups), "extra": {k: list(v) for k, v in extra.items()}}
        kept = {name: value for name, value in new["spec"].items() if name not in asked}
        new["spec"] = {**kept, **{name: value for name, value in asked.items() if value}}

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:
        super().prepare_update(new, old)
        restore(new, old, "spec")

    def prepare(self, subresource: str, new: Plain, old: Mapping[str, Any], now: str) -> None:
        if subresource not in ("approval", "status"):
            return super().prepare(subresource, new, old, now)
        restore(new, old, "spec")
        status, before = dict(new.get("status") or {}), old.get("status") or {}
        given = list(status.get("conditions") or ())
        if subresource == "approval":
            restore(status, before, "certificate")
        else:
            given = _kept(given, before.get("conditions") or ())
        if given:
            status["conditions"] = [_stamped(each, before.get("conditions") or (), now) for each in given]
        new["status"] = status
        return None


def _kept(given: list[Plain], before: Any) -> list[Plain]:
    """The given conditions, with stored approvals and denials unchanged: only `approval` may write those."""
    decided = {each.get("type"): each for each in before if each.get("type") in ("Approved", "Denied")}
    return [decided.get(each.get("type"), each) for each in given]


def _stamped(condition: Plain, before: Any, now: str) -> Plain:
    """When a condition was last written and when it last changed, if the client does not say."""
    same = next((each for each in before if each.get("type") == condition.get("type")), None)
    made = dict(condition)
    if not made.get("lastUpdateTime"):
        made["lastUpdateTime"] = now
    if not made.get("lastTransitionTime"):
        unchanged = same is not None and same.get("status") == made.get("status")
        made["lastTransitionTime"] = same.get("lastTransitionTime") if unchanged and same else now
    return made


STRATEGIES: Mapping[tuple[str, str], type[KindStrategy]] = {
    ("batch", "Job"): JobStrategy,
    ("batch", "CronJob"): CronJobStrategy,
    ("apps", "StatefulSet"): StatefulSetStrategy,
    ("", "ReplicationController"): ReplicationControllerStrategy,
    ("", "PodTemplate"): PodTemplateStrategy,
    ("", "LimitRange"): CreatedByUpdateStrategy,
    ("", "PersistentVolume"): VolumeStrategy,
    ("", "PersistentVolumeClaim"): VolumeClaimStrategy,
    ("policy", "PodDisruptionBudget"): BudgetStrategy,
    ("node.k8s.io", "RuntimeClass"): RuntimeClassStrategy,
    ("certificates.k8s.io", "CertificateSigningRequest"): SigningRequestStrategy,
    ("storage.k8s.io", "StorageClass"): ReturnedStrategy,
    ("storage.k8s.io", "VolumeAttributesClass"): ReturnedStrategy,
    ("storage.k8s.io", "CSINode"): CSINodeStrategy,
    ("storage.k8s.io", "CSIDriver"): CSIDriverStrategy,
    ("storage.k8s.io", "CSIStorageCapacity"): ConditionalStrategy,
    ("storage.k8s.io", "VolumeAttachment"): AttachmentStrategy,
    ("discovery.k8s.io", "EndpointSlice"): EndpointSliceStrategy,
    ("autoscaling", "HorizontalPodAutoscaler"): OwnStatusStrategy,
    ("networking.k8s.io", "Ingress"): WorkloadControllerStrategy,
    ("networking.k8s.io", "IngressClass"): CountedStrategy,
    ("networking.k8s.io", "NetworkPolicy"): CountedStrategy,
    ("networking.k8s.io", "ServiceCIDR"): ServiceRangeStrategy,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): WorkloadControllerStrategy,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): WorkloadControllerStrategy,
    ("apiregistration.k8s.io", "APIService"): APIServiceStrategy,
}
