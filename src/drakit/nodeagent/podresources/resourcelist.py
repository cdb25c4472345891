"""Which container of which pod has which devices.

In:  the pods that are there, the records of their claims, devices of device plugins.
Out: messages of the PodResources v1 interface.

Each device comes with its own CDI ids, and only devices of the requests that the container names are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from drakit.api import Container, Pod, is_sidecar
from drakit.nodeagent.claims.devices import uses
from drakit.nodeagent.claims.records import ClaimRecords
from drakit.pluginapi import podresources_v1_pb2 as wire

PluginDevices = Mapping[str, Sequence[str]]
"""Device ids by resource."""


class PodResourceListing:
    def __init__(
        self,
        pods: Callable[[], Sequence[Pod]],
        records: ClaimRecords,
        *,
        plugin_devices: Callable[[str, str], PluginDevices] = lambda _uid, _container: {},
        allocatable: Callable[[], PluginDevices] = dict,
        extended: bool = True,
    ) -> None:
        """`pods` are those that have not ended. `plugin_devices` are of a pod's uid and container."""
        self._pods = pods
        self._records = records
        self._plugin_devices = plugin_devices
        self._allocatable = allocatable
        self._extended = extended

    def all(self) -> list[wire.PodResources]:
        return [self._pod(each) for each in self._pods()]

    def one(self, name: str, namespace: str) -> wire.PodResources | None:
        for pod in self._pods():
            if (pod.metadata.name, pod.metadata.namespace) == (name, namespace):
                return self._pod(pod)
        return None

    def allocatable(self) -> wire.AllocatableResourcesResponse:
        return wire.AllocatableResourcesResponse(devices=list(_plugin(self._allocatable())))

    def _pod(self, pod: Pod) -> wire.PodResources:
        metadata = pod.metadata
        containers = [self._container(pod, each) for each in _shown(pod)]
        return wire.PodResources(name=metadata.name, namespace=metadata.namespace, containers=containers)

    def _container(self, pod: Pod, container: Container) -> wire.ContainerResources:
        return wire.ContainerResources(
            name=container.name,
            devices=list(_plugin(self._plugin_devices(pod.metadata.uid, container.name))),
            dynamic_resources=list(self._dynamic(pod, container)),
        )

    def _dynamic(self, pod: Pod, container: Container) -> Iterator[wire.DynamicResource]:
        namespace = pod.metadata.namespace
        shown: dict[str, wire.DynamicResource] = {}
        for use in uses(pod, container, extended=self._extended):
            record = self._records.find(namespace, use.claim)
            if record is None or pod.metadata.uid not in record.pods:
                continue
            entry = shown.setdefault(use.claim, wire.DynamicResource(claim_name=use.claim, claim_namespace=namespace))
            for driver, device in use.devices(record):
                made = wire.ClaimResource(
                    cdi_devices=[wire.CDIDevice(name=each) for each in device.cdi_ids],
                    driver_name=driver,
                    pool_name=device.pool,
                    device_name=device.device,
                    share_id=device.share_id,
                )
                if made not in entry.claim_resources:
                    entry.claim_resources.append(made)
        yield from shown.values()


def _shown(pod: Pod) -> list[Container]:
    """Init containers run and are gone; those that go on to run beside the others are shown."""
    return [*(each for each in pod.spec.init_containers if is_sidecar(each)), *pod.spec.containers]


def _plugin(devices: PluginDevices) -> Iterator[wire.ContainerDevices]:
    for resource, ids in devices.items():
        yield wire.ContainerDevices(resource_name=resource, device_ids=list(ids))
