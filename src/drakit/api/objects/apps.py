"""Views of the kinds of `apps/v1` that make pods by way of others: Deployment, DaemonSet, ControllerRevision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.pods import PodTemplateSpec
from drakit.api.objects.wire import constant, nested
from drakit.base.labels import LabelSelector
from drakit.base.structs import Model


class RollingUpdateDeployment(Model):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class DeploymentStrategy(Model):
    type: str = ""
    rolling_update: RollingUpdateDeployment | None = None


class DeploymentSpec(Model):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = nested(PodTemplateSpec)
    strategy: DeploymentStrategy = nested(DeploymentStrategy)
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class Deployment(Model):
    kind: str = constant("Deployment")
    api_version: str = constant("apps/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: DeploymentSpec = nested(DeploymentSpec)


class RollingUpdateDaemonSet(Model):
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


class DaemonSetUpdateStrategy(Model):
    type: str = ""
    rolling_update: RollingUpdateDaemonSet | None = None


class DaemonSetSpec(Model):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = nested(PodTemplateSpec)
    update_strategy: DaemonSetUpdateStrategy = nested(DaemonSetUpdateStrategy)
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSet(Model):
    kind: str = constant("DaemonSet")
    api_version: str = constant("apps/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: DaemonSetSpec = nested(DaemonSetSpec)


class ControllerRevision(Model):
    """A template of a workload, the current or an earlier one. A newer template has a greater `revision`."""

    kind: str = constant("ControllerRevision")
    api_version: str = constant("apps/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    data: Mapping[str, Any] | None = None
    revision: int = msgspec.field(default_factory=int)
