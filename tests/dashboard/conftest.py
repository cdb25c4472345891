from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dashboard.browser import CHROMIUM, Desk


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    if not CHROMIUM:
        pytest.skip("there is no chromium on PATH")
    made = Desk()
    made.run(made.open())
    try:
        yield made
    finally:
        made.close()
