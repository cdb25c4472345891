"""Whether a CRI runtime gives containers their CDI devices.

In:  the runtime's name, version and status.
Out: None, or why not and what to do.

A runtime that does not know the field of the CDI ids drops it without a word, and the pod would run without its device.
No call asks for it, so it is told from name, version and configuration:

containerd   reads the field since 1.7.2; 1.7 only with `enable_cdi = true`; since 2.0 unless it is switched off. Its
             verbose status has the configuration: `enableCDI` in the document `config`.
CRI-O        reads the field since 1.28.0, always.
others       are not known; `assume_cdi` says that this one does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from drakit.nodeagent.runtimes.contract import RuntimeVersion

_CONTAINERD_FIRST, _CONTAINERD_DEFAULT = (1, 7, 2), (2, 0, 0)
_CRIO_FIRST = (1, 28, 0)
_HOW = "set enable_cdi = true in its CRI plugin's configuration and restart it"


def why_without_cdi(version: RuntimeVersion, info: Mapping[str, str], *, assume_cdi: bool = False) -> str | None:
    if assume_cdi:
        return None
    name, number = version.name, version_number(version.version)
    if name == "containerd":
        return _containerd(version.version, number, _enabled(info))
    if name in ("cri-o", "crio"):
        if number >= _CRIO_FIRST:
            return None
        return f"CRI-O {version.version} does not read CDI device ids; use 1.28.0 or newer"
    return f"it is not known whether {name} {version.version} reads CDI device ids; say that it does if it does"


def version_number(text: str) -> tuple[int, int, int]:
    """`v1.7.2-rc.1`, `1.6.20~ds1`; what cannot be read counts as older than everything."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


def _containerd(text: str, number: tuple[int, int, int], enabled: bool | None) -> str | None:
    if number < _CONTAINERD_FIRST:
        return f"containerd {text} does not read CDI device ids; use 1.7.2 or newer"
    if enabled is False:
        return f"containerd {text} has CDI switched off; {_HOW}"
    if enabled is None and number < _CONTAINERD_DEFAULT:
        return f"containerd {text} does not say that CDI is switched on, and by default it is not; {_HOW}"
    return None


def _enabled(info: Mapping[str, str]) -> bool | None:
    try:
        value = json.loads(info.get("config", "{}")).get("enableCDI")
    except (ValueError, AttributeError):
        return None
    return value if isinstance(value, bool) else None
