"""Selectors of kinds that own pods: well formed, not empty, and those of the template's labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api.objects.plain import from_plain
from drakit.base.fields import FieldError, Path, invalid, required
from drakit.base.labels import LabelSelector, from_struct
from drakit.validation.fields.documentrules import check_selector_labels

_MISMATCH = "`selector` does not match template `labels`"
MALFORMED = "invalid label selector"


def check_pod_selector(
    spec: Mapping[str, Any], path: Path, noun: str, *, malformed: str | None = MALFORMED
) -> Iterator[FieldError]:
    """`noun` is what the kind is called where its selector is empty.

    `malformed` is what is said of the whole selector when a part is wrong; None says nothing, nor that it is missing.
    """
    selector: Mapping[str, Any] | None = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    where = path / "selector"
    if selector is None:
        if malformed is not None:
            yield required(where)
    else:
        wrong = list(check_selector_labels(selector, where))
        yield from wrong
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid(where, {}, f"empty selector is invalid for {noun}")
            return
        if wrong:
            if malformed is not None:
                yield invalid(where, _complete(selector), malformed)
            return
    if selector is None or not from_struct(from_plain(LabelSelector, selector)).matches(labels or {}):
        yield invalid(path / "template" / "metadata" / "labels", labels, _MISMATCH)


def _complete(selector: Mapping[str, Any]) -> dict[str, Any]:
    """As Kubernetes shows it: the parts of a requirement in their order, the first two even where they are empty."""
    expressions = [
        {"key": each.get("key", ""), "operator": each.get("operator", ""),
         **({"values": each["values"]} if each.get("values") else {})}
        for each in selector.get("matchExpressions") or ()
    ]  # fmt: skip
    labels = {"matchLabels": selector["matchLabels"]} if selector.get("matchLabels") else {}
    return {**labels, **({"matchExpressions": expressions} if expressions else {})}
