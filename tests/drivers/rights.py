"""The manifests of what drivers may do."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def rights_of(name: str) -> Path:
    return Path(str(files("drakit.drivers"))) / "data" / "rbac" / f"{name}.yaml"
