"""Small requests that would cost much, and large ones that would cost more: answered, and nobody else waits."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from drakit.apiserver.admission import compilation as compiling
from drakit.base.gates import FeatureGates
from drakit.validation import judge_expression
from tests.apiserver.calls import CLAIMS, CLASSES, PODS, SLICES, on_loop, serving
from tests.builders.documents import claim_document, class_document, pod_document, slice_document

Plain = dict[str, Any]
EXPRESSION = "spec.devices.requests[0].exactly.selectors[0].cel.expression"


def selecting(*expressions: str) -> Plain:
    made = claim_document("bomb")
    selectors = [{"cel": {"expression": text}} for text in expressions]
    made["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = selectors
    return made


LOOPS = "".join(f"[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x{n}, " for n in range(8)) + "true" + ")" * 8
GROWTH = '"a".replace("a", "{0}").replace("b", "{0}").replace("b", "{0}").size() > 1'.format("b" * 3000)
COSTLY = {
    "parens": ("(" * 4000 + "true" + ")" * 4000, "FieldValueInvalid"),
    "lists": ("[" * 4000 + "]" * 4000 + " == []", "FieldValueInvalid"),
    "sums": ("1" + " + 1" * 2000 + " == 1", "FieldValueInvalid"),
    "fields": ("device" + ".a" * 4000, "FieldValueInvalid"),
    "loops": (LOOPS, "FieldValueForbidden"),
    "growth": (GROWTH, "FieldValueForbidden"),
    "regex": ('device.driver.matches("((a{100}){100}){100}")', "FieldValueInvalid"),
    "length": ("true || " * 2000, "FieldValueTooLong"),
}


@pytest.mark.parametrize(("expression", "reason"), COSTLY.values(), ids=COSTLY)
def test_an_expression_that_would_cost_too_much_is_refused_at_its_field(expression: str, reason: str) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            answer = await api.create(CLAIMS, selecting(expression))
            assert answer.code == 422
            causes = [(cause["field"], cause["reason"]) for cause in answer.body["details"]["causes"]]
            assert causes == [(EXPRESSION, reason)]

    run()


@on_loop
async def test_a_pattern_that_backtracks_elsewhere_is_nothing_to_fear() -> None:
    async with serving() as api:
        evil = '"' + "a" * 4000 + '".matches("(a+)+$") || device.driver.matches("' + "(a|aa)+" * 200 + '")'
        assert (await api.create(CLAIMS, selecting(evil))).code == 201


@on_loop
async def test_who_sends_expressions_without_end_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    others_were_served = threading.Event()

    def patient(text: str, gates: FeatureGates) -> object:
        assert others_were_served.wait(10), "the whole server waits for this expression"
        return judge_expression(text, gates)

    monkeypatch.setattr(compiling, "judge_expression", patient)
    async with serving() as api:
        long = [f"device.driver == '{number}'" + " || true" * 500 for number in range(3)]
        selectors = [{"cel": {"expression": text}} for text in long]
        for path, sent in (
            (CLAIMS, selecting(*long)),
            (CLASSES, {**class_document("bomb", "true"), "spec": {"selectors": selectors}}),
        ):
            others_were_served.clear()
            task = asyncio.ensure_future(api.create(path, sent))
            for _ in range(20):
                assert (await api.get(CLAIMS)).code == 200
            assert not task.done()
            others_were_served.set()
            assert (await task).code == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CLAIMS, claim_document("a", labels={f"!{n}": "" for n in range(20000)})),
        (CLAIMS, claim_document("a", finalizers=[f"!{n}" for n in range(20000)])),
        (
            CLAIMS,
            claim_document("a", ownerReferences=[{"kind": "Pod", "name": "p", "uid": "u", "controller": True}] * 5000),
        ),
        (SLICES, {**slice_document("a", "dev-0"), "spec": {"devices": [{"name": "d"}] * 20000}}),
        (PODS, pod_document("a", {"tolerations": [{"key": "!", "operator": "x"}] * 20000})),
    ],
    ids=["labels", "finalizers", "owners", "devices", "tolerations"],
)
def test_an_answer_is_no_larger_than_what_can_be_sent(path: str, body: Plain) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            answer = await api.create(path, body)
            assert answer.code == 422
            assert len(json.dumps(answer.body)) < 3_000_000

    run()
