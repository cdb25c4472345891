"""Compare quantities with the recorded ones: `python -m tests.conformance.quantity FILE…`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drakit.base.quantity import Quantity, QuantityError
from tests.conformance.vectors import read_vectors, report

DATA = Path(__file__).parent / "data" / "quantity.jsonl.gz"


def answer(text: str) -> dict[str, str]:
    """What drakit makes of `text`, in the words of the vectors."""
    try:
        quantity = Quantity.parse(text)
    except QuantityError as error:
        return {"error": str(error)}
    return {
        "canonical": str(quantity),
        "format": str(quantity.format),
        "value": str(quantity.value),
        "milli": str(quantity.milli_value),
    }


def agrees(case: Mapping[str, Any]) -> bool:
    """Whether drakit gives all that was recorded; `milli` is recorded only where it fits 64 bits."""
    recorded = {key: value for key, value in case.items() if key not in ("id", "in")}
    ours = answer(case["in"])
    return recorded == {key: ours.get(key) for key in recorded} and ("error" in recorded) == ("error" in ours)


def main(files: list[str]) -> int:
    return report(read_vectors(files or [str(DATA)]), agrees)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
