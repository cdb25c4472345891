"""Names of resources: those of nodes (`cpu`, `hugepages-2Mi`), extended ones (`example.com/gpu`), those of quotas."""

from __future__ import annotations

from drakit.base import names

_NATIVE_DOMAIN = "kubernetes.io/"
_REQUESTS = "requests."
HUGE_PAGES = "hugepages-"

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_COUNTED = (
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
_LIMITED = tuple(f"limits.{name}" for name in _COMPUTE)
_REQUESTED = tuple(f"{_REQUESTS}{name}" for name in (*_COMPUTE, "storage"))
QUOTA_NAMES = frozenset((*_COMPUTE, *_LIMITED, *_REQUESTED, *_COUNTED))
STANDARD_NAMES = QUOTA_NAMES | {"storage"}
WHOLE_NUMBERS = frozenset(_COUNTED)


def is_native(name: str) -> bool:
    """Whether nodes have it by themselves: a bare name, or one of Kubernetes' own domain."""
    return "/" not in name or _NATIVE_DOMAIN in name


def is_extended(name: str) -> bool:
    """Whether it is a good name for something that devices or device plugins provide, and that quotas can count."""
    if is_native(name) or name.startswith(_REQUESTS):
        return False
    return not names.check_qualified_name(_REQUESTS + name)


def is_whole_number(name: str) -> bool:
    """Whether only whole amounts make sense: counted objects and extended resources."""
    return name in WHOLE_NUMBERS or is_extended(name)


def is_standard(name: str) -> bool:
    return name in STANDARD_NAMES or is_huge_pages(name)


def is_quota_standard(name: str) -> bool:
    return name in QUOTA_NAMES or is_huge_pages(name)


def is_huge_pages(name: str) -> bool:
    return name.removeprefix(_REQUESTS).startswith(HUGE_PAGES)


def is_container_standard(name: str) -> bool:
    return name in _COMPUTE or name.startswith(HUGE_PAGES)
