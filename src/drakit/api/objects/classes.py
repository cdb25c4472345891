"""DeviceClass: selectors and configuration that an administrator names, in the form of `resource.k8s.io/v1`."""

from __future__ import annotations

from drakit.api.objects.claims import DeviceSelector, OpaqueDeviceConfiguration
from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.wire import constant, nested
from drakit.base.structs import Model


class DeviceClassConfiguration(Model):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Model):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Model):
    kind: str = constant("DeviceClass")
    api_version: str = constant("resource.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: DeviceClassSpec = nested(DeviceClassSpec)
