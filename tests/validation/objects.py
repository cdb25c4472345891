"""Good objects to start from; a test breaks one thing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from drakit.api import Partial, Pod, decode_plain, set_defaults
from drakit.base.fields import FieldError

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
META = {"name": "it", "namespace": "ns"}


def made(kind: str, document: dict[str, Any], *, version: str = "resource.k8s.io/v1") -> Any:
    """A decoded object with defaults."""
    meta = {"name": "it", **document.get("metadata", {})}
    return set_defaults(decode_plain({"apiVersion": version, "kind": kind, **document, "metadata": meta}).object, NOW)


def defaulted_claim(*requests: dict[str, Any], metadata: dict[str, Any] | None = None, **devices: Any) -> Any:
    asked = list(requests) or [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    meta = {**META, **(metadata or {})}
    return made("ResourceClaim", {"metadata": meta, "spec": {"devices": {"requests": asked, **devices}}})


def with_status(base: Any, **status: Any) -> Any:
    document = {"metadata": {**META}, "spec": {"devices": {"requests": []}}, "status": status}
    return replace(base, status=made("ResourceClaim", document).status)


def allocation_of(*devices: str, request: str = "r", **more: Any) -> dict[str, Any]:
    results = [
        {"request": request, "driver": "gpu.example.com", "pool": "p", "device": device, **more} for device in devices
    ]
    return {"devices": {"results": results}}


def device_slice(*devices: dict[str, Any], **spec: Any) -> Any:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    base = {"driver": "gpu.example.com", "pool": pool, "nodeName": "node-a", "devices": list(devices)}
    return made("ResourceSlice", {"spec": {**base, **spec}})


def defaulted_class(**spec: Any) -> Any:
    return made("DeviceClass", {"spec": spec})


def defaulted_pod(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> Partial[Pod]:
    containers = [{"name": "c", "image": "i"}]
    document = {"metadata": META, "spec": {"containers": containers, **(spec or {})}, "status": status or {}}
    found: Partial[Pod] = made("Pod", document, version="v1")
    return found


def told(errors: tuple[FieldError, ...]) -> list[tuple[str, str]]:
    """Path and reason of each error, without the common word."""
    return [(str(error.path), error.kind.reason.removeprefix("FieldValue")) for error in errors]
