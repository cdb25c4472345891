"""Kubernetes Dynamic Resource Allocation, whole, in Python.

The names below are the front door for library users: `docs/library.md` has an example of each. They are imported when
they are first asked for, so that `import drakit` and `drakit --version` stay quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drakit.base.gates import FeatureGates
    from drakit.controlplane import start_server
    from drakit.library import (
        allocate,
        compile_selector,
        explain_pod,
        lint_manifests,
        read_manifests,
        try_selector,
        validate_manifests,
        what_if,
    )

__version__ = "0.1.0"

__all__ = [
    "FeatureGates",
    "__version__",
    "allocate",
    "compile_selector",
    "explain_pod",
    "lint_manifests",
    "read_manifests",
    "start_server",
    "try_selector",
    "validate_manifests",
    "what_if",
]


_ELSEWHERE = {"FeatureGates": "drakit.base.gates", "start_server": "drakit.controlplane"}


def __getattr__(name: str) -> Any:
    """A public name, from the module that has it. No name may be that of a room: an imported room would hide it."""
    if name not in __all__:
        raise AttributeError(f"module 'drakit' has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "drakit.library")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
