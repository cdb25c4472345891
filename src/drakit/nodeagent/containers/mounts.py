"""`volumeMounts`: where a container sees its pod's volumes.

In:  a container, the paths of the pod's volumes, its environment (for `subPathExpr`).
Out: mounts in the container's order. A `subPath` that is missing is made as a directory; one that leads out of its
     volume, by `..` or by a link, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from drakit.nodeagent.containers.documents import Document
from drakit.nodeagent.containers.expansion import expand, unknown_names
from drakit.nodeagent.containers.failures import ConfigUnavailable
from drakit.nodeagent.runtimes.contract import BindMount, RuntimeRefusal

SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def mounts_of(container: Document, volumes: Mapping[str, Path], env: Mapping[str, str]) -> list[BindMount]:
    """Raises RuntimeRefusal or ConfigUnavailable, naming container and mount."""
    if container.get("volumeDevices"):
        raise _refused(container, "volumeDevices are not supported by this node")
    return [_mount(container, entry, volumes, env) for entry in container.get("volumeMounts") or ()]


def _mount(container: Document, entry: Document, volumes: Mapping[str, Path], env: Mapping[str, str]) -> BindMount:
    volume = volumes.get(entry["name"])
    if volume is None:
        raise ConfigUnavailable(f'cannot find volume "{entry["name"]}" to mount into container "{container["name"]}"')
    inner = _sub_path(container, entry, env)
    path = str(entry["mountPath"])
    return BindMount(
        host_path=str(_within(container, volume, inner) if inner else volume),
        container_path=path if path.startswith("/") else f"/{path}",
        read_only=bool(entry.get("readOnly")),
        propagation=_propagation(entry.get("mountPropagation", "")),
        needed=path != SERVICE_ACCOUNT_PATH,
    )


def _sub_path(container: Document, entry: Document, env: Mapping[str, str]) -> str:
    if expression := entry.get("subPathExpr"):
        if missing := unknown_names(expression, env):
            raise ConfigUnavailable(f"failed to expand subPath {expression}: missing value for {', '.join(missing)}")
        return expand(expression, env)
    inner = str(entry.get("subPath") or "")
    if inner.startswith("/") or ".." in Path(inner).parts:
        raise _refused(container, f'subPath "{inner}" must be relative and without ".."')
    return inner


def _within(container: Document, volume: Path, inner: str) -> Path:
    """The real path, made if it is missing; never outside of the volume, whatever links a container left there."""
    root = volume.resolve()
    target = (root / inner).resolve()
    if not target.is_relative_to(root):
        raise _refused(container, f'subPath "{inner}" leads out of its volume')
    if not target.exists():
        try:
            target.mkdir(parents=True)
        except OSError as error:
            raise ConfigUnavailable(f'failed to prepare subPath "{inner}" of a volume: {error}') from None
    return target


def _propagation(value: str) -> str:
    return "" if value == "None" else value


def _refused(container: Document, message: str) -> RuntimeRefusal:
    return RuntimeRefusal(f'container "{container["name"]}": {message}', reason="CreateContainerConfigError")
