"""Which kinds are served, in which versions.

In:  the registry of kinds, and `--runtime-config`.
Out: kinds by group, version and plural name; versions in the order in which clients should prefer them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from drakit.api.registry import KINDS, Kind, find_kind
from drakit.base.errors import UsageError

Served = Mapping[str, Mapping[str, Kind]]
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = {"alpha": 0, "beta": 1, None: 2}
_ALL = {"api/all": (0, 1, 2), "api/ga": (2,), "api/beta": (1,), "api/alpha": (0,)}
_BOOLEANS = {"true": True, "1": True, "": True, "false": False, "0": False}


def served_kinds(runtime_config: str = "") -> Served:
    """Group and version → plural → kind."""
    switched = _switches(runtime_config)
    served: dict[str, dict[str, Kind]] = {}
    for kind in KINDS:
        for version in kind.versions:
            if switched.get(kind.group_version(version), _by_stage(switched, version)):
                served.setdefault(kind.group_version(version), {})[kind.plural] = kind
    return dict(sorted(served.items(), key=lambda item: order_of(item[0])))


def known_kind(group_version: str, kind: str) -> Kind:
    """A kind that is always registered; KeyError is a mistake in the code."""
    found = find_kind(group_version, kind)
    if found is None:
        raise KeyError(f"{group_version} has no kind {kind}")
    return found


def order_of(group_version: str) -> tuple[str, int, int, int]:
    """Sort key: groups by name; in a group GA before beta before alpha, newer before older."""
    group, _, version = group_version.rpartition("/")
    found = _VERSION.fullmatch(version)
    if not found:
        return group, 1, 0, 0
    return group, -_STAGES[found[2]], -int(found[1]), -int(found[3] or 0)


def _switches(text: str) -> dict[str, bool]:
    known = {kind.group_version(version) for kind in KINDS for version in kind.versions} | set(_ALL)
    switches: dict[str, bool] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = part.partition("=")
        # `api/v1` and `apis/<group>/<version>` are upstream's spellings; without the prefix is accepted as well.
        name = name.removeprefix("apis/") if name not in _ALL else name
        name = "v1" if name == "api/v1" else name
        if name not in known:
            raise UsageError(
                f"--runtime-config: unknown group and version {name!r}; known are {', '.join(sorted(known))}"
            )
        if value not in _BOOLEANS:
            raise UsageError(f"--runtime-config: {name}={value}: expected true or false")
        switches[name] = _BOOLEANS[value]
    return switches


def _by_stage(switches: Mapping[str, bool], version: str) -> bool:
    found = _VERSION.fullmatch(version)
    stage = _STAGES[found[2]] if found else 2
    return all(value for name, value in switches.items() if stage in _ALL.get(name, ()))
