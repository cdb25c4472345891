"""DeviceTaintRule: a taint that an administrator puts on devices. Served in v1beta2 and v1alpha3, one structure."""

from __future__ import annotations

from drakit.api.objects.claims import DeviceSelector
from drakit.api.objects.meta import Condition, ObjectMeta
from drakit.api.objects.wire import constant, nested
from drakit.base.structs import Model
from drakit.base.taints import DeviceTaint


class DeviceTaintSelector(Model):
    """Every criterion that is set must hold; none set matches every device."""

    device_class_name: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceTaintRuleSpec(Model):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = nested(DeviceTaint)


class DeviceTaintRuleStatus(Model):
    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Model):
    kind: str = constant("DeviceTaintRule")
    api_version: str = constant("resource.k8s.io/v1beta2")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: DeviceTaintRuleSpec = nested(DeviceTaintRuleSpec)
    status: DeviceTaintRuleStatus = nested(DeviceTaintRuleStatus)
