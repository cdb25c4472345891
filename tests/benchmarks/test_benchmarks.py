"""The tools that measure: what they compute, and that the programs they start do start."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks import anchors, apiserver, scaling, soak
from benchmarks.__main__ import available, main


@pytest.mark.parametrize("power", [0.0, 0.2, 1.0])
def test_the_slope_is_the_power_by_which_a_cost_grows(power: float) -> None:
    sizes = (1, 10, 100, 1_000)
    assert scaling.slope(sizes, [0.003 * size**power for size in sizes]) == pytest.approx(power)


def test_an_anchor_tells_how_many_times_better_we_are() -> None:
    rate = anchors.Anchor(80, "pods/s", 10, lambda: 0)
    time = anchors.Anchor(22, "ms", 20, lambda: 0)
    assert rate.ratio(400) == 5
    assert time.ratio(11) == 2


def window(number: int, *, cpu: float = 1.0, memory: float = 100.0) -> soak.Window:
    return soak.Window(number, 100, 1.0, cpu, 0.05, memory, 1000)


def test_a_soak_sees_what_grows_and_does_not_count_its_warm_up() -> None:
    flat = [window(0, memory=10), *(window(number) for number in range(1, 9))]
    assert set(soak.growth(flat).values()) == {1.0}
    growing = [window(number, cpu=1 + number / 4, memory=100 + 10 * number) for number in range(9)]
    found = soak.growth(growing)
    assert found["CPU per pod"] > soak.GROWTH["CPU per pod"]
    assert found["memory"] > soak.GROWTH["memory"]


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such"]) == 2
    assert "unknown benchmark no-such; known are" in capsys.readouterr().err
    assert "soak" not in available()


def test_the_server_process_that_benchmarks_call_answers(tmp_path: Path) -> None:
    async def version(port: int) -> bytes:
        connection = await apiserver.Connection.open(port)
        try:
            return await connection.call("GET", "/version", b"")
        finally:
            connection.close()

    tokens = tmp_path / "tokens.csv"
    tokens.write_text(apiserver.TOKENS)
    with apiserver.http_server("--ephemeral", "--token-auth-file", str(tokens)) as port:
        assert json.loads(asyncio.run(version(port)))["major"] == "1"


def test_a_piece_of_the_scaling_table_keeps_the_rows_of_other_pieces(tmp_path: Path) -> None:
    path = tmp_path / "scaling.md"
    rows = scaling.rows_of("nodes", {100: 0.003, 5_000: 0.003})
    path.write_text("\n".join(f"| {' | '.join(row)} |" for row in rows))
    assert rows[-1][-1] == "0.00, below 0.2"
    assert scaling.known(path) == {"nodes": {100: pytest.approx(0.003), 5_000: pytest.approx(0.003)}}
    assert scaling.known(tmp_path / "none.md") == {}


def test_an_anchor_without_a_figure_of_kubernetes_has_a_target_of_its_own() -> None:
    none = anchors.Anchor(0, "pods/s", 500, lambda: 0)
    assert none.ratio(450) == 450
    assert anchors.shown(none) == ("places none", "500 pods/s")
    assert anchors.shown(anchors.Anchor(79, "pods/s", 10, lambda: 0)) == ("79 pods/s", "10 ×")
