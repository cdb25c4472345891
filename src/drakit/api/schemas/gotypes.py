"""Names of Go types that the schemas do not tell: they stand in the message about a value of the wrong type.

`~` is the package of the struct: `v1`, `v1beta1`. Structs whose fields Go embeds from another one name that as well.
"""

from __future__ import annotations

from collections.abc import Mapping

_EFFECT = "~.DeviceTaintEffect"
_MODE = "~.DeviceAllocationMode"
_QUANTITIES = "map[~.QualifiedName]resource.Quantity"
_UID = "types.UID"
_DEVICE = {
    "attributes": "map[~.QualifiedName]~.DeviceAttribute",
    "capacity": "map[~.QualifiedName]~.DeviceCapacity",
    "nodeAllocatableResourceMappings": "map[v1.ResourceName]~.NodeAllocatableResourceMapping",
}
_TYPES: Mapping[str, Mapping[str, str]] = {
    "BasicDevice": _DEVICE,
    "CapacityRequirements": {"requests": _QUANTITIES},
    "Condition": {"status": "v1.ConditionStatus"},
    "Container": {
        "imagePullPolicy": "v1.PullPolicy",
        "restartPolicy": "v1.ContainerRestartPolicy",
        "terminationMessagePolicy": "v1.TerminationMessagePolicy",
    },
    "ContainerPort": {"protocol": "v1.Protocol"},
    "Device": _DEVICE,
    "DeviceAllocationConfiguration": {"source": "~.AllocationConfigSource"},
    "DeviceConstraint": dict.fromkeys(("matchAttribute", "distinctAttribute"), "~.FullyQualifiedName"),
    "DeviceRequest": {"allocationMode": _MODE},
    "DeviceRequestAllocationResult": {"shareID": _UID, "consumedCapacity": _QUANTITIES},
    "DeviceSubRequest": {"allocationMode": _MODE},
    "DeviceTaint": {"effect": _EFFECT},
    "DeviceToleration": {"operator": "~.DeviceTolerationOperator", "effect": _EFFECT},
    "ExactDeviceRequest": {"allocationMode": _MODE},
    "NodeAllocatableResourceMapping": {"capacityKey": "~.QualifiedName"},
    "NodeSelectorRequirement": {"operator": "v1.NodeSelectorOperator"},
    "ObjectMeta": {"uid": _UID},
    "OwnerReference": {"uid": _UID},
    "PodSpec": {
        "dnsPolicy": "v1.DNSPolicy",
        "preemptionPolicy": "v1.PreemptionPolicy",
        "restartPolicy": "v1.RestartPolicy",
    },
    "ResourceClaimConsumerReference": {"uid": _UID},
    "ResourceRequirements": dict.fromkeys(("limits", "requests"), "v1.ResourceList"),
    "Taint": {"effect": "v1.TaintEffect"},
    "Toleration": {"operator": "v1.TolerationOperator", "effect": "v1.TaintEffect"},
}
_EMBEDDED: Mapping[str, str] = dict.fromkeys(
    ("DeviceAllocationConfiguration", "DeviceClaimConfiguration", "DeviceClassConfiguration"), "DeviceConfiguration"
)
_OWN = ("requests", "source")


def go_type(struct: str, field: str) -> str:
    """The type of a field, where it has a name of its own; `struct` is the full name of the schema."""
    package, short = struct.split(".")[-2:]
    return _TYPES.get(short, {}).get(field, "").replace("~", package)


def go_path(struct: str, field: str) -> str:
    """The field as it stands in the path of a message."""
    embedded = _EMBEDDED.get(struct)
    return f"{embedded}.{field}" if embedded and field not in _OWN else field
