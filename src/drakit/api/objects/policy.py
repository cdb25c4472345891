"""Views of PodDisruptionBudget and LimitRange."""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api.objects.meta import Condition, ObjectMeta
from drakit.api.objects.wire import constant, mapping, nested, number, text
from drakit.base.labels import LabelSelector
from drakit.base.quantity import Quantity
from drakit.base.structs import Model


class PodDisruptionBudgetSpec(Model):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Model):
    """`disrupted_pods`: pods whose eviction was granted and that the controller has not seen go yet."""

    observed_generation: int = 0
    disrupted_pods: Mapping[str, str | None] = mapping()
    disruptions_allowed: int = number()
    current_healthy: int = number()
    desired_healthy: int = number()
    expected_pods: int = number()
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Model):
    kind: str = constant("PodDisruptionBudget")
    api_version: str = constant("policy/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: PodDisruptionBudgetSpec = nested(PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = nested(PodDisruptionBudgetStatus)


class LimitRangeItem(Model):
    type: str = text()
    max: Mapping[str, Quantity] = mapping()
    min: Mapping[str, Quantity] = mapping()
    default: Mapping[str, Quantity] = mapping()
    default_request: Mapping[str, Quantity] = mapping()
    max_limit_request_ratio: Mapping[str, Quantity] = mapping()


class LimitRangeSpec(Model):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Model):
    kind: str = constant("LimitRange")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: LimitRangeSpec = nested(LimitRangeSpec)
