"""How the kinds of dynamic resource allocation, and the groups and workloads around them, are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.strategies.base import KindStrategy, dotted
from drakit.base.fields import quote
from drakit.base.wellknown import PODGROUP_FINALIZER


class ClassStrategy(KindStrategy):
    generation = True
    opaque = True
    returns_deleted = True


class ClaimStrategy(KindStrategy):
    returns_deleted = True
    has_status = True


class TemplateStrategy(KindStrategy):
    returns_deleted = True


class SliceStrategy(KindStrategy):
    generation = True
    returns_deleted = True
    select_namespace = False
    extra_fields = dotted("spec.nodeName", "spec.driver")
    unselectable = "field label not supported for {group_version}, Kind=ResourceSlice: {name}"

    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:  # noqa: ARG002
        driver = new["spec"].get("driver", "")
        if driver != driver.lower():
            yield f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"


class TaintRuleStrategy(KindStrategy):
    generation = True
    returns_deleted = True
    has_status = True

    def prepare(self, subresource: str, new: Plain, old: Mapping[str, Any], now: str) -> None:
        """A change of the effect makes a new taint: it gets the current time, unless the client sets another."""
        super().prepare(subresource, new, old, now)
        taint, before = new.get("spec", {}).get("taint", {}), old.get("spec", {}).get("taint", {})
        if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
            new["spec"] = {**new.get("spec", {}), "taint": {**taint, "timeAdded": now}}


class PoolStatusStrategy(KindStrategy):
    unconditional = False
    returns_deleted = True
    has_status = True


class PodGroupStrategy(KindStrategy):
    has_status = True

    def prepare_create(self, new: Plain) -> None:
        super().prepare_create(new)
        finalizers = new["metadata"].setdefault("finalizers", [])
        if PODGROUP_FINALIZER not in finalizers:
            new["metadata"]["finalizers"] = [*finalizers, PODGROUP_FINALIZER]


class WorkloadStrategy(KindStrategy):
    pass
