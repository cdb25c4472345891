"""The guide's example is read as the guide says."""

from __future__ import annotations

import re
from pathlib import Path

from drakit.scheduler.config import DynamicResourcesArgs, load_configuration
from drakit.scheduler.config.names import DEFAULTS, ELSEWHERE, GATED

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "scheduler-configuration.md"


def test_the_example_is_valid() -> None:
    text = GUIDE.read_text()
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert example is not None
    packing = load_configuration(example[1]).profile("packing-scheduler")
    assert packing is not None
    assert packing.args["DynamicResources"] == DynamicResourcesArgs(
        filter_timeout=5.0, binding_timeout=120.0, device_strategy="binpack", preemption=True
    )
    assert packing.weight("DynamicResources") == 10
    assert "NodeResourcesBalancedAllocation" not in packing.at("score")


def test_the_guide_names_every_plugin() -> None:
    text = GUIDE.read_text()
    assert [name for name in (*(name for name, _ in DEFAULTS), *GATED, *ELSEWHERE) if name not in text] == []
