"""Metrics of requests, watches and the store, in Prometheus' text format.

In:  observations of the server; statistics of the store at the time of the request.
Out: the page of `/metrics`.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, Counter, Gauge, generate_latest

from drakit.api.exchange import Request
from drakit.base.counts import Distribution, Distributions, Tallies, Tally
from drakit.store import Stats

# Seconds. The finest buckets are for requests on one object, the coarse ones for long lists.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_APPLY = "application/apply-patch"
_CONNECTED = ("attach", "exec", "log", "portforward")
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def reported_verb(request: Request, verb: str, subresource: str = "") -> str:
    """The verb label that Kubernetes dashboards expect: the method, but LIST, WATCH, APPLY and CONNECT apart.

    Unknown methods share one value: labels are kept for ever.
    """
    if verb in ("list", "watch"):
        return verb.upper()
    if subresource in _CONNECTED:
        return "CONNECT"
    if request.method == "PATCH" and request.headers.get("content-type", "").startswith(_APPLY):
        return "APPLY"
    method = "GET" if request.method == "HEAD" else request.method
    return method if method in _METHODS else "other"


class ServerMetrics:
    """One registry per server, so that several servers in one process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Tallies(
            "apiserver_request_total", "Requests by verb, resource and code.", (*_LABELS, "code"), self.registry
        )
        self._durations = Distributions(
            "apiserver_request_duration_seconds", "Time from request to response.", _LABELS, self.registry,
            buckets=_BUCKETS,
        )  # fmt: skip
        # The code is in one of them only: looked up together.
        self._series: dict[tuple[tuple[str, ...], int], tuple[Tally, Distribution]] = {}
        self._inflight = Gauge(
            "apiserver_current_inflight_requests", "Requests under way.", ("request_kind",), registry=self.registry
        )
        self._rejected = Counter(
            "apiserver_rejected_requests_total", "Requests refused because too many were under way.",
            registry=self.registry,
        )  # fmt: skip
        self._audit_lost = Gauge(
            "apiserver_audit_error_total", "Lines of the audit log that could not be written.", registry=self.registry
        )
        self._watches = Gauge(
            "apiserver_longrunning_requests",
            "Open watches and streams.",
            ("group", "version", "resource"),
            registry=self.registry,
        )
        self._events = Counter(
            "apiserver_watch_events_total", "Events sent to watchers.", ("group", "version", "resource"),
            registry=self.registry,
        )  # fmt: skip
        self._store = {
            name: Gauge(f"apiserver_storage_{name}", text, registry=self.registry)
            for name, text in (
                ("revision", "The latest revision of the store."),
                ("compacted_revision", "History before this revision is gone."),
                ("objects", "Keys in the store."),
                ("history_events", "Events kept for watches that start in the past."),
                ("history_bytes", "Bytes of those events."),
                ("watchers", "Watches on the store."),
            )
        }

    def observe(self, labels: tuple[str, ...], code: int, seconds: float) -> None:
        """`labels` are verb, group, version, resource, subresource and scope."""
        series = self._series.get((labels, code))
        if series is None:
            made = self._requests.labels(*labels, str(code)), self._durations.labels(*labels)
            series = self._series[labels, code] = made
        series[0].inc()
        series[1].observe(seconds)

    def inflight(self, kind: str, count: int) -> None:
        self._inflight.labels(kind).set(count)

    def audit_lost(self, lines: int) -> None:
        self._audit_lost.set(lines)

    def rejected(self) -> None:
        self._rejected.inc()

    def watch_opened(self, group: str, version: str, resource: str) -> None:
        self._watches.labels(group, version, resource).inc()

    def watch_closed(self, group: str, version: str, resource: str, events: int) -> None:
        self._watches.labels(group, version, resource).dec()
        self._events.labels(group, version, resource).inc(events)

    def stream_opened(self, group: str, version: str, resource: str) -> Callable[[], None]:
        """`resource` is `pods/log` and the like; what comes back is called when it ends."""
        gauge = self._watches.labels(group, version, resource)
        gauge.inc()
        return gauge.dec

    def page(self, stats: Stats) -> bytes:
        metrics = {
            "revision": stats.revision,
            "compacted_revision": stats.compacted,
            "objects": stats.keys,
            "history_events": stats.history_events,
            "history_bytes": stats.history_bytes,
            "watchers": stats.watchers,
        }
        for name, value in metrics.items():
            self._store[name].set(value)
        return generate_latest(self.registry)
