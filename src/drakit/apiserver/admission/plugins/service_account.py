"""The plugin ServiceAccount: give a pod its service account.

In:  pods that are created.
Out: pods with a service account that exists, a volume with its token, and its pull secrets. Mirror pods must not have a
     service account.

Off by default: it needs a controller that creates the account `default` in every namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.auth.nodes.graph import MIRROR
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.base import names
from drakit.base.clock import Clock

DEFAULT = "default"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
TOKEN_SECONDS = 3607
_VOLUME = "kube-api-access-"
_PAUSES = tuple(0.01 * 2**power for power in range(7))
_ACCOUNT = known_kind("v1", "ServiceAccount")
_CONTAINERS = ("initContainers", "containers")


class ServiceAccountAdmission(AdmissionPlugin):
    name = "ServiceAccount"
    default = False

    def __init__(self, objects: ObjectStore, random: Random, clock: Clock) -> None:
        self._objects = objects
        self._random = random
        self._clock = clock

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind.kind == "Pod" and operation == CREATE and not subresource

    async def admit(self, change: ObjectChange) -> None:
        if change.kind.kind != "Pod" or change.subresource or change.operation != CREATE:
            return
        if MIRROR in (change.document["metadata"].get("annotations") or {}):
            _check_mirror(change, change.document["spec"])
            return
        spec = change.own("spec")
        spec["serviceAccountName"] = spec.get("serviceAccountName") or DEFAULT
        spec["serviceAccount"] = spec["serviceAccountName"]  # the deprecated name of the same field
        account = await self._account(change, spec["serviceAccountName"])
        if _automounts(account, spec):
            self._mount(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": each.get("name", "")} for each in account["imagePullSecrets"]]

    async def _account(self, change: ObjectChange, name: str) -> Plain:
        found = await self._objects.find(_ACCOUNT, change.namespace, name)
        for pause in _PAUSES if name == DEFAULT else ():  # in a new namespace the controller is about to create it
            if found is not None:
                break
            await self._clock.sleep(pause)
            found = await self._objects.find(_ACCOUNT, change.namespace, name)
        if found is None:
            raise self._unknown(change, name)
        return found.document

    def _unknown(self, change: ObjectChange, name: str) -> ApiError:
        return change.forbid(
            f'error looking up service account {change.namespace}/{name}: serviceaccount "{name}" not found'
        )

    def _mount(self, spec: Plain) -> None:
        """Mount the token into every container that has no mount at the usual path."""
        volumes = spec.get("volumes") or []
        there = next((each["name"] for each in volumes if each["name"].startswith(_VOLUME)), "")
        name = there or names.generate_name(_VOLUME, self._random)
        mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}
        needed = False
        for part in _CONTAINERS:
            containers = spec.get(part) or ()
            mounted = [_mounted(container, mount) for container in containers]
            if any(after is not before for after, before in zip(mounted, containers, strict=True)):
                spec[part] = mounted
                needed = True
        if needed and not there:
            spec["volumes"] = [*volumes, {"name": name, "projected": _token_sources()}]


def _mounted(container: Plain, mount: Plain) -> Plain:
    mounts = container.get("volumeMounts") or []
    if any(each.get("mountPath") == TOKEN_PATH for each in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, mount]}


def _automounts(account: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Whether to mount the token: the pod's setting counts before that of the account."""
    for said in (spec, account):
        if "automountServiceAccountToken" in said:
            return bool(said["automountServiceAccountToken"])
    return True


def _token_sources() -> Plain:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }


def _check_mirror(change: ObjectChange, spec: Plain) -> None:
    if spec.get("serviceAccountName"):
        raise change.forbid("a mirror pod may not reference service accounts")
    if any(_secrets(spec)):
        raise change.forbid("a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        sources = (volume.get("projected") or {}).get("sources") or ()
        if any("serviceAccountToken" in source for source in sources):
            raise change.forbid("a mirror pod may not use ServiceAccountToken volume projections")


def _secrets(spec: Mapping[str, Any]) -> Iterator[Any]:
    """Every place in a pod that names a secret."""
    yield from spec.get("imagePullSecrets") or ()
    for container in (each for part in (*_CONTAINERS, "ephemeralContainers") for each in spec.get(part) or ()):
        yield from (source for source in container.get("envFrom") or () if source.get("secretRef"))
        variables = container.get("env") or ()
        yield from (each for each in variables if (each.get("valueFrom") or {}).get("secretKeyRef"))
    for volume in spec.get("volumes") or ():
        yield from (each for each in (volume.get("secret"), volume.get("azureFile")) if each)
        yield from (each for each in (volume.get("projected") or {}).get("sources") or () if each.get("secret"))
