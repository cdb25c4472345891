"""The plugin PodGroupWorkloadExists: the Workload and template that a PodGroup refers to must exist.

In:  creations of PodGroups.
Out: a refusal when the Workload, or the template in it, does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import ObjectStore

_GROUP_VERSION = "scheduling.k8s.io/v1alpha2"
_POD_GROUP = known_kind(_GROUP_VERSION, "PodGroup")
_WORKLOAD = known_kind(_GROUP_VERSION, "Workload")


class PodGroupWorkloadExists(AdmissionPlugin):
    name = "PodGroupWorkloadExists"

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind is _POD_GROUP and operation == CREATE and not subresource

    async def validate(self, change: ObjectChange) -> None:
        if change.kind is not _POD_GROUP or change.operation != CREATE or change.subresource or change.new is None:
            return
        reference = ((change.new.get("spec") or {}).get("podGroupTemplateRef") or {}).get("workload")
        if not reference:
            return
        workload, template = reference.get("workloadName", ""), reference.get("podGroupTemplateName", "")
        found = await self._objects.find(_WORKLOAD, change.namespace, workload)
        if found is None:
            raise change.forbid(f'PodGroup rejected: Workload "{workload}" not found')
        if template not in _templates(found.document):
            raise change.forbid(f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{workload}"')


def _templates(workload: Mapping[str, Any]) -> set[str]:
    return {each["name"] for each in (workload.get("spec") or {}).get("podGroupTemplates") or ()}
