"""Tables: what `kubectl get` shows.

In:  objects as plain data, and the time.
Out: Table objects with upstream's columns; ages as Kubernetes prints them.
"""

from drakit.apiserver.tables.ages import age, human_duration
from drakit.apiserver.tables.rendering import (
    METADATA,
    NONE,
    OBJECT,
    check_include_object,
    columns,
    partial_metadata,
    render,
)

__all__ = [
    "METADATA",
    "NONE",
    "OBJECT",
    "age",
    "check_include_object",
    "columns",
    "human_duration",
    "partial_metadata",
    "render",
]
