"""The guide of the example drivers names every driver and profile, and its example of a profile is one."""

from __future__ import annotations

import re
from pathlib import Path

from drakit.api import set_defaults
from drakit.drivers import DRIVERS, parse_profile, profile_names, profile_slices
from drakit.validation import validate_create
from tests.drivers.profiles import NOW

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "example-drivers.md").read_text()


def test_every_driver_and_profile_is_in_the_guide() -> None:
    told = set(re.findall(r"`([a-z0-9-]+)`", GUIDE))
    assert told.issuperset({*DRIVERS, *profile_names()})


def test_the_profile_in_the_guide_makes_two_cards() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    (slice_,) = profile_slices(parse_profile(text, source="guide"), "node-1")
    assert [each.name for each in slice_.spec.devices] == ["gpu-0", "gpu-1"]
    assert validate_create(set_defaults(slice_, NOW)) == ()
