"""Evaluate an expression both ways, fast and counted, and insist that they agree."""

from __future__ import annotations

from typing import Any

from drakit.cel import DYN, CompileError, EvalError, Results, Value, as_eval_error, compile_program, kubernetes, show


class Variables:
    """One attribute per variable."""

    def __init__(self, **variables: Value) -> None:
        self.__dict__.update(variables)


def _same(value: Value) -> Value:
    return value


def _error(error: Exception, _: Any) -> EvalError:
    known = as_eval_error(error)
    assert known is not None, repr(error)
    return known


_RESULTS = Results(True, False, _same, _error)


def value_of(text: str, **variables: Value) -> Value:
    """The value, or the EvalError; variables are dynamic."""
    environment = kubernetes().extended(variables=dict.fromkeys(variables, DYN))
    program = compile_program(text, environment)
    counted = program.metered(variables).value
    function = program.function({name: name for name in variables}, _RESULTS)
    assert function is not None, f"{text}: no function"
    fast = function(Variables(**variables))
    assert show(fast) == show(counted), f"{text}: fast {show(fast)}, counted {show(counted)}"
    return counted


def shown(text: str, **variables: Value) -> str:
    """The value as text; `error: ...` for an error."""
    return show(value_of(text, **variables))


def faults(text: str, **variables: Value) -> list[str]:
    """What keeps a text from compiling: `line:column message`, or nothing."""
    try:
        compile_program(text, kubernetes().extended(variables=dict.fromkeys(variables, DYN)))
    except CompileError as error:
        return [f"{issue.line}:{issue.column} {issue.message}" for issue in error.issues]
    return []
