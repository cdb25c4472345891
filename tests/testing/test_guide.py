"""Every test of the guide for tests is run as it stands there, by pytest with the plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"


def test_every_test_of_the_guide_passes(pytester: pytest.Pytester) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)
    source = "\n\n".join(blocks)
    pytester.makepyfile(test_guide=source)
    result = pytester.runpytest_inprocess(
        "-q", "-p", "drakit.testing.plugin", "-p", "no:cacheprovider", "--durations=12"
    )
    result.assert_outcomes(passed=len(re.findall(r"^(?:async )?def test_", source, flags=re.MULTILINE)))
