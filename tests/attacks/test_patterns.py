"""Regular expressions in selectors: short texts that stand for large programs."""

from __future__ import annotations

import threading

import pytest

from drakit.apiserver.admission import compilation
from drakit.base.gates import FeatureGates
from drakit.cel.errors import EvalError
from drakit.cel.library import patterns
from drakit.cel.library.patterns import pattern, searcher
from drakit.validation import judge_expression
from tests.apiserver.calls import CLAIMS, on_loop, serving
from tests.builders.documents import claim_document


@pytest.mark.parametrize("text", ["[a-z]{1,1000}" * 10, r"\pL{1,100}", "(a{1,500}){1,500}", "a{999999999}"])
def test_a_pattern_that_stands_for_a_large_program_is_refused(text: str) -> None:
    with pytest.raises(EvalError, match="error parsing regexp"):
        pattern(text)


@pytest.mark.parametrize("text", [r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", "[a-z]{1,1000}", r"\pL{1,49}", "a{2,}"])
def test_ordinary_patterns_are_not(text: str) -> None:
    assert pattern(text) is pattern(text)


def test_patterns_are_remembered_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_KEPT", 10_000)
    monkeypatch.setattr(patterns, "_PATTERNS", patterns._Patterns())
    searches = [searcher(f"[a-z]{{1,990}}{number}") for number in range(20)]
    kept = patterns._PATTERNS._found
    assert 0 < len(kept) < 10
    assert sum(map(patterns._PATTERNS._weight, kept)) == patterns._PATTERNS._size <= 10_000
    # One that was forgotten is found again; expressions hold on to none that is large.
    assert searches[0]("abc0") is not None
    assert searches[0]("abc1") is None


@on_loop
async def test_expressions_with_many_patterns_are_compiled_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noted(text: str, gates: FeatureGates) -> object:
        seen.append(threading.current_thread().name.rpartition("_")[0])
        return judge_expression(text, gates)

    monkeypatch.setattr(compilation, "judge_expression", noted)
    many = " && ".join(f"device.driver.matches('[a-z]{{1,99}}{number}')" for number in range(20))
    assert len(many) < compilation.AT_ONCE
    sent = claim_document("a")
    sent["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": many}}]
    async with serving() as api:
        assert (await api.create(CLAIMS, sent)).code == 201
    assert seen == ["drakit-selectors"]
