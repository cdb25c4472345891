"""Warnings about extended resources: classes that are not there, more than a node has, names that two sides provide."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import Container, DeviceClass, Node, Pod
from drakit.api.footprint import container_requests
from drakit.base.wellknown import IMPLICIT_RESOURCE_PREFIX
from drakit.lint.cluster import Cluster
from drakit.lint.findings import Draft, warn
from drakit.lint.requests import count_on
from drakit.manifests import Manifest


def check_implicit_names(cluster: Cluster) -> Iterator[Draft]:
    """Requests by the name of a class, where that class is not among those given."""
    for manifest in cluster.of(Pod) if cluster.classes else ():
        for path, name in _asked(manifest.view):
            wanted = name.removeprefix(IMPLICIT_RESOURCE_PREFIX)
            if wanted != name and wanted not in cluster.classes:
                known = ", ".join(sorted(cluster.classes))
                message = f'no DeviceClass "{wanted}" is among those given: {known}'
                yield warn(manifest, "unknown-class", path, message)


def _asked(pod: Pod) -> Iterator[tuple[str, str]]:
    """Each resource that a container requests, with its path."""
    listed: tuple[tuple[str, tuple[Container, ...]], ...] = (
        ("containers", pod.spec.containers),
        ("initContainers", pod.spec.init_containers),
    )
    for field, containers in listed:
        for index, container in enumerate(containers):
            for name in container.resources.requests:
                yield f"spec.{field}[{index}].resources.requests[{name}]", name


def check_amounts(cluster: Cluster) -> Iterator[Draft]:
    """Pods that ask for more of a class by the name of a resource than any node has."""
    if not cluster.devices or cluster.lacks_nodes or not cluster.gates.enabled("DRAExtendedResource"):
        return
    classes = {each.spec.extended_resource_name: each for each in cluster.classes.values()}
    classes |= {f"{IMPLICIT_RESOURCE_PREFIX}{name}": each for name, each in cluster.classes.items()}
    for manifest in (each for each in cluster.of(Pod) if not each.view.spec.node_name):
        amounts = container_requests(manifest.view)
        paths = {name: path for path, name in reversed(list(_asked(manifest.view)))}
        for name in paths.keys() & classes.keys():
            yield from _check_amount(cluster, manifest, paths[name], classes[name], name, amounts[name].value)


def _check_amount(
    cluster: Cluster, manifest: Manifest, path: str, device_class: DeviceClass, name: str, wanted: int
) -> Iterator[Draft]:
    selectors = cluster.compiled(device_class.spec.selectors)
    matching = cluster.matching(selectors)
    # Where no device is of the class, its selector is told already.
    if not matching or any(device.allow_multiple_allocations for device in matching):
        return
    own = {each.metadata.name: each.view.status.allocatable.get(name) for each in cluster.of(Node)}

    def has(node: str) -> float:
        """A node that has the resource itself, of a device plugin, does not ask devices for it."""
        of_plugin = own.get(node)
        return of_plugin.value if of_plugin else count_on(cluster, node, selectors)

    most, where = max((has(node), node) for node in cluster.nodes)
    if wanted > most:
        best = f"{where} has {most}" if where else f"there are {most}"
        message = f"asks for {wanted} of class {device_class.metadata.name}, but no node has so many devices: {best}"
        yield warn(manifest, "count-too-large", path, message)


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
