"""Decoding and encoding: a ResourceSlice of 128 devices, and 10,000 claims. Run as `python -m benchmarks.codec`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.report import best_of, publish
from drakit.api import ResourceClaim, ResourceSlice, decode, encode, from_json, from_plain, to_plain
from drakit.base.structs import Model

DEVICES = 128
CLAIMS = 10_000
COLUMNS = ("what", "objects", "time", "per object", "MB/s")

Row = tuple[str, str, str, str, str]


def device(number: int) -> dict[str, Any]:
    """A GPU as drivers publish them: eight attributes, three capacities."""
    return {
        "name": f"gpu-{number}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-18db0e85-99e9-c746-8531-ffeb8632{number:04x}"},
            "productName": {"string": "NVIDIA A100-SXM4-40GB"},
            "architecture": {"string": "Ampere"},
            "driverVersion": {"version": "550.54.15"},
            "index": {"int": number},
            "mig": {"bool": False},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{number // 4:02x}"},
        },
        "capacity": {"memory": {"value": "40Gi"}, "cores": {"value": "108"}, "bandwidth": {"value": "1555G"}},
    }


def resource_slice() -> ResourceSlice:
    return from_plain(
        ResourceSlice,
        {
            "metadata": {"name": "node-1-gpu.example.com-x7k2p", "uid": "u-1", "resourceVersion": "1"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "node-1",
                "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
                "devices": [device(number) for number in range(DEVICES)],
            },
        },
    )


def claim(number: int) -> ResourceClaim:
    """A claim for one device, allocated and in use."""
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": f"gpu-{number % DEVICES}"}
    here = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    return from_plain(
        ResourceClaim,
        {
            "metadata": {
                "name": f"train-{number}",
                "namespace": "default",
                "uid": f"c-{number}",
                "resourceVersion": str(number),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["resource.kubernetes.io/delete-protection"],
            },
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "gpu",
                            "exactly": {
                                "deviceClassName": "gpu.example.com",
                                "allocationMode": "ExactCount",
                                "count": 1,
                            },
                        }
                    ]
                }
            },
            "status": {
                "allocation": {
                    "devices": {"results": [result]},
                    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
                },
                "reservedFor": [{"resource": "pods", "name": f"train-{number}", "uid": f"p-{number}"}],
            },
        },
    )


def rows(name: str, objects: list[Model]) -> list[Row]:
    """Every way through the codec that these objects take."""
    model = type(objects[0])
    encoded = [encode(each) for each in objects]
    older = [encode(each, "v1beta1") for each in objects]
    size = sum(map(len, encoded))

    def measure(what: str, one: Callable[[Any], object], over: list[Any]) -> Row:
        inner = max(1, 2000 // (10 * len(over)))
        seconds = best_of(lambda: [one(each) for each in over], rounds=5, inner=inner)
        each = seconds / len(over)
        return f"{name}: {what}", f"{len(over):,}", duration(seconds), duration(each), f"{size / seconds / 1e6:.0f}"

    return [
        measure("decode trusted bytes", lambda data: from_json(model, data), encoded),
        measure("decode a client's bytes, strict", lambda data: decode(data, syntax="json"), encoded),
        measure("decode a client's bytes in v1beta1", lambda data: decode(data, syntax="json"), older),
        measure("encode", encode, objects),
        measure("encode to v1beta1", lambda value: encode(value, "v1beta1"), objects),
        measure("to plain data", to_plain, objects),
        measure("plain JSON alone, decode", msgspec.json.decode, encoded),
    ]


def duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def main() -> None:
    table = rows(f"slice of {DEVICES} devices", [resource_slice()])
    table += rows("claim", [claim(number) for number in range(CLAIMS)])
    publish("codec", "Decode and encode", COLUMNS, table)


if __name__ == "__main__":
    main()
