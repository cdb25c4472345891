"""Events: old ones, which have counts and two times, and new ones, which say who reports what was done.

In:  the event with the names of the core group, whichever group it came by; errors have these names too.
Out: errors. An event that comes by events.k8s.io must be a new one; the core group takes both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api import Partial
from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, required
from drakit.validation.fields.documentrules import check_name
from drakit.validation.fields.metadata import IMMUTABLE, is_key

Fields = Mapping[str, Any]
_NAMESPACE = Path("involvedObject.namespace")
_NAMESPACES_OF_OTHERS = ("default", "kube-system")
"""Where events about objects without a namespace may be."""
_LONGEST = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_UNSET = ("firstTimestamp", "lastTimestamp", "count", "source")
_STAYS = (
    "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime",
    "action", "related",
)  # fmt: skip


def check_event(obj: Partial[Any], *, new: bool, creates: bool = True) -> Iterator[FieldError]:
    """`new`: it came by events.k8s.io. What an update leaves as it was is not judged again."""
    event = obj.document
    yield from _check_any(event, obj.view.metadata.namespace, "reportingController" if new else "reportingComponent")
    if new and creates:
        if event.get("series") is not None:
            yield from _check_series(event["series"])
        if not event.get("eventTime"):
            yield required(Path("eventTime"))
        if event.get("type") not in ("Normal", "Warning"):
            yield invalid(Path("type"), "", f"has invalid value: {event.get('type') or ''}")
        for name in _UNSET:
            if event.get(name):
                yield invalid(Path(name), "", "needs to be unset")


def check_event_update(new: Partial[Any], old: Partial[Any]) -> Iterator[FieldError]:
    """What an update by events.k8s.io may not change: all but the series."""
    now, before = new.document, old.document
    if now.get("series") is not None and now["series"] != before.get("series"):
        yield from _check_series(now["series"])
    for name, shown in (
        *((each, each) for each in _STAYS),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ):
        if (now.get(name) or None) != (before.get(name) or None):
            empty = "" if isinstance(before.get(name), str) else None
            yield invalid(Path(shown), now.get(name, empty), IMMUTABLE)


def _check_any(event: Fields, namespace: str, reporter: str) -> Iterator[FieldError]:
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    if not event.get("eventTime"):
        if namespace != about and (about or namespace != "default"):
            yield invalid(_NAMESPACE, about, "does not match event.namespace")
        return
    if not about and namespace not in _NAMESPACES_OF_OTHERS:
        yield invalid(_NAMESPACE, about, "does not match event.namespace")
    by = event.get("reportingComponent") or ""
    if not by:
        yield required(Path(reporter))
    if not is_key(by):
        yield from check_name(by, names.check_qualified_name, Path(reporter))
    for name, most in _LONGEST.items():
        text = event.get(name) or ""
        if not text and name != "message":
            yield required(Path(name))
        if names.size(text) > most:
            yield invalid(Path(name), "", f"can have at most {most} characters")


def _check_series(series: Fields) -> Iterator[FieldError]:
    if (series.get("count") or 0) < 2:
        yield invalid(Path("series.count"), "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required(Path("series.lastObservedTime"))
