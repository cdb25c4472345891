"""The worked example of docs/allocator.md runs, and prints what the page says."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "allocator.md"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", re.DOTALL)


def test_every_block_of_the_page_prints_what_stands_below_it() -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 5
    names: dict[str, Any] = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)
        assert printed.getvalue() == expected


def test_the_glossary_names_what_there_is() -> None:
    source = Path(__file__).parents[2] / "src" / "drakit" / "allocator"
    classes = {
        name for file in source.rglob("*.py") for name in re.findall(r"^class (\w+)", file.read_text(), re.MULTILINE)
    }
    glossary = PAGE.read_text().partition("## Glossary")[2]
    named = {
        name for row in glossary.splitlines()[4:] for name in re.findall(r"`(\w+)`", row.split("|")[1] if row else "")
    }
    assert named <= classes
    assert {"Inventory", "Plan", "Layout", "Ledger", "Usage"} <= named
