"""The Common Expression Language as Kubernetes configures it; nothing here knows of devices.

In:  the text of an expression and an Environment (`kubernetes()`, extended with the host's variables).
Out: a Program. It has the types and the worst-case cost. It evaluates fast, or step by step with the cost counted.

    text -> syntax (parser, macros) -> checking, validators -> cost -> evaluation (counted steps)
                                                                    -> generation (one Python function)
"""

from drakit.cel.checking.declarations import Environment, Function, Overload
from drakit.cel.checking.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    struct,
)
from drakit.cel.cost.sizes import Size
from drakit.cel.errors import BudgetExceeded, CelError, CompileError, EvalError, Issue
from drakit.cel.generation.functions import Results, as_eval_error
from drakit.cel.library import kubernetes
from drakit.cel.library.quantities import QUANTITY, QuantityValue, quantity_value
from drakit.cel.library.semvers import SEMVER, SemverValue
from drakit.cel.program import Metered, Program, compile_program
from drakit.cel.syntax.unparse import unparse
from drakit.cel.trace import TraceLine, show, trace
from drakit.cel.values import DefaultMap, Duration, Message, Optional, Timestamp, Uint, Value, matches, type_name

__all__ = [
    "ANY",
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "QUANTITY",
    "SEMVER",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "BudgetExceeded",
    "CelError",
    "CompileError",
    "DefaultMap",
    "Duration",
    "Environment",
    "EvalError",
    "Function",
    "Issue",
    "Message",
    "Metered",
    "Optional",
    "Overload",
    "Program",
    "QuantityValue",
    "Results",
    "SemverValue",
    "Size",
    "Timestamp",
    "TraceLine",
    "Type",
    "Uint",
    "Value",
    "as_eval_error",
    "compile_program",
    "kubernetes",
    "list_of",
    "map_of",
    "matches",
    "optional_of",
    "quantity_value",
    "show",
    "struct",
    "trace",
    "type_name",
    "unparse",
]
