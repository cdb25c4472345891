"""The parts of requests and answers that every verb shares.

In:  selectors, conditions of a deletion; contents of answers.
Out: query parameters, bodies, plain documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api.exchange import Content, Document, OneObject, StatusContent
from drakit.base.errors import DecodeError
from drakit.client.failures import Answered, Conflict, Invalid

Selector = str | Mapping[str, str]
Query = tuple[tuple[str, str], ...]
_BRIEF = 100


def of_another(error: Invalid) -> Answered:
    """Conflict, if the server refused a patch for the uid of an earlier object of that name; else the error itself."""
    moved = error.causes and all(cause.field == "metadata.uid" for cause in error.causes)
    return Conflict(error.status) if moved else error


def selected(labels: Selector, fields: Selector) -> Query:
    query: Query = ()
    if labels:
        query += (("labelSelector", _selector(labels)),)
    if fields:
        query += (("fieldSelector", _selector(fields)),)
    return query


def _selector(selector: Selector) -> str:
    return selector if isinstance(selector, str) else ",".join(f"{name}={value}" for name, value in selector.items())


def delete_options(
    uid: str, resource_version: str, grace: int | None, propagation: str, dry_run: bool
) -> dict[str, Any]:
    required = {name: value for name, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if required:
        options["preconditions"] = required
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation:
        options["propagationPolicy"] = propagation
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def document_in(content: Content) -> dict[str, Any]:
    if isinstance(content, Document | OneObject):
        return dict(content.document)
    if isinstance(content, StatusContent):
        told: dict[str, Any] = msgspec.to_builtins(content.status)
        return told
    data = content.encode()
    try:
        document: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise DecodeError(f"the server's answer is no JSON object ({error}): {data[:_BRIEF]!r}") from None
    return document
