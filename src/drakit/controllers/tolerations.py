"""How long a taint is tolerated. Pure.

In:  a NoExecute taint and the tolerations that may concern it; since when the taint is there.
Out: seconds, or none for ever; and the moment when they are over. Seconds that lead out of the calendar end with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from drakit.api.text.times import parse_time
from drakit.base.taints import DeviceTaint, DeviceToleration, Taint, Toleration, tolerates

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def seconds_on_node(tolerations: Iterable[Toleration], taint: Taint) -> int | None:
    """Of several that match, the shortest counts; one without seconds counts only alone."""
    matching = [each.toleration_seconds for each in tolerations if tolerates(each, taint)]
    limited = [seconds for seconds in matching if seconds is not None]
    return None if matching and not limited else min(limited, default=0)


def seconds_on_device(tolerations: Iterable[DeviceToleration], taint: DeviceTaint) -> int | None:
    """Of several that match, the shortest counts; one without seconds counts before them all."""
    matching = [each.toleration_seconds for each in tolerations if tolerates(each, taint)]
    limited = [seconds for seconds in matching if seconds is not None]
    return None if len(limited) < len(matching) else min(limited, default=0)


def moment_after(since: str | None, seconds: int) -> datetime:
    """When that many seconds after `since` are over. Without `since`, that is long ago."""
    start = parse_time(since) if since else _LONG_AGO
    left = (_END_OF_TIME - start).total_seconds()
    return start + timedelta(seconds=max(seconds, 0)) if seconds < left else _END_OF_TIME
