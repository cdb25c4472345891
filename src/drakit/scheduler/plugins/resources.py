"""Resources by their names: which of them the scheduler counts on a node, and which are extended resources."""

from __future__ import annotations

from drakit.base.names import check_qualified_name
from drakit.scheduler.framework.nodes import CPU, MEMORY

EPHEMERAL_STORAGE = "ephemeral-storage"
PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_HUGEPAGES = "hugepages-"
_VOLUMES = "attachable-volumes-"


def is_extended(name: str) -> bool:
    """Whether a device plugin or a driver provides it."""
    if "/" not in name or _NATIVE_DOMAIN in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not check_qualified_name(_QUOTA_PREFIX + name)


def is_scalar(name: str) -> bool:
    """Whether the scheduler counts it, in addition to cpu, memory and ephemeral storage. Others are not counted."""
    return name.startswith((_HUGEPAGES, _VOLUMES)) or _NATIVE_DOMAIN in name or is_extended(name)
