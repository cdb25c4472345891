"""Numbers that are large, and tokens that were forged: an answer in words, at once."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from drakit.api.text.jsontext import parse_json
from drakit.api.text.problems import Malformed
from tests.apiserver.calls import CLAIMS, PODS, on_loop, serving
from tests.builders.documents import claim_document, pod_document

QUANTITIES = ("1e308", "9" * 100_000, "1e999999999", "1e-999999999", "0." + "0" * 100_000 + "1", "1E" + "9" * 10_000)


@pytest.mark.parametrize("quantity", QUANTITIES, ids=range(len(QUANTITIES)))
def test_a_quantity_of_any_length_is_read_or_refused(quantity: str) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            requests = {"requests": {"cpu": quantity}}
            spec = {"containers": [{"name": "c", "image": "i", "resources": requests}]}
            assert (await api.create(PODS, pod_document("a", spec))).code in (201, 400, 422)

    run()


@pytest.mark.parametrize("number", ["9" * 100_000, "1e" + "9" * 100_000, "NaN", "-Infinity"])
def test_a_number_that_nobody_can_hold_is_a_bad_request(number: str) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            body = json.dumps(pod_document("a", {"priority": "P"})).replace('"P"', number).encode()
            assert (await api.send("POST", PODS, body)).code == 400

    run()


def test_a_bad_number_is_not_looked_for_number_by_number() -> None:
    """What is looked at is the strings before it and the number itself, and no other number."""
    looked_at = 0
    plain = re.finditer

    def counted(pattern: str, text: str) -> Iterator[re.Match[str]]:
        nonlocal looked_at
        for found in plain(pattern, text):
            looked_at += 1
            yield found

    text = '["NaN", ' + "1, " * 10_000 + "NaN]"
    with patch.object(re, "finditer", counted), pytest.raises(Malformed) as caught:
        parse_json(text)
    assert caught.value.position.column == text.rindex("NaN") + 1
    assert looked_at == 2


@pytest.mark.parametrize("revision", ["9" * 20, "9" * 5000, "-1", "1e5", "٣"])
def test_a_revision_that_is_none_is_a_bad_request(revision: str) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            await api.create(CLAIMS, claim_document("a"))
            for path, query in ((CLAIMS, {}), (f"{CLAIMS}/a", {}), (CLAIMS, {"watch": "true"})):
                assert (await api.get(path, resourceVersion=revision, **query)).code == 400
            changed = {"metadata": {"resourceVersion": revision, "labels": {"a": "b"}}}
            assert (await api.patch(f"{CLAIMS}/a", changed)).code in (400, 409)

    run()


FORGED: tuple[object, ...] = (
    {"v": "meta.k8s.io/v1", "rv": 10**30, "start": "a"},
    {"v": "meta.k8s.io/v1", "rv": 10**18, "start": "a"},
    {"v": "meta.k8s.io/v1", "rv": -7, "start": "a"},
    {"v": "meta.k8s.io/v1", "rv": 1, "start": "../../secrets/"},
    {"v": "x", "rv": 1, "start": "a"},
    {"rv": "1"},
    [],
)


@pytest.mark.parametrize("token", FORGED, ids=range(len(FORGED)))
def test_a_forged_continue_token_is_refused(token: object) -> None:
    @on_loop
    async def run() -> None:
        text = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
        async with serving() as api:
            answer = await api.get(CLAIMS, limit="1", **{"continue": text})
            assert answer.code in (400, 410, 504)  # 504: a revision that is still to come

    run()
