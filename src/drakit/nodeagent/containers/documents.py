"""Parts of a Pod document, in the order and with the defaults in which the agent reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.nodeagent.runtimes.contract import ContainerRole, PodIdentity

Document = Mapping[str, Any]
NOTHING: Document = {}


def identity(pod: Document) -> PodIdentity:
    metadata = pod["metadata"]
    return PodIdentity(uid=metadata.get("uid", ""), namespace=metadata.get("namespace", ""), name=metadata["name"])


def spec_of(pod: Document) -> Document:
    spec: Document = pod.get("spec") or NOTHING
    return spec


def all_containers(pod: Document) -> Iterator[tuple[Document, ContainerRole]]:
    """Init containers and sidecars in their order, then the regular ones: all that may ask for resources."""
    for container in spec_of(pod).get("initContainers") or ():
        yield container, ContainerRole.SIDECAR if container.get("restartPolicy") == "Always" else ContainerRole.INIT
    for container in spec_of(pod).get("containers") or ():
        yield container, ContainerRole.MAIN


def container_named(pod: Document, name: str) -> Document | None:
    """The container of that name: init, regular or ephemeral."""
    every = (*(each for each, _ in all_containers(pod)), *(spec_of(pod).get("ephemeralContainers") or ()))
    return next((container for container in every if container["name"] == name), None)


def field_of(pod: Document, name: str) -> str:
    """The field of the spec that lists the container; one that is listed nowhere counts as a regular one."""
    for field in ("initContainers", "ephemeralContainers"):
        if any(container["name"] == name for container in spec_of(pod).get(field) or ()):
            return field
    return "containers"


def resources_of(container: Document, which: str) -> Mapping[str, Any]:
    """`limits` or `requests`; an amount that only a limit names is the request too."""
    resources = container.get("resources") or NOTHING
    limits = resources.get("limits") or NOTHING
    if which == "limits":
        return dict(limits)
    return {**limits, **(resources.get("requests") or NOTHING)}
