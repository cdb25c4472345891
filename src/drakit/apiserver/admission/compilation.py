"""Compile the long expressions of an object before validation needs them, in a thread.

In:  an object that is about to be validated.
Out: nothing. The compiled expressions are in the cache that validation asks.

A claim of 3 MB can hold hundreds of long expressions, all different: half a minute of work. One thread does it, one
expression after the other, so that other requests are answered meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from drakit.api.codec.specs import SPECS
from drakit.apiserver.admission.chain import ObjectChange
from drakit.apiserver.admission.criteria.worker import Worker
from drakit.base.gates import FeatureGates
from drakit.validation import EXPRESSION_LENGTH, judge_expression

AT_ONCE = 4096
"""Expressions of up to so many characters in all are compiled in place: a few hundredths of a second."""
_PATTERN_WEIGHT = 20
_KINDS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "DeviceTaintRule")
_UNCHANGING = ("ResourceClaim", "ResourceClaimTemplate")
_LONGEST_LIST = 32
"""Longer lists of requests and selectors are refused without a look at their expressions."""
_CONTAINERS = (dict, list)


def uncompiled_expressions(change: ObjectChange) -> set[str]:
    """The expressions of a change that take too long to be compiled in place."""
    texts: set[str] = set()
    if change.kind.kind not in _KINDS or change.subresource or (change.old and change.kind.kind in _UNCHANGING):
        return texts
    spec = change.document.get("spec")
    if _may_have_expressions(spec):
        _collect(spec, texts)
    return texts if sum(map(_weight, texts)) > AT_ONCE else set()


async def precompile(texts: Iterable[str], gates: FeatureGates, worker: Worker) -> None:
    for text in texts:
        await worker.call(partial(judge_expression, text, gates))


def _weight(text: str) -> int:
    """Characters; those of regular expressions count more: one of ten characters may take a hundredth of a second."""
    return len(text) * (_PATTERN_WEIGHT if "matches" in text or "find" in text else 1)


def _may_have_expressions(spec: Any) -> bool:
    """Whether `cel` stands in the text at all: a search in C spares most specs the walk."""
    text = SPECS.json_if_any(spec)
    return not text or b'"cel"' in text


def _collect(value: Any, texts: set[str]) -> None:
    """Collect every `cel.expression` that validation would compile."""
    if isinstance(value, dict):
        cel = value.get("cel")
        text = cel.get("expression") if isinstance(cel, dict) else None
        if isinstance(text, str) and len(text) <= EXPRESSION_LENGTH:
            texts.add(text)
        for child in value.values():
            if isinstance(child, _CONTAINERS):
                _collect(child, texts)
    elif isinstance(value, list) and len(value) <= _LONGEST_LIST:
        for child in value:
            _collect(child, texts)
