"""Count steps of the interpreter: what a piece of work costs, whatever else the machine does.

In:  anything that runs between `with Steps() as steps:` and its end, in one thread.
Out: `steps.total`, and the steps of each function itself, without those that it calls.

A step is one opcode. What C code does is not counted: a loop that moves into C takes its steps along, but not its time.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, Self

from benchmarks.report import RESULTS

_ROOT = RESULTS.parent.parent


class Steps:
    """Frames that are open already when it begins (the loop's) are not counted: only what is called from then on."""

    def __init__(self) -> None:
        self._by_code: Counter[CodeType] = Counter()

    def __enter__(self) -> Self:
        sys.settrace(self._called)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.settrace(None)

    @property
    def total(self) -> int:
        return self._by_code.total()

    def dearest(self, count: int) -> Sequence[tuple[str, int]]:
        """The functions that take most, by place and name."""
        return [(_named(code), steps) for code, steps in self._by_code.most_common(count)]

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        by_code, code = self._by_code, frame.f_code

        def step(_frame: FrameType, event: str, _argument: Any) -> Any:
            if event == "opcode":
                by_code[code] += 1
            return step

        return step


def _named(code: CodeType) -> str:
    return f"{code.co_filename.removeprefix(f'{_ROOT}/')}:{code.co_firstlineno} {code.co_qualname}"
