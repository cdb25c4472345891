"""What a pod can be told about itself, in its environment or in files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, not_supported, required
from drakit.base.quantity import Quantity

ENVIRONMENT_PATHS = frozenset(
    (
        "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
        "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
    )
)  # fmt: skip
VOLUME_PATHS = frozenset(
    ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
)
_READABLE = ENVIRONMENT_PATHS | VOLUME_PATHS | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_SUBSCRIPT = re.compile(r"(metadata\.(?:annotations|labels))\['(.*)'\]")
_RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def check_field(reference: Mapping[str, Any], path: Path, known: frozenset[str]) -> Iterator[FieldError]:
    place, where = reference.get("fieldPath") or "", path / "fieldPath"
    if not place:
        yield required(where)
        return
    if found := _SUBSCRIPT.fullmatch(place):
        rule = names.check_label_key
        text = found[2].lower() if found[1].endswith("annotations") else found[2]
        yield from (invalid(where, place, message) for message in rule(text))
    elif place not in _READABLE:
        yield invalid(where, place, f"error converting fieldPath: field label not supported: {place}")
    elif place not in known:
        yield not_supported(where, place, sorted(known))


def check_resource_field(reference: Mapping[str, Any], path: Path, *, volume: bool) -> Iterator[FieldError]:
    resource = reference.get("resource") or ""
    if volume and not reference.get("containerName"):
        yield required(path / "containerName")
    elif not resource:
        yield required(path / "resource")
    elif resource not in _RESOURCES and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        yield not_supported(path / "resource", resource, _RESOURCES)
    yield from _check_divisor(resource, reference.get("divisor") or "0", path / "divisor")


def _check_divisor(resource: str, text: str, path: Path) -> Iterator[FieldError]:
    divisor = Quantity.parse(text)
    if not divisor.sign:
        return
    name = resource.partition(".")[2]
    if name == "cpu":
        if str(divisor) not in ("1", "1m"):
            yield invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")
    elif str(divisor) not in _BYTES and (name in ("memory", "ephemeral-storage") or name.startswith("hugepages-")):
        called = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(name, "hugepages")
        detail = f"only divisor's values {', '.join(_BYTES)} are supported with the {called} resource"
        yield invalid(path, resource, detail)
