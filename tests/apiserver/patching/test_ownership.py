"""Ownership of fields, held against a model that keeps a set of owners per key."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drakit.api.schemas.compiler import shape_of
from drakit.apiserver.failures import ApiError
from drakit.apiserver.patching import FieldTracker
from tests.apiserver.patching.tracked import update

V1 = "resource.k8s.io/v1"
NOW = "2030-01-01T00:00:00Z"
CLASSES = FieldTracker(V1, "DeviceClass")
LABELS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)
STEPS = st.lists(st.tuples(st.sampled_from(["apply", "force", "update"]), st.sampled_from("xyz"), LABELS), max_size=8)


class Model:
    """Labels and who owns them. An updater and an applier of the same name are two owners."""

    def __init__(self) -> None:
        self.labels: dict[str, str] = {}
        self.owners: dict[str, set[str]] = {}

    def apply(self, manager: str, labels: dict[str, str], *, force: bool) -> bool:
        """Whether it is done: unless forced, a value that others own must not change."""
        mine = f"Apply {manager}"
        taken = [key for key, value in labels.items() if self.labels.get(key, value) != value]
        if not force and any(self.owners[key] - {mine} for key in taken):
            return False
        for key in [key for key in self.labels if mine in self.owners[key] and key not in labels]:
            self._leave(key, mine)
        for key, value in labels.items():
            shared = self.owners.get(key, set()) if self.labels.get(key) == value else set()
            self.owners[key] = shared | {mine}
            self.labels[key] = value
        return True

    def _leave(self, key: str, manager: str) -> None:
        self.owners[key].discard(manager)
        if not self.owners[key]:
            del self.labels[key], self.owners[key]

    def update(self, manager: str, labels: dict[str, str]) -> None:
        for key in [key for key in self.labels if key not in labels]:
            del self.labels[key], self.owners[key]
        for key, value in labels.items():
            if self.labels.get(key) != value:
                self.owners[key] = {f"Update {manager}"}
            self.labels[key] = value


def labelled_class(labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": "c", **({"labels": labels} if labels else {})}
    return {"apiVersion": V1, "kind": "DeviceClass", "metadata": metadata}


def written(document: dict[str, Any]) -> dict[str, Any]:
    """The object as the server writes it: what is empty is left out."""
    result: dict[str, Any] = shape_of(V1, "DeviceClass").complete(document)
    return result


def owners_of(document: dict[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for entry in document["metadata"].get("managedFields", []):
        for element in entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {}):
            if element != ".":
                found.setdefault(element[2:], set()).add(f"{entry['operation']} {entry['manager']}")
    return found


def start(labels: dict[str, str] | None = None) -> dict[str, Any]:
    document = {**labelled_class(labels or {}), "spec": {"extendedResourceName": "a/b"}}
    stored = update(CLASSES, None, document, manager="creator", now=NOW)
    return {**stored, "metadata": {**stored["metadata"], "uid": "u"}}


def write(live: dict[str, Any], action: str, manager: str, labels: dict[str, str]) -> dict[str, Any] | None:
    """The object after; None if it was refused."""
    if action == "update":
        new = written({**live, "metadata": {**live["metadata"], "labels": labels}})
        return update(CLASSES, live, new, manager=manager, now=NOW)
    try:
        force = action == "force"
        return written(CLASSES.apply(live, labelled_class(labels), manager=manager, now=NOW, force=force))
    except ApiError:
        return None


@given(STEPS)
def test_any_sequence_of_writes_gives_the_owners_of_the_model(steps: list[tuple[str, str, dict[str, str]]]) -> None:
    live, model = start(), Model()
    for action, manager, labels in steps:
        done = True
        if action == "update":
            model.update(manager, labels)
        else:
            done = model.apply(manager, labels, force=action == "force")
        after = write(live, action, manager, labels)
        assert (after is not None) == done
        live = after or live
        assert live["metadata"].get("labels", {}) == model.labels
        assert owners_of(live) == model.owners


@given(LABELS, LABELS)
def test_an_apply_can_be_repeated_and_taken_back(before: dict[str, str], applied: dict[str, str]) -> None:
    live = start(before)
    once = CLASSES.apply(live, labelled_class(applied), manager="me", now=NOW, force=True)
    assert CLASSES.apply(once, labelled_class(applied), manager="me", now=NOW) == once
    gone = CLASSES.apply(once, labelled_class({}), manager="me", now=NOW)
    kept = {key: value for key, value in before.items() if applied.get(key, value) == value}
    assert (gone["metadata"].get("labels") or {}) == kept
