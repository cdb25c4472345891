"""How the simulated runtime's containers behave: read from the pod's annotations.

`drakit.dev/runs-for: 30s` lets every container run that long; `drakit.dev/runs-for: main=30s,helper=1h` says it by
container. `drakit.dev/exits-with` is the exit code after that time, `drakit.dev/stops-after` the time that a container
takes to end once it is asked to. Without annotations a container runs until it is stopped, and an init container
ends well at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from drakit.nodeagent.runtimes.contract import ContainerConfig, ContainerRole, RuntimeRefusal

RUNS_FOR = "drakit.dev/runs-for"
EXITS_WITH = "drakit.dev/exits-with"
STOPS_AFTER = "drakit.dev/stops-after"

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class Behaviour:
    runs_for: float | None = None
    """Seconds; None: until it is stopped."""
    exits_with: int = 0
    stops_after: float = 0.0


FOREVER = Behaviour()
AT_ONCE = Behaviour(runs_for=0.0)


def behaviour_of(annotations: Mapping[str, str], config: ContainerConfig) -> Behaviour:
    """Raises RuntimeRefusal, naming the annotation, for a value that cannot be read."""
    runs_for = _value(annotations, RUNS_FOR, config.name)
    exits_with = _value(annotations, EXITS_WITH, config.name)
    stops_after = _value(annotations, STOPS_AFTER, config.name)
    ends_alone = config.role is ContainerRole.INIT
    if runs_for is None and exits_with is None and stops_after is None:
        return AT_ONCE if ends_alone else FOREVER
    # An exit code without a time: the container ends with it at once.
    at_once = 0.0 if ends_alone or exits_with is not None else None
    return Behaviour(
        runs_for=at_once if runs_for is None else _seconds(RUNS_FOR, runs_for),
        exits_with=0 if exits_with is None else _exit_code(exits_with),
        stops_after=0.0 if stops_after is None else _seconds(STOPS_AFTER, stops_after),
    )


def _value(annotations: Mapping[str, str], key: str, container: str) -> str | None:
    """The part for this container, or the one without a name."""
    text = annotations.get(key)
    if text is None:
        return None
    general = None
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals:
            general = name
        elif name == container:
            return value
    return general


def _seconds(key: str, text: str) -> float:
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise _unreadable(key, text, "a time such as 30s, 1m30s or 500ms")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _exit_code(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 255:
        raise _unreadable(EXITS_WITH, text, "an exit code from 0 to 255")
    return int(text)


def _unreadable(key: str, text: str, expected: str) -> RuntimeRefusal:
    message = f'annotation {key}: "{text}" is not {expected}'
    return RuntimeRefusal(message, reason="CreateContainerConfigError")
