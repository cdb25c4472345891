"""The code of the guide runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "apiserver.md"


def test_the_example_in_the_guide_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    asyncio.run(names["main"]())
