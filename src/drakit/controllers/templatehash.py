"""A short, stable name for the content of a pod template. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.base.names import SUFFIX_ALPHABET


def template_hash(template: Mapping[str, Any], collisions: int = 0) -> str:
    """Equal templates have equal hashes; `collisions` leads to another one when a name is taken by something else."""
    text = msgspec.json.encode(template, order="deterministic")
    number = zlib.crc32(text + (b"#%d" % collisions if collisions else b""))
    return "".join(SUFFIX_ALPHABET[int(digit)] for digit in str(number))
