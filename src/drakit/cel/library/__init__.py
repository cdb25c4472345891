"""The function libraries, and the environment that Kubernetes makes of them."""

from __future__ import annotations

from functools import cache

from drakit.cel.checking.declarations import Environment, collected
from drakit.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    list_of,
    map_of,
    optional_of,
)
from drakit.cel.library import (
    conversions,
    formats,
    insertion,
    lists,
    network,
    optionals,
    patterns,
    quantities,
    semvers,
    sets,
    standard,
    strings,
    times,
    urls,
)
from drakit.cel.syntax import macros

_TYPES = (BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, TYPE, UINT)


@cache
def kubernetes() -> Environment:
    """All libraries that Kubernetes 1.36 gives to every expression; no variables."""
    functions = (
        *standard.FUNCTIONS,
        *conversions.FUNCTIONS,
        *times.FUNCTIONS,
        *patterns.FUNCTIONS,
        *strings.FUNCTIONS,
        *lists.KUBERNETES,
        *lists.EXTENSION,
        *sets.FUNCTIONS,
        *optionals.FUNCTIONS,
        *insertion.FUNCTIONS,
        *urls.FUNCTIONS,
        *network.FUNCTIONS,
        *formats.FUNCTIONS,
        *quantities.FUNCTIONS,
        *semvers.FUNCTIONS,
    )
    types = {t.name: t for t in (*_TYPES, list_of(DYN), map_of(DYN, DYN), optional_of(DYN), network.IP, network.CIDR)}
    return Environment(functions=collected(functions), macros=macros.ALL, types=types)


__all__ = ["kubernetes"]
