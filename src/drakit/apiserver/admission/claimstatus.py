"""Rights on parts of a claim's status.

In:  a status update that is otherwise allowed: the old claim and the new one.
Out: field errors. Allocation and reservations need rights on `resourceclaims/binding`; the entries of a driver in
     `status.devices` need rights on `resourceclaims/driver` by the driver's name, with a verb that says whether the
     user runs on the node of the allocation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from drakit.api.exchange import User
from drakit.apiserver.admission.chain import ObjectChange
from drakit.apiserver.admission.compilation import precompile, uncompiled_expressions
from drakit.apiserver.admission.criteria.worker import Worker
from drakit.apiserver.admission.rules import WriteRules
from drakit.apiserver.auth.authorization import Attributes, Authorizer, Decision, refusal
from drakit.apiserver.auth.identities import NODE_NAME, is_account
from drakit.apiserver.storage.objects import StoredObject
from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden
from drakit.base.gates import FeatureGates

_GROUP = "resource.k8s.io"
_ALLOCATION = Path("status") / "allocation"
_DEVICES = Path("status") / "devices"
_OPAQUE = ("data", "parameters")
_KEY = ("driver", "pool", "device", "shareID")


class ClaimStatusRules:
    """The rules of all objects, and in addition those for the status of claims. All errors come in one answer.

    Long expressions of claims and classes are compiled before, by `worker`.
    """

    def __init__(self, rules: WriteRules, authorizer: Authorizer, gates: FeatureGates, worker: Worker) -> None:
        self._rules = rules
        self._authorizer = authorizer
        self._gates = gates
        self._worker = worker
        self.drop_disabled = rules.drop_disabled

    def check(self, change: ObjectChange) -> Awaitable[Sequence[FieldError]]:
        if change.kind.group != _GROUP:
            return self._rules.check(change)
        if change.kind.kind == "ResourceClaim" and change.subresource == "status" and change.old is not None:
            return self._check_status(change, change.old)
        return self._check_expressions(change)

    async def _check_expressions(self, change: ObjectChange) -> Sequence[FieldError]:
        # Before the rules run, which compile what is not in the cache on the event loop.
        if texts := uncompiled_expressions(change):
            await precompile(texts, self._gates, self._worker)
        return await self._rules.check(change)

    async def _check_status(self, change: ObjectChange, old: StoredObject) -> Sequence[FieldError]:
        found = await self._rules.check(change)
        kind = change.kind
        asked = Attributes(
            user=change.user, verb=change.verb, group=kind.group, version=change.version, resource=kind.plural,
            subresource=change.subresource, namespace=change.namespace, name=change.name,
        )  # fmt: skip
        refused = await check_status(self._authorizer, self._gates, asked, change.document, old.document)
        return [*refused, *found]


async def check_status(
    authorizer: Authorizer, gates: FeatureGates, asked: Attributes, new: Mapping[str, Any], old: Mapping[str, Any]
) -> list[FieldError]:
    """`asked` are the attributes of the update itself; `new` and `old` are claims."""
    if not gates.enabled("DRAResourceClaimGranularStatusAuthorization"):
        return []
    status, before = new.get("status") or {}, old.get("status") or {}
    found = []
    if _changes_binding(status, before):
        found += await _check_binding(authorizer, asked)
    # Without an allocation the server drops the devices itself: that needs no right.
    if status.get("allocation") and gates.enabled("DRAResourceClaimDeviceStatus"):
        found += await _check_devices(authorizer, asked, status, before)
    return found


def _changes_binding(status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    return any(_differ(status.get(part) or None, before.get(part) or None) for part in ("allocation", "reservedFor"))


def _differ(one: Any, two: Any) -> bool:
    if one is None or two is None:
        return one is not two
    # Cheap comparison first: mostly the parts are equal, and then often the same object.
    return bool(one != two) and bool(bare(one) != bare(two))


async def _check_binding(authorizer: Authorizer, asked: Attributes) -> list[FieldError]:
    """Check the right on `resourceclaims/binding`. It has no name and no namespace: it holds for all claims."""
    wanted = msgspec.structs.replace(asked, subresource="binding", namespace="", name="")
    problem = await _problem(authorizer, wanted)
    if problem is None:
        return []
    need = f'resource="resourceclaims/binding", verb="{asked.verb}" permission'
    return [forbidden(_ALLOCATION, f"changing status.allocation or status.reservedFor requires {need}: {problem}")]


async def _check_devices(
    authorizer: Authorizer, asked: Attributes, status: Mapping[str, Any], before: Mapping[str, Any]
) -> list[FieldError]:
    devices, devices_before = status.get("devices") or (), before.get("devices") or ()
    drivers = changed_drivers(devices, devices_before) if devices or devices_before else ()
    if not drivers:
        return []
    # A driver on the node of the allocation needs the weaker right, any other one the stronger.
    verbs = [f"arbitrary-node:{asked.verb}"]
    if runs_on(asked.user, allocated_node(status.get("allocation") or {})):
        verbs.insert(0, f"associated-node:{asked.verb}")
    found = []
    for driver in drivers:
        problems = []
        for verb in verbs:
            wanted = msgspec.structs.replace(asked, verb=verb, subresource="driver", name=driver)
            problem = await _problem(authorizer, wanted)
            if problem is None:
                break
            problems.append(problem)
        else:
            need = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" permission'
            found.append(forbidden(_DEVICES, f"changing status.devices requires {need}: {problems[0]}"))
    return found


async def _problem(authorizer: Authorizer, wanted: Attributes) -> str | None:
    result = await authorizer.authorize(wanted)
    if result.decision is Decision.ALLOW:
        return None
    return refusal(wanted, result.reason).status.message


def changed_drivers(devices: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any]]) -> list[str]:
    """The drivers with an added, changed or removed entry, sorted."""
    left = {_key(each): each for each in before}
    drivers = set()
    for each in devices:
        # Removed when it is found: a second entry of the same device counts as added.
        if bare(left.pop(_key(each), None)) != bare(each):
            drivers.add(str(each.get("driver", "")))
    return sorted(drivers | {str(each.get("driver", "")) for each in left.values()})


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry.get(part, "") for part in _KEY)


def bare(value: Any) -> Any:
    """A value for comparison: nulls and empty lists are dropped, because they mean the same as nothing."""
    if isinstance(value, Mapping):
        return {
            name: each if name in _OPAQUE else bare(each)
            for name, each in value.items()
            if each is not None and each != []
        }
    return [bare(each) for each in value] if isinstance(value, list) else value


def allocated_node(allocation: Mapping[str, Any]) -> str:
    """The node that the allocation's selector names; empty for any other selector."""
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions") or len(terms[0].get("matchFields") or []) != 1:
        return ""
    field = terms[0]["matchFields"][0]
    values = field.get("values") or []
    if field.get("key") != "metadata.name" or field.get("operator") != "In" or len(values) != 1:
        return ""
    return str(values[0])


def runs_on(user: User, node: str) -> bool:
    """Whether the user is a service account whose token belongs to a pod on this node."""
    if not node or not is_account(user.name) or names.check_dns_subdomain(node):
        return False
    return tuple(user.extra.get(NODE_NAME, ())) == (node,)
