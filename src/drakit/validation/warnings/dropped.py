"""Fields that go because their feature is off: which, and which switch would keep them.

In:  an object as it was sent, the object before, the switches.
Out: a warning per field that is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from drakit.api import Partial
from drakit.api.codec.documents import to_wire
from drakit.base.fields import Path
from drakit.base.gates import GATES, FeatureGates
from drakit.validation.disabled.objects import drop_disabled_fields
from drakit.validation.warnings.findings import FieldWarning
from drakit.validation.warnings.objects import MOST_WARNINGS, Object


def dropped_fields(sent: Object, old: Object | None, gates: FeatureGates) -> tuple[FieldWarning, ...]:
    """What `drop_disabled_fields` takes from `sent`, gate by gate."""
    return tuple(islice(_dropped(sent, old, gates), MOST_WARNINGS))


def _dropped(sent: Object, old: Object | None, gates: FeatureGates) -> Iterator[FieldWarning]:
    whole = _document(sent)
    for gate in (name for name in GATES if not gates.enabled(name)):
        kept = drop_disabled_fields(sent, old, FeatureGates(FeatureGates.all_on().on - {gate}))
        for path in _missing(whole, _document(kept), Path()) if kept is not sent else ():
            yield FieldWarning("dropped-field", path, f"dropped: the feature gate {gate} is off")


def _document(obj: Object) -> Mapping[str, Any]:
    return obj.document if isinstance(obj, Partial) else to_wire(obj)


def _missing(before: Any, after: Any, path: Path) -> Iterator[Path]:
    """The highest fields that `before` has and `after` has not."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name, value in before.items():
            if name in after:
                yield from _missing(value, after[name], path / name)
            elif value not in (None, [], {}, ""):
                yield path / name
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, two) in enumerate(zip(before, after, strict=True)):
            yield from _missing(one, two, path[index])
    elif before != after:
        yield path
