"""Where sockets and state are, within what a socket's path may have: 107 bytes.

In:  the kubelet's directories, the driver's name, and the instance (a pod's uid) when two may overlap.
Out: paths as a kubelet expects them; shortened, but still told apart, where they would not fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from drakit.base.errors import UsageError

LIMIT = 107
"""`sun_path` has 108 bytes, one of them for the end."""
REGISTRATION = "-reg.sock"
SHORTENED = 20
"""As many letters of a driver's name are left in a path that would be too long."""


class PluginPaths(msgspec.Struct, frozen=True, kw_only=True):
    service: Path
    registration: Path
    state: Path
    """The driver's own directory."""

    @property
    def records(self) -> Path:
        return self.state / "claims"

    @property
    def metadata(self) -> Path:
        return self.state / "dra-device-metadata"

    @property
    def calls_lock(self) -> Path:
        return self.state / "serialize.lock"

    @property
    def shared_pools(self) -> Path:
        return self.state / "shared-pools.json"

    @property
    def publishing_lock(self) -> Path:
        return self.state / "publish.lock"


def plugin_paths(driver: str, *, plugin_dir: Path, registry_dir: Path, instance: str = "") -> PluginPaths:
    """Raise UsageError when the directories alone are too long."""
    state = plugin_dir / driver
    part = f"-{instance}" if instance else ""
    short = digest(f"{driver}/{instance}")
    service = _first_that_fits(
        "--plugin-dir", [state / f"dra{part}.sock", state / f"dra-{short}.sock", plugin_dir / f"{short}.sock"]
    )
    registration = _first_that_fits(
        "--registry-dir",
        [registry_dir / f"{driver}{part}{REGISTRATION}", registry_dir / f"{driver[:SHORTENED]}-{short}{REGISTRATION}"],
    )
    return PluginPaths(service=service, registration=registration, state=state)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _first_that_fits(flag: str, candidates: Sequence[Path]) -> Path:
    for path in candidates:
        if len(str(path).encode()) <= LIMIT:
            return path
    raise UsageError(f"{flag}: {candidates[-1]} is longer than the {LIMIT} bytes that a socket's path may have")
