"""The guide tells of the rules as they are."""

from __future__ import annotations

import re
from pathlib import Path

from drakit.conformance import RULES

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "conformance.md"


def test_the_guide_has_every_rule_with_its_title_and_reason_in_order() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) \| (.*) \|$", GUIDE.read_text(), re.MULTILINE)
    assert rows == [(each.id, each.title, each.why) for each in RULES]
