"""Which boot of the machine this is: what was prepared in an earlier one is gone."""

from __future__ import annotations

from pathlib import Path

from drakit.base.errors import Unavailable

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_boot_id(path: Path = BOOT_ID) -> str:
    """A text that the kernel makes anew at every boot. Raise Unavailable."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise Unavailable(f"cannot read the boot id: {error}") from None
