"""What holds whatever comes: crowds at a quota, texts in the place of expressions, answers in the place of reviews."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.apiserver.admission.webhooks.reviews import ReviewInvalid, ReviewResponse, read_answer
from tests.apiserver.admission.objects import POLICIES, limit, policy, used
from tests.apiserver.admission.quota import COUNT, DEVICES, devices
from tests.apiserver.calls import CLAIMS, serving

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("uid", "allowed", "status", "patch", "patchType", "auditAnnotations", "warnings")
REVIEWS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.just("AdmissionReview") | JSON,
        "apiVersion": st.just("admission.k8s.io/v1") | JSON,
        "response": JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)),
    },
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4), max_size=12), st.integers(0, 15), st.integers(0, 8))
def test_what_is_used_is_what_was_let_in_and_nobody_is_sent_away_for_nothing(
    counts: list[int], most_devices: int, most_claims: int
) -> None:
    async def run() -> None:
        async with serving() as api:
            await limit(api, {DEVICES: str(most_devices)}, name="a")
            await limit(api, {COUNT: str(most_claims)}, name="b")
            asked = (api.create(CLAIMS, devices(f"c{index}", count)) for index, count in enumerate(counts))
            answers = await asyncio.gather(*asked)
            admitted = [count for count, answer in zip(counts, answers, strict=True) if answer.code == 201]
            refused = [count for count, answer in zip(counts, answers, strict=True) if answer.code == 403]
            assert len(admitted) + len(refused) == len(counts)
            assert (await used(api, "a"))[DEVICES] == str(sum(admitted))
            assert (await used(api, "b"))[COUNT] == str(len(admitted))
            assert sum(admitted) <= most_devices
            assert len(admitted) <= most_claims
            for count in refused:
                assert sum(admitted) + count > most_devices or len(admitted) + 1 > most_claims

    asyncio.run(run())


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30) | st.text("objectrqusvaibl.()[]{}?:!=<>+-*/%&|'\" 0123456789", max_size=60))
def test_no_text_in_the_place_of_an_expression_breaks_the_server(text: str) -> None:
    async def run() -> None:
        async with serving() as api:
            answer = await api.create(POLICIES, policy("p", {"expression": text, "messageExpression": text}))
            assert answer.code in (201, 400, 422), answer.body

    asyncio.run(run())


@settings(max_examples=300, deadline=None)
@given(REVIEWS.map(lambda review: json.dumps(review).encode()) | st.binary(max_size=40), st.booleans())
def test_whatever_a_webhook_sends_is_an_answer_or_is_none(data: bytes, mutating: bool) -> None:
    for version in ("v1", "v1beta1"):
        try:
            answer: Any = read_answer(data, version, "u", mutating=mutating)
            answer.operations()
        except ReviewInvalid:
            continue
        assert isinstance(answer, ReviewResponse)
        assert version == "v1beta1" or answer.uid == "u"
