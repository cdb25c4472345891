"""Every recorded node flow, played on the node agent; and that the harness would see a difference."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.node import DATA, main
from tests.conformance.nodeflows.play import load, play
from tests.conformance.nodeflows.rules import normal_event, normal_state, titles

Plain = dict[str, Any]
FLOWS = {flow["id"]: flow for flow in load(DATA)}
BY_RECORDING = {flow["recording"]: flow for flow in FLOWS.values()}


@pytest.mark.parametrize("name", FLOWS)
def test_the_agent_does_what_the_kubelet_did(name: str) -> None:
    assert play(FLOWS[name]) == []


def _rows(flow: Plain, saw: str, **about: Any) -> list[Plain]:
    return [
        step
        for step in flow["steps"]
        if step.get("saw") == saw and all(step.get(key) == value for key, value in about.items())
    ]


def _other_claim(flow: Plain) -> None:
    _rows(flow, "driver call", method="NodePrepareResources")[0]["request"]["claims"][0]["name"] = "another"


def _other_device(flow: Plain) -> None:
    _rows(flow, "CRI call", method="CreateContainer")[0]["CDI_devices"] = ["another.example.com/dev=x"]


def _other_message(flow: Plain) -> None:
    for event in _rows(flow, "event", reason="Killing"):
        event["message"] = "Stopping nothing"


def _other_state(flow: Plain) -> None:
    _rows(flow, "pod status")[-1]["status"]["phase"] = "Failed"


def _other_order(flow: Plain) -> None:
    call = _rows(flow, "driver call", method="NodeUnprepareResources")[0]
    flow["steps"].remove(call)
    stop = _rows(flow, "CRI call", method="StopContainer")[0]
    flow["steps"].insert(flow["steps"].index(stop), call)


def _one_call_more(flow: Plain) -> None:
    call = _rows(flow, "driver call", method="NodePrepareResources")[0]
    flow["steps"].insert(flow["steps"].index(call), copy.deepcopy(call))


def _unknown_action(flow: Plain) -> None:
    """What was seen after it makes it no better known."""
    call = _rows(flow, "driver call", method="NodePrepareResources")[0]
    flow["steps"].insert(flow["steps"].index(call), {"t": call["t"], "do": "whistle a tune"})


@pytest.mark.parametrize(
    "change",
    [
        _other_claim,
        _other_device,
        _other_message,
        _other_state,
        _other_order,
        _one_call_more,
        _unknown_action,
    ],
)
def test_a_recording_that_says_something_else_differs(change: Callable[[Plain], None]) -> None:
    flow = copy.deepcopy(BY_RECORDING["h15"])
    change(flow)
    assert play(flow) != []


def test_what_a_refusal_says_of_the_node_is_compared_to_the_last_digit() -> None:
    words = "Node didn't have enough resource: cpu, requested: 1000000, used: 100, capacity: 2000"
    told = ("Pod/large", "Warning", "OutOfcpu", words, "")
    state = {"phase": "Failed", "reason": "OutOfcpu", "message": f"Pod was rejected: {words}", "conditions": []}
    assert normal_event(told) == told
    assert normal_state(state)["message"] == state["message"]


def test_the_command_counts_and_names_what_differs(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    good, bad = copy.deepcopy(BY_RECORDING["h17"]), copy.deepcopy(BY_RECORDING["h17"])
    bad["id"] = "node-bad"
    _other_message(bad)
    monkeypatch.setattr("tests.conformance.nodeflows.play._PATIENCE", 5.0)
    file = tmp_path / "flows.jsonl"
    file.write_text("\n".join(json.dumps(flow) for flow in (good, bad)))
    assert main([str(file), "--quiet"]) == 1
    assert capsys.readouterr().out.split() == ["agree", "1", "of", "2", "node-bad"]


def test_every_deliberate_difference_has_a_reason_and_none_names_a_flow() -> None:
    for title, why in titles():
        assert title
        assert why
        assert "node-" not in title + why
