"""The plugin DefaultTolerationSeconds.

In:  pods that are created or updated.
Out: pods that tolerate a node that is not ready or unreachable for five minutes, unless they say otherwise.
"""

from __future__ import annotations

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import AdmissionPlugin, ObjectChange
from drakit.base.wellknown import NOT_READY_TAINT, UNREACHABLE_TAINT

_SECONDS = 300
_BAD_NODES = (NOT_READY_TAINT, UNREACHABLE_TAINT)


class DefaultTolerationSeconds(AdmissionPlugin):
    name = "DefaultTolerationSeconds"

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:  # noqa: ARG002
        return kind.kind == "Pod" and not subresource

    async def admit(self, change: ObjectChange) -> None:
        if change.kind.kind != "Pod" or change.subresource or change.new is None:
            return
        given: list[Plain] = change.new["spec"].get("tolerations") or []
        added = [_toleration(key) for key in _BAD_NODES if not given or not any(_covers(each, key) for each in given)]
        if added:
            change.own("spec")["tolerations"] = [*given, *added]


def _toleration(key: str) -> Plain:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}


def _covers(toleration: Plain, key: str) -> bool:
    return toleration.get("key", key) in (key, "") and toleration.get("effect", "") in ("NoExecute", "")
