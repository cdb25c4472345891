"""The plugin ResourceQuota: charge objects to the quotas of their namespace.

In:  creations, and updates that may use more than before, after validation.
Out: usage charged to the status of every quota that counts the object, or to none of them; a refusal with the amounts.

Requests of one namespace take turns in this process. Against other processes each write compares and swaps; after a
conflict the quota is read again. If a later quota has no room, earlier charges are refunded. A charge remains if the
object is then not stored: the usage controller counts objects and corrects it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from drakit.api import DeviceClass, Pod, ResourceClaim, ResourceQuota
from drakit.api.objects.plain import Plain, from_plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.criteria.catalogues import Presence
from drakit.apiserver.failures import ApiError, internal
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import Conflict, ObjectStore, prefix_of
from drakit.base.quantity import ZERO, Quantity
from drakit.base.structs import Model
from drakit.quota import class_names, covers, excess, increase, owner_name, tracked, unknown, unspecified, usage

TRIES = 16
_QUOTA = known_kind("v1", "ResourceQuota")
_CLASS = known_kind("resource.k8s.io/v1", "DeviceClass")
_CLAIM = known_kind("resource.k8s.io/v1", "ResourceClaim")
_POD = known_kind("v1", "Pod")

_GROWING = (("ResourceClaim", ""), ("Pod", "resize"), ("Pod", ""))
"""Kinds and subresources whose updates can use more."""

Amounts = Mapping[str, Quantity]


class ResourceQuotas(AdmissionPlugin):
    name = "ResourceQuota"

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._presence = Presence(objects, _QUOTA)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        """Whether such a change can use more than before: creations, and a few updates."""
        if not kind.namespaced or kind.plural == "events":
            return False
        if operation == CREATE:
            return not subresource
        return operation == UPDATE and (kind.kind, subresource) in _GROWING

    def passes_over(self, change: ObjectChange) -> bool:
        return self._presence.is_empty or not _handles(change)

    async def validate(self, change: ObjectChange) -> None:
        if not await self._presence.is_in(change.namespace):
            return
        # Weak values: the lock of a namespace lives as long as somebody holds or awaits it.
        turn = self._turns.get(change.namespace)
        if turn is None:
            turn = self._turns[change.namespace] = asyncio.Lock()
        async with turn:
            await self._charge(change)

    async def _charge(self, change: ObjectChange) -> None:
        """Charge every quota. After a conflict only the quotas that are not charged yet are tried again."""
        demand = await self._demand(change)
        charged: dict[str, Amounts] = {}
        for _ in range(TRIES):
            quotas = [each for each in await self._quotas(change.namespace) if each.name not in charged]
            try:
                wanted = {quota.name: demand.of(quota) for quota in quotas}
            except ApiError:
                # One quota has no room: what was charged to others before is given back.
                await self._refund(change.namespace, charged)
                raise
            if change.dry_run or await self._write(quotas, wanted, charged):
                return
        await self._refund(change.namespace, charged)
        raise internal(f"quotas of namespace {change.namespace} are changing too fast to be charged")

    async def _write(
        self, quotas: list[StoredObject], wanted: Mapping[str, Amounts], charged: dict[str, Amounts]
    ) -> bool:
        """Charge quotas until a conflict. Note the charged ones in `charged`; return whether all are."""
        for quota in quotas:
            if wanted[quota.name]:
                try:
                    await self._add(quota, wanted[quota.name])
                except Conflict:
                    return False
            charged[quota.name] = wanted[quota.name]
        return True

    async def _add(self, quota: StoredObject, amounts: Amounts, sign: int = 1) -> None:
        used = dict(quota.document["status"].get("used") or {})
        for name, amount in amounts.items():
            before = Quantity.parse(used[name]) if name in used else ZERO
            used[name] = str(before + amount * sign)
        status = {**quota.document["status"], "used": dict(sorted(used.items()))}
        await self._objects.update(quota, {**quota.document, "status": status})

    async def _refund(self, namespace: str, charged: Mapping[str, Amounts]) -> None:
        for name, amounts in charged.items():
            for _ in range(TRIES if amounts else 0):
                quota = await self._objects.find(_QUOTA, namespace, name)
                if quota is None:
                    break
                try:
                    await self._add(quota, amounts, -1)
                except Conflict:
                    continue
                break

    async def _quotas(self, namespace: str) -> list[StoredObject]:
        page = await self._objects.store.list(prefix_of(_QUOTA, namespace))
        return [self._objects.from_record(_QUOTA, record) for record in page.records]

    async def _demand(self, change: ObjectChange) -> _Demand:
        kind, replaced = change.kind, change.old if change.operation == UPDATE else None
        new = _model(kind, change.document)
        old = _model(kind, replaced.document) if replaced is not None else None
        classes = await self._classes(new)
        owner = await self._owner(new) if isinstance(new, ResourceClaim) else None
        after, before = (
            usage(kind.plural, kind.group, each, classes.get, owner=owner) if each is not None else {}
            for each in (new, old)
        )
        return _Demand(change, new, old, after, before, list(classes.values()))

    async def _classes(self, obj: Model) -> dict[str, DeviceClass]:
        """The device classes of a claim. Its spec is immutable, so old and new claim have the same ones."""
        found: dict[str, DeviceClass] = {}
        for name in class_names(obj) if isinstance(obj, ResourceClaim) else ():
            stored = await self._objects.find(_CLASS, "", name)
            if stored is not None and isinstance(stored.typed, DeviceClass):
                found[name] = stored.typed
        return found

    async def _owner(self, claim: ResourceClaim) -> Pod | None:
        """The pod for whose extended resources the claim was made; None if there is none, or it has another claim."""
        name, uid = owner_name(claim)
        stored = await self._objects.find(_POD, claim.metadata.namespace, name) if name else None
        if stored is None or stored.uid != uid or not isinstance(stored.typed, Pod):
            return None
        made = stored.typed.status.extended_resource_claim_status
        if made is not None:
            return stored.typed if made.resource_claim_name == claim.metadata.name else None
        return None if await self._has_claim(claim, uid) else stored.typed

    async def _has_claim(self, claim: ResourceClaim, uid: str) -> bool:
        """Whether the pod already has another claim for its extended resources: its own usage covers only one."""
        page = await self._objects.store.list(prefix_of(_CLAIM, claim.metadata.namespace))
        others = (self._objects.from_record(_CLAIM, record).typed for record in page.records)
        return any(
            isinstance(each, ResourceClaim) and owner_name(each)[1] == uid and each.metadata.name != claim.metadata.name
            for each in others
        )


class _Demand:
    """The usage of a change, and what of it to charge to a quota."""

    def __init__(
        self,
        change: ObjectChange,
        new: Model,
        old: Model | None,
        after: Amounts,
        before: Amounts,
        classes: list[DeviceClass],
    ) -> None:
        self._change = change
        self._new = new
        self._old = old
        self._after = after
        self._before = before
        self._classes = classes

    def of(self, stored: StoredObject) -> Amounts:
        """The amounts to charge. Refuse if they exceed the quota, or if the object does not say what it uses."""
        quota, kind = stored.typed, self._change.kind
        if not isinstance(quota, ResourceQuota) or not covers(quota, self._new):
            return {}
        names = [name for name in quota.status.hard if tracked(name, kind.plural, kind.group, self._classes)]
        if not names:
            return {}
        if why := unspecified(quota, self._new) or unknown(quota, names):
            raise self._change.forbid(why)
        # A quota that did not count the old object is charged the full usage of the new one.
        counted = self._before if self._old is not None and covers(quota, self._old) else {}
        added = increase(self._after, counted)
        if over := excess(quota, added):
            raise self._change.forbid(str(over))
        return {name: amount for name, amount in added.items() if name in quota.status.hard}


def _handles(change: ObjectChange) -> bool:
    """Whether to charge at all. An update of a pod counts only if it moves the pod to another quota scope."""
    if change.new is None:
        return False
    if change.operation == UPDATE and change.kind is _POD and not change.subresource:
        return _deadline(change.new) != _deadline(change.old.document if change.old else {})
    return True


def _deadline(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has a deadline: the scopes Terminating and NotTerminating depend on that."""
    return (pod.get("spec") or {}).get("activeDeadlineSeconds") is not None


def _model(kind: Kind, document: Plain) -> Model:
    return from_plain(kind.model, document)
