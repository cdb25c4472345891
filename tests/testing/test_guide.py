"""Every block of the guide for tests is run as it stands there, by pytest with the plugin, in a file of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "testing.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), flags=re.MULTILINE | re.DOTALL)
POD = BLOCKS[0].partition("\n\n\n")[0]
"""What the others take from the first."""


def test_every_test_of_the_guide_passes(pytester: pytest.Pytester) -> None:
    files = {f"test_{number}": f"{POD}\n\n{block}" for number, block in enumerate(BLOCKS)}
    pytester.makepyfile(**files)
    result = pytester.runpytest_inprocess("-q", "-p", "drakit.testing.plugin", "-p", "no:cacheprovider")
    tests = re.findall(r"^(?:async )?def test_", "\n".join(BLOCKS), flags=re.MULTILINE)
    result.assert_outcomes(passed=len(tests))
    assert tests
