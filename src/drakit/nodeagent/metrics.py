"""The agent's metrics, by the names that a kubelet 1.36 has for them.

In:  what the parts of the agent observe.
Out: families in a registry, for `/metrics`.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

ANY_DRIVER = "<any>"
_BOUNDS = (
    0.1,
    0.1534127404634391,
    0.23535468936502524,
    0.36106407876409946,
    0.5539182980610752,
    0.849781240983936,
    1.303672689737678,
    1.9999999999999993,
    3.0682548092687805,
    4.7070937873005025,
    7.221281575281985,
    11.078365961221499,
    16.995624819678714,
    26.07345379475354,
    39.99999999999997,
)
"""From 0.1 s to 40 s, just below the deadline of a call."""


class AgentMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._operations = Histogram(
            "dra_operations_duration_seconds",
            "[ALPHA] Seconds that the claims of one pod took at its start or end, by operation and whether it failed",
            ("operation_name", "is_error"),
            buckets=_BOUNDS,
            registry=registry,
        )
        self._calls = Histogram(
            "dra_grpc_operations_duration_seconds",
            "[ALPHA] Seconds that calls to DRA drivers took, by driver, method and gRPC code",
            ("driver_name", "method_name", "grpc_status_code"),
            buckets=_BOUNDS,
            registry=registry,
        )
        self._in_use = Gauge(
            "dra_resource_claims_in_use",
            "[ALPHA] ResourceClaims in use on this node: by driver, and all of them together under <any>",
            ("driver_name",),
            registry=registry,
        )
        self._start_errors = Counter(
            "kubelet_started_containers_errors",
            "[BETA] Cumulative number of errors when starting containers",
            ("container_type", "code"),
            registry=registry,
        )
        self._started = Counter(
            "kubelet_started_containers",
            "[BETA] Cumulative number of containers started",
            ("container_type",),
            registry=registry,
        )

        self._evictions = Counter(
            "kubelet_evictions",
            "[ALPHA] Cumulative number of pod evictions by eviction signal",
            ("eviction_signal",),
            registry=registry,
        )

    def evicted(self, signal: str) -> None:
        self._evictions.labels(signal).inc()

    def observe_call(self, driver: str, method: str, code: str, seconds: float) -> None:
        self._calls.labels(driver, method, code).observe(seconds)

    def observe_operation(self, operation: str, *, failed: bool, seconds: float) -> None:
        self._operations.labels(operation, "true" if failed else "false").observe(seconds)

    def set_claims_in_use(self, counts: dict[str, int], total: int) -> None:
        """By driver; drivers without claims are not shown."""
        self._in_use.clear()
        for driver, count in counts.items():
            self._in_use.labels(driver).set(count)
        self._in_use.labels(ANY_DRIVER).set(total)

    def started_container(self, kind: str) -> None:
        self._started.labels(kind).inc()

    def failed_to_start_container(self, kind: str, code: str) -> None:
        self._start_errors.labels(kind, code).inc()
