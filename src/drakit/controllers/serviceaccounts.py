"""What pods in every namespace count on: the service account `default`, and the server's certificate authority.

In:  namespaces that are not being deleted, and those two objects in them.
Out: the ServiceAccount `default`, and the ConfigMap `kube-root-ca.crt` with the certificates; made again when somebody
     deletes them, and put right when somebody changes the certificates. Who knows no certificates writes over none.
"""

from __future__ import annotations

from typing import Any

from drakit.api import ConfigMap, Namespace, ServiceAccount
from drakit.api.objects.partial import Partial
from drakit.client import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, AlreadyExists, Client, Key
from drakit.controllers.context import ControllerContext
from drakit.informers import Informer, ListScope, Result

ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"
_KEY = "ca.crt"


class ServiceAccountController:
    def __init__(self, context: ControllerContext) -> None:
        self._account_client = context.client_of("service-account-controller")
        self._authority_client = context.client_of("root-ca-cert-publisher")
        self._root_ca = context.root_ca
        self._namespaces: Informer[Partial[Namespace]] = context.informers.of(NAMESPACES)
        self._accounts: Informer[Partial[ServiceAccount]] = context.informers.of(
            SERVICE_ACCOUNTS, ListScope(fields=f"metadata.name={ACCOUNT}")
        )
        self._configs: Informer[Partial[ConfigMap]] = context.informers.of(
            CONFIG_MAPS, ListScope(fields=f"metadata.name={ROOT_CA}")
        )
        self.accounts = context.loop("serviceaccount", self._ensure_account)
        self.authorities = context.loop("root_ca_cert_publisher", self._ensure_authority)
        self.loops = (self.accounts, self.authorities)
        for loop in self.loops:
            self._namespaces.enqueue(loop.queue.add)
        self._accounts.enqueue(self.accounts.queue.add, _namespace)
        self._configs.enqueue(self.authorities.queue.add, _namespace)

    async def _ensure_account(self, key: Key) -> Result:
        if self._is_living(key) and self._accounts.cache.named(ACCOUNT, key.name) is None:
            await _create(self._account_client, "ServiceAccount", ACCOUNT, key.name, {})
        return Result.done()

    async def _ensure_authority(self, key: Key) -> Result:
        if not self._is_living(key):
            return Result.done()
        data = {_KEY: self._root_ca}
        found = self._configs.cache.named(ROOT_CA, key.name)
        if found is None:
            await _create(self._authority_client, "ConfigMap", ROOT_CA, key.name, {"data": data})
        elif self._root_ca and dict(found.view.data) != data:
            await self._authority_client.update({**found.document, "data": data})
        return Result.done()

    def _is_living(self, key: Key) -> bool:
        namespace = self._namespaces.cache.get(key)
        return namespace is not None and namespace.view.metadata.deletion_timestamp is None


async def _create(client: Client, kind: str, name: str, namespace: str, content: dict[str, Any]) -> None:
    about = {"name": name, "namespace": namespace}
    try:
        await client.create({"apiVersion": "v1", "kind": kind, "metadata": about, **content})
    except AlreadyExists:
        return  # the cache has not seen it yet


def _namespace(obj: Any) -> list[Key]:
    return [Key("", obj.view.metadata.namespace)]
