"""View of RuntimeClass: the overhead of a pod with another runtime, and the nodes that have the runtime."""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.wire import constant, mapping, nested, text
from drakit.base.quantity import Quantity
from drakit.base.structs import Model
from drakit.base.taints import Toleration


class Overhead(Model):
    pod_fixed: Mapping[str, Quantity] = mapping()


class RuntimeClassScheduling(Model):
    node_selector: Mapping[str, str] = mapping()
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Model):
    kind: str = constant("RuntimeClass")
    api_version: str = constant("node.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    handler: str = text()
    overhead: Overhead | None = None
    scheduling: RuntimeClassScheduling | None = None
