"""Warnings about extended resources: names of classes that are not there, and names that two sides provide."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import Container, Node, Pod
from drakit.base.wellknown import IMPLICIT_RESOURCE_PREFIX
from drakit.lint.cluster import Cluster
from drakit.lint.findings import Draft, warn


def check_implicit_names(cluster: Cluster) -> Iterator[Draft]:
    """Requests by the name of a class, where that class is not among those given."""
    for manifest in cluster.of(Pod) if cluster.classes else ():
        spec: object = manifest.view.spec
        for field in ("containers", "init_containers"):
            listed: tuple[Container, ...] = getattr(spec, field)
            for index, container in enumerate(listed):
                for name in container.resources.requests:
                    wanted = name.removeprefix(IMPLICIT_RESOURCE_PREFIX)
                    if wanted != name and wanted not in cluster.classes:
                        path = f"spec.{_WIRE[field]}[{index}].resources.requests[{name}]"
                        known = ", ".join(sorted(cluster.classes))
                        message = f'no DeviceClass "{wanted}" is among those given: {known}'
                        yield warn(manifest, "unknown-class", path, message)


_WIRE = {"containers": "containers", "init_containers": "initContainers"}


def check_two_providers(cluster: Cluster) -> Iterator[Draft]:
    """A resource that a node's device plugin provides, and slices of the same node through a class."""
    classes = {each.spec.extended_resource_name: name for name, each in cluster.classes.items()}
    for manifest in cluster.of(Node):
        views = cluster.inventory.views(manifest.metadata.name)
        for name in manifest.view.status.allocatable:
            named = classes.get(name)
            if named is None or "/" not in name:
                continue
            selectors = cluster.compiled(cluster.classes[named].spec.selectors)
            matching = {id(device) for device in cluster.matching(selectors)}
            if any(id(device) in matching for view in views for device in view.devices):
                message = (
                    f"a device plugin provides it, and class {named} does by slices: here the plugin's devices count"
                )
                yield warn(manifest, "extended-resource-by-both", f"status.allocatable[{name}]", message)
