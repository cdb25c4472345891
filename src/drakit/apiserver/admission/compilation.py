"""Expressions without end: compiled where nobody waits for them.

In:  an object that somebody sends.
Out: nothing, but what is in it of expressions is judged already when the rules ask for it.

A claim of 3 MB can hold hundreds of long expressions, all different: half a minute of work. One thread does it, one
expression after the other, beside the requests that have none.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from drakit.apiserver.admission.chain import Change
from drakit.base.gates import FeatureGates
from drakit.validation import EXPRESSION_LENGTH, judge_expression

AT_ONCE = 4096
"""Characters that are compiled in place: a few hundredths of a second."""
_KINDS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "DeviceTaintRule")
_UNCHANGING = ("ResourceClaim", "ResourceClaimTemplate")
_LONGEST_LIST = 32
"""Of requests and of selectors: what is longer is refused unseen."""
_CONTAINERS = (dict, list)
_ASIDE = ThreadPoolExecutor(max_workers=1, thread_name_prefix="drakit-selectors")


async def compile_aside(change: Change, gates: FeatureGates) -> None:
    if change.kind.kind not in _KINDS or change.subresource or (change.old and change.kind.kind in _UNCHANGING):
        return
    spec = change.document.get("spec")
    if not _may_have_expressions(spec):
        return
    texts: set[str] = set()
    _collect(spec, texts)
    if sum(map(len, texts)) <= AT_ONCE:
        return
    loop = asyncio.get_running_loop()
    for text in texts:
        await loop.run_in_executor(_ASIDE, judge_expression, text, gates)


def _may_have_expressions(spec: Any) -> bool:
    """The text of most specs shows at once that there is none."""
    try:
        return b'"cel"' in msgspec.json.encode(spec)
    except (ValueError, OverflowError):  # raw JSON with a number or text that fits no encoder
        return True


def _collect(value: Any, texts: set[str]) -> None:
    """Every `cel.expression` that a rule would look at."""
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
