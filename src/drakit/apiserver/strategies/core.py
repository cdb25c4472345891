"""How the kinds around pods are written: namespaces, nodes, quotas, events, workloads, policies."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from drakit.api.objects.plain import Plain
from drakit.apiserver.strategies.base import KindStrategy, dotted, restore

UNSUPPORTED = "field label not supported: {name}"
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class NamespaceStrategy(KindStrategy):
    """The finalizers in the spec hold a namespace. Only `/finalize` may change them."""

    returns_deleted = True
    has_status = True
    status_metadata = True
    extra_fields = dotted("status.phase")
    select_namespace = False
    unselectable = UNSUPPORTED

    def prepare_create(self, new: Plain) -> None:
        new["status"] = {"phase": "Active"}
        spec = new.setdefault("spec", {})
        if "kubernetes" not in spec.get("finalizers", ()):
            new["spec"] = {**spec, "finalizers": [*spec.get("finalizers", ()), "kubernetes"]}

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:
        super().prepare_update(new, old)
        restore(new, old, "spec")

    def prepare(self, subresource: str, new: Plain, old: Mapping[str, Any], now: str) -> None:
        if subresource == "finalize":
            restore(new, old, "status")
        else:
            super().prepare(subresource, new, old, now)


class NodeStrategy(KindStrategy):
    """A kubelet creates its node together with the status."""

    status_metadata = True
    extra_fields = dotted("spec.unschedulable")
    select_namespace = False
    unselectable = UNSUPPORTED

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:
        restore(new, old, "status")

    def fields(self, document: Mapping[str, Any]) -> dict[str, str]:
        found = super().fields(document)
        # A boolean that is not set selects as false.
        found["spec.unschedulable"] = found["spec.unschedulable"] or "false"
        return found


class EventStrategy(KindStrategy):
    create_on_update = True
    unselectable = UNSUPPORTED
    extra_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{f"involvedObject.{name}": ("involvedObject", name) for name in _INVOLVED},
        **dotted("reason", "type"),
        "reportingComponent": ("reportingComponent",),
        "source": ("source", "component"),
    }

    def fields(self, document: Mapping[str, Any]) -> dict[str, str]:
        found = super().fields(document)
        # Events of the newer API name their source only there.
        found["source"] = found["source"] or found["reportingComponent"]
        return found


class SecretStrategy(KindStrategy):
    extra_fields = dotted("type")
    unselectable = UNSUPPORTED

    def prepare_create(self, new: Plain) -> None:
        _fold_texts(new)

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:  # noqa: ARG002
        _fold_texts(new)


def _fold_texts(secret: Plain) -> None:
    """Move `stringData`, which is write-only, into `data`."""
    texts = secret.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


class ServiceAccountStrategy(KindStrategy):
    returns_deleted = True


class QuotaStrategy(KindStrategy):
    returns_deleted = True
    has_status = True
    status_metadata = True


class ServiceStrategy(KindStrategy):
    returns_deleted = True
    has_status = True
    status_metadata = True
    extra_fields = dotted("spec.clusterIP", "spec.type")
    unselectable = UNSUPPORTED

    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:
        given = new["spec"].get("externalIPs")
        if given and (old is None or given != old["spec"].get("externalIPs")):
            yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
        if new["spec"].get("trafficDistribution") == "PreferClose":
            yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


class LeaseStrategy(KindStrategy):
    """Who is elected is not coordinated by the server: what asks for that is dropped, as by default upstream."""

    create_on_update = True
    unconditional = False

    def prepare_create(self, new: Plain) -> None:
        _drop_coordination(new)

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:  # noqa: ARG002
        _drop_coordination(new)


def _drop_coordination(lease: Plain) -> None:
    spec = lease.get("spec") or {}
    if "strategy" in spec or "preferredHolder" in spec:
        lease["spec"] = {name: value for name, value in spec.items() if name not in ("strategy", "preferredHolder")}


class RoleStrategy(KindStrategy):
    create_on_update = True


class PriorityClassStrategy(KindStrategy):
    generation = True

    def changes_generation(self, new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:  # noqa: ARG002
        return False  # upstream sets the generation once, and never counts


class ReplicaSetStrategy(KindStrategy):
    generation = True
    has_status = True
    status_metadata = True
    extra_fields = dotted("status.replicas")

    def fields(self, document: Mapping[str, Any]) -> dict[str, str]:
        found = super().fields(document)
        found["status.replicas"] = found["status.replicas"] or "0"
        return found


class ControllerStrategy(KindStrategy):
    """Deployments and daemon sets."""

    generation = True
    has_status = True
    status_metadata = True


class RolloutStrategy(ControllerStrategy):
    """Deployments, whose labels a write of the status leaves alone."""

    def prepare_status(self, new: Plain, old: Mapping[str, Any]) -> None:
        super().prepare_status(new, old)
        restore(new["metadata"], old["metadata"], "labels")


_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSetStrategy(ControllerStrategy):
    """Changes of the template are counted in an annotation, where the first version of the kind had a field."""

    def prepare_create(self, new: Plain) -> None:
        super().prepare_create(new)
        _count_template(new, 1)

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:
        super().prepare_update(new, old)
        before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "")
        changed = new["spec"].get("template") != old["spec"].get("template")
        _count_template(new, (int(before) if before.isdecimal() else 0) + changed)


def _count_template(new: Plain, count: int) -> None:
    new["metadata"]["annotations"] = {**(new["metadata"].get("annotations") or {}), _TEMPLATE_GENERATION: str(count)}


class PolicyStrategy(KindStrategy):
    """Admission policies and webhook configurations."""

    generation = True
    unconditional = False

    def prepare_create(self, new: Plain) -> None:
        if self.kind.subresource("status"):
            new.pop("status", None)

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:
        if self.kind.subresource("status"):
            restore(new, old, "status")

    def changes_generation(self, new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
        return any(new.get(part) != old.get(part) for part in ("spec", "webhooks"))
