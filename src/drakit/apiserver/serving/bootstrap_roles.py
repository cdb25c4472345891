"""Write the default roles and bindings; fill aggregated roles.

In:  the store, at the start of a server; changes of cluster roles.
Out: every default object is in the store; each aggregated role has the rules of all roles that it selects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from drakit.api.objects.plain import from_plain
from drakit.api.objects.rbac import AggregationRule
from drakit.api.registry import Kind
from drakit.api.schemas.compiler import shape_of
from drakit.apiserver.auth.roles.bootstrap import completed, default_objects, kind_of
from drakit.apiserver.auth.roles.builders import Document
from drakit.apiserver.storage.objectstore import Conflict, KeyExists, prefix_of
from drakit.apiserver.verbs.context import ServerContext
from drakit.base import labels

_TRIES = 5
_ROUNDS = 8


async def write_defaults(context: ServerContext) -> None:
    """Write all default objects at the same time: a store on disk then flushes once for all of them."""
    await asyncio.gather(*(ensure(context, document) for document in default_objects(context.gates)))


async def ensure(context: ServerContext, wanted: Document) -> None:
    """Create an RBAC object, or add what it lacks."""
    kind, namespace, name = kind_of(wanted), wanted["metadata"].get("namespace", ""), wanted["metadata"]["name"]
    for _ in range(_TRIES):
        found = await context.objects.find(kind, namespace, name)
        try:
            if found is None:
                await context.objects.create(kind, namespace, _new(context, kind, wanted))
            elif (made := completed(wanted, found.document)) is not None:
                await context.objects.update(found, _shaped(kind, made))
        except (KeyExists, Conflict):
            continue  # another server was quicker
        return


def _new(context: ServerContext, kind: Kind, wanted: Document) -> Document:
    metadata = {**wanted["metadata"], "uid": context.new_uid(), "creationTimestamp": context.timestamp()}
    return _shaped(kind, {**wanted, "metadata": metadata})


def _shaped(kind: Kind, document: Document) -> Document:
    completed: dict[str, Any] = shape_of(kind.internal_version, kind.kind).complete(document)
    return completed


async def aggregate(context: ServerContext) -> None:
    """Bring every aggregated role up to date.

    An aggregated role may select another one, so this repeats until nothing changes. Roles that select each other come
    to rest as well, because each only collects rules.
    """
    for _ in range(_ROUNDS):
        if not await _aggregate_once(context):
            return


async def _aggregate_once(context: ServerContext) -> bool:
    kind = kind_of({"kind": "ClusterRole"})
    page = await context.objects.store.list(prefix_of(kind))
    roles = [context.objects.from_record(kind, record) for record in page.records]
    documents = [each.document for each in roles]
    changed = False
    for each in roles:
        rules = gathered(each.document, documents)
        if rules is None or same_rules(rules, each.document.get("rules") or []):
            continue
        changed = True
        try:
            await context.objects.update(each, _shaped(kind, {**each.document, "rules": rules}))
        except Conflict:
            continue
    return changed


def same_rules(rules: Sequence[Document], others: Sequence[Document]) -> bool:
    """Whether both have the same rules, in any order. By order, roles that select each other would never settle."""
    return len(rules) == len(others) and all(rule in others for rule in rules)


def gathered(role: Document, roles: Sequence[Document]) -> list[Document] | None:
    """The rules that an aggregated role should have, each once: those of all other roles that it selects."""
    if not role.get("aggregationRule"):
        return None
    wanted = from_plain(AggregationRule, role["aggregationRule"]).cluster_role_selectors
    selectors = [labels.from_struct(each) for each in wanted]
    rules: list[Document] = []
    for other in sorted(roles, key=lambda each: str(each["metadata"]["name"])):
        if other["metadata"]["name"] == role["metadata"]["name"]:
            continue
        if any(selector.matches(other["metadata"].get("labels") or {}) for selector in selectors):
            rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules
