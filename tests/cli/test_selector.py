"""`drakit selector`: its answers, its exit codes, and its prompt."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from drakit.cli.output.prompts import completion
from tests.builders.commandline import Ran
from tests.docs.blocks import ROOT

Run = Callable[..., Ran]
DEMO = ("-f", str(ROOT / "examples" / "demo-cluster"))


def test_matches_and_reasons_are_a_table(command_line: Run) -> None:
    ran = command_line("selector", 'device.attributes["gpu.example.com"].model == "h100"', "--class", "gpu", *DEMO)
    assert ran.code == 0
    assert ran.out.splitlines()[0].startswith("6 of 10 devices match; it costs at most")
    assert 'model is "a100"' in ran.out


def test_a_wrong_expression_has_a_caret_and_is_bad_input(command_line: Run) -> None:
    ran = command_line("selector", "device.drver == 1", *DEMO)
    assert ran.code == 2
    assert ran.err == "error: line 1, column 7: undefined field 'drver'\n | device.drver == 1\n | ......^\n"
    assert 'device.attributes["gpu.example.com"].model: a100, h100' in ran.out


def test_values_of_parts_are_shown_for_a_device(command_line: Run) -> None:
    ran = command_line("selector", 'device.driver == "x"', "--device", "node-a/gpu-1", *DEMO)
    assert ran.code == 1
    assert '    device.driver = "gpu.example.com"' in ran.out


def test_json_has_it_all(command_line: Run) -> None:
    found = json.loads(command_line("selector", "true", *DEMO, "-o", "json").out)
    assert (found["matching"], found["maxCost"], found["costLimit"]) == (15, 0, 1000000)


def test_without_an_expression_lines_are_tried_one_after_the_other(command_line: Run) -> None:
    ran = command_line("selector", *DEMO, typed="device.driver ==\ntrue\n:attributes\n:quit\nfalse\n")
    assert ran.code == 0
    assert "15 of 15 devices match" in ran.out
    assert "0 of 15" not in ran.out
    assert "device.driver: fabric.example.com, gpu.example.com, nic.example.com" in ran.out
    assert "| ................^" in ran.err


def test_the_prompt_completes_names() -> None:
    words = ('device.attributes["a"].model', 'device.attributes["a"].mode', "device.driver")
    assert completion(words, "device.attributes", 0) == 'device.attributes["a"].mode'
    assert completion(words, "device.attributes", 1) == 'device.attributes["a"].model'
    assert completion(words, "device.attributes", 2) is None


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("true", "--class", "nope", *DEMO), 2, '"nope" not found'),
        (("true", "--device", "nope", *DEMO), 2, 'device "nope"'),
        (("true", "-f", "nowhere.yaml"), 2, "No such file"),
        (("true", "--master", "http://127.0.0.1:1"), 3, "Cannot connect"),
    ],
)
def test_what_cannot_be_tried_is_one_line_and_an_exit_code(
    command_line: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = command_line("selector", *words)
    assert ran.code == code
    assert said in ran.err
    assert (len(ran.err.splitlines()), ran.out) == (1, "")
