"""The plugin TaintNodesByCondition: nobody is scheduled to a node before it has said that it is ready.

In:  nodes that are created.
Out: nodes with the taint `not-ready`, which the node lifecycle controller takes back.

It is off by default, other than upstream: a node that is made by hand for a test would wait for a controller.
"""

from __future__ import annotations

from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, AdmissionPlugin, ObjectChange
from drakit.base.wellknown import NOT_READY_TAINT

_EFFECT = "NoSchedule"


class TaintNodesByCondition(AdmissionPlugin):
    name = "TaintNodesByCondition"
    default = False

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind.kind == "Node" and operation == CREATE and not subresource

    async def admit(self, change: ObjectChange) -> None:
        if change.new is None:
            return
        change.new.setdefault("spec", {})
        taints = change.own("spec").get("taints") or []
        if not any((each.get("key"), each.get("effect")) == (NOT_READY_TAINT, _EFFECT) for each in taints):
            change.own("spec")["taints"] = [*taints, {"key": NOT_READY_TAINT, "effect": _EFFECT}]
