"""`drakit top` on a terminal, of a cluster that runs: it shows it, hears keys, and ends in good order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("textual", reason="drakit top needs the extra `top`")

from tests.builders.terminals import on_terminal
from tests.e2e.commands import run
from tests.e2e.processes import Running, apiserver, command

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def up() -> Iterator[Running]:
    with apiserver("--ephemeral", "--nodes", "2", name="up") as running:
        yield running


def test_it_shows_the_nodes_of_a_cluster_and_q_ends_it(up: Running) -> None:
    environment = {"TERM": "xterm-256color"}
    with on_terminal("top", "--kubeconfig", str(up.kubeconfig), env=environment, rows=30, columns=100) as terminal:
        terminal.until("node-2")
        terminal.type("q")
        assert terminal.ended() == 0
    assert "··" in terminal.text
    assert "Pending pods" in terminal.text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [((), 2, "needs a terminal"), (("-f", "examples/demo-cluster"), 2, "needs a terminal"), (("--nope",), 2, "--nope")],
)
def test_what_cannot_be_shown_is_told_in_a_line(arguments: tuple[str, ...], code: int, said: str) -> None:
    found, output = run(command(*arguments, name="top"))
    assert (found, "Traceback" in output) == (code, False)
    assert said in output
