"""Inputs that broke something once, and the first few of each target."""

from __future__ import annotations

from random import Random

import pytest

from tests.builders.loop import on_loop
from tests.fuzz.targets import TARGETS, running

SEEDS = [(name, f"0/{name}/{number}") for name in TARGETS for number in range(20)]
"""What a run of the command with seed 0 begins with."""


@pytest.mark.parametrize("name", TARGETS)
def test_the_first_inputs_break_nothing(name: str) -> None:
    @on_loop
    async def run() -> None:
        async with running() as api:
            for target, seed in SEEDS:
                if target == name:
                    await TARGETS[name](Random(seed), api)

    run()


def test_a_kubeconfig_whose_base64_is_not_ascii_is_refused_in_words(tmp_path: object) -> None:
    from drakit.base.errors import UsageError
    from drakit.client.access.entries import KubeconfigEntry

    with pytest.raises(UsageError, match="no base64"):
        KubeconfigEntry(tmp_path, "users[0].user", {"client-key-data": "é"}).data("client-key")  # type: ignore[arg-type]
