"""Metrics about claims, under the names that upstream gives them.

In:  the cache of claims; what the controller created.
Out: `resourceclaim_controller_creates_total` and `resourceclaim_controller_resource_claims` in the registry.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from drakit.api import ResourceClaim, is_allocated
from drakit.base.counts import Tallies
from drakit.base.wellknown import EXTENDED_RESOURCE_ANNOTATION, POD_CLAIM_ANNOTATION


class ClaimControllerMetrics(Collector):
    """Claims are counted at each scrape, not at each change."""

    def __init__(self, registry: CollectorRegistry, claims: Iterable[ResourceClaim]) -> None:
        self._claims = claims
        self._creates = Tallies(
            "resourceclaim_controller_creates",
            "Number of ResourceClaims creation requests, categorized by creation status",
            ("status", "admin_access"),
            registry,
        )
        registry.register(self)

    def created(self, status: str, claim: ResourceClaim) -> None:
        self._creates.labels(status, _word(_is_admin(claim))).inc()

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "resourceclaim_controller_resource_claims",
            "Number of ResourceClaims, categorized by allocation status, admin access and source",
            labels=["allocated", "admin_access", "source"],
        )
        for labels, count in sorted(Tally(map(labels_of, self._claims)).items()):
            family.add_metric(labels, count)
        yield family


def labels_of(claim: ResourceClaim) -> tuple[str, str, str]:
    """The labels of a claim: allocated, admin access, source."""
    return _word(is_allocated(claim)), _word(_is_admin(claim)), source_of(claim)


def _is_admin(claim: ResourceClaim) -> bool:
    return any(each.exactly is not None and bool(each.exactly.admin_access) for each in claim.spec.devices.requests)


def source_of(claim: ResourceClaim) -> str:
    annotations = claim.metadata.annotations
    if annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true":
        return "extended_resource"
    return "resource_claim_template" if annotations.get(POD_CLAIM_ANNOTATION) else ""


def _word(value: bool) -> str:
    return "true" if value else "false"
