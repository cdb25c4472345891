"""The client: every served kind, every verb, over any transport.

In:  typed names of kinds (`CLAIMS`, `PODS`, …), objects, patches.
Out: structs for whole kinds, documents with views (`Partial`) for the rest; failures as exceptions of `failures`.

Writes are sent once: only reads, and what a server has turned away untouched (429), are repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

import msgspec

from drakit.api.codec.documents import encode, to_wire
from drakit.api.exchange import JSON, EventStream, OneObject, OpenBody, Request, Response
from drakit.api.objects.partial import Partial
from drakit.base.clock import Clock, RealClock
from drakit.base.errors import UsageError
from drakit.base.structs import Model
from drakit.client import patches
from drakit.client.decoder import Listed, Reader
from drakit.client.discovery import Versions
from drakit.client.failures import Conflict, Expired, Invalid, NotFound, NotServed, raise_for
from drakit.client.keys import metadata_of
from drakit.client.patches import APPLY, MERGE, Patch
from drakit.client.queries import Query, Selector, delete_options, document_in, of_another, selected
from drakit.client.resources import CLAIMS, Resource, resource_of_document, resource_of_model
from drakit.client.transport.sender import Sender, retry_after
from drakit.client.transport.transports import Transport
from drakit.client.verbosity import V
from drakit.client.watch import Watch

log = logging.getLogger("drakit.client")

T = TypeVar("T")
M = TypeVar("M", bound=Model)
P = TypeVar("P", bound=Model)

USER_AGENT = "drakit"
_NO_QUERY: Query = ()
_CONFLICT_TRIES = 10


class Client:
    """Safe for any number of tasks of one loop. Close it, or use it as a context, to give its connections back."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock | None = None,
        user_agent: str = USER_AGENT,
        field_manager: str = "",
        namespace: str = "default",
        on_warning: Callable[[str], None] | None = None,
        versions: Versions | None = None,
    ) -> None:
        """`namespace` is where objects are created that do not say; `field_manager` is who owns what is written.

        `versions` is what another client of the same server has found out.
        """
        self.transport = transport
        self.namespace = namespace
        self.clock: Clock = clock or RealClock()
        self.versions = versions or Versions(self.document)
        self._readers: dict[tuple[Resource[Any], str], Reader[Any]] = {}
        self._sender = Sender(transport, self.clock, on_warning)
        self._headers = {"user-agent": user_agent, "accept": JSON}
        self._manager: Query = (("fieldManager", field_manager or user_agent.partition("/")[0]),)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    # Reading

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        """One object, as it is now. Raise NotFound."""
        version = self.versions.known(resource) or await self.versions.choose(resource)
        path = resource.path(version, self._place(resource, namespace), name)
        response = await self._send(resource, "GET", path)
        return self._reader(resource, version).one(response.content)

    async def find(self, resource: Resource[T], name: str, *, namespace: str = "") -> T | None:
        """As `get`; none when it is not there."""
        try:
            return await self.get(resource, name, namespace=namespace)
        except NotFound:
            return None

    async def list(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        labels: Selector = "",
        fields: Selector = "",
        resource_version: str = "",
        page_size: int | None = None,
    ) -> Listed[T]:
        """All that match, of one namespace or of all; read in pages where the transport wants it so."""
        size = self.transport.page_size if page_size is None else page_size
        query = selected(labels, fields)
        if resource_version:
            query += (("resourceVersion", resource_version),)
        try:
            return await self._pages(resource, namespace, query, size)
        except Expired:
            if not size:
                raise
            # The pages took longer than the server keeps history: all at once is dear, but one revision.
            return await self._pages(resource, namespace, query, 0)

    async def _pages(self, resource: Resource[T], namespace: str, query: Query, size: int) -> Listed[T]:
        version = self.versions.known(resource) or await self.versions.choose(resource)
        reader: Reader[T] = self._reader(resource, version)
        path = resource.path(version, namespace)
        limit: Query = (("limit", str(size)),) if size else _NO_QUERY
        page = reader.many((await self._send(resource, "GET", path, (*query, *limit))).content)
        items, first = page.items, page.metadata.resource_version
        while page.metadata.continue_:
            # The token carries the version; a server refuses to be told twice.
            again = tuple(each for each in query if each[0] != "resourceVersion")
            more = (*again, *limit, ("continue", page.metadata.continue_))
            page = reader.many((await self._send(resource, "GET", path, more)).content)
            items += page.items
        return Listed(tuple(items), first)

    async def current_version(
        self, resource: Resource[Any], *, namespace: str = "", labels: Selector = "", fields: Selector = ""
    ) -> str:
        """How far the server has come, at the price of reading one object. Who may read only some names those."""
        version = self.versions.known(resource) or await self.versions.choose(resource)
        query = (*selected(labels, fields), ("limit", "1"))
        response = await self._send(resource, "GET", resource.path(version, namespace), query)
        return self._reader(resource, version).many(response.content).metadata.resource_version

    def watch(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        labels: Selector = "",
        fields: Selector = "",
        since: str = "",
        initial: bool = False,
        bookmarks: bool = True,
        seconds: int = 0,
    ) -> Watch[T]:
        """What happens after version `since`; without one, first what is there, as ADDED.

        `initial` asks for a streaming list: what is there, then a bookmark with `initial_end`, then what happens.
        """
        query = (("watch", "true"), *selected(labels, fields))
        if since:
            query += (("resourceVersion", since),)
        if bookmarks:
            query += (("allowWatchBookmarks", "true"),)
        if initial:
            query += (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
        if seconds:
            query += (("timeoutSeconds", str(seconds)),)

        async def open_() -> tuple[EventStream, Reader[T]]:
            version = self.versions.known(resource) or await self.versions.choose(resource)
            response = await self._send(resource, "GET", resource.path(version, namespace), query)
            if not isinstance(response.content, EventStream):
                raise TypeError(f"watch of {resource.name}: the answer is no stream")
            return response.content, self._reader(resource, version)

        return Watch(open_)

    # Writing

    @overload
    async def create(self, obj: M, *, dry_run: bool = False) -> M: ...
    @overload
    async def create(self, obj: Partial[P], *, dry_run: bool = False) -> Partial[P]: ...
    @overload
    async def create(self, obj: Mapping[str, Any], *, dry_run: bool = False) -> Any: ...
    async def create(self, obj: Any, *, dry_run: bool = False) -> Any:
        """Make an object: a struct, or a whole document. What comes back is of the form that was given."""
        resource, version, namespace, _ = self._locate(obj)
        version = version or await self.versions.choose(resource)
        query = self._write_query(dry_run)
        response = await self._send(
            resource, "POST", resource.path(version, namespace), query, **self._body(obj, version)
        )
        return self._same_form(obj, self._reader(resource, version).one(response.content))

    @overload
    async def update(self, obj: M, *, subresource: str = "", dry_run: bool = False) -> M: ...
    @overload
    async def update(self, obj: Partial[P], *, subresource: str = "", dry_run: bool = False) -> Partial[P]: ...
    @overload
    async def update(self, obj: Mapping[str, Any], *, subresource: str = "", dry_run: bool = False) -> Any: ...
    async def update(self, obj: Any, *, subresource: str = "", dry_run: bool = False) -> Any:
        """Replace an object by a whole struct or document. Raise Conflict when its resourceVersion has moved."""
        if isinstance(obj, Model) and not resource_of_model(obj).kind.fully_typed:
            raise UsageError(f"update of a {type(obj).__name__}: a view has not every field; patch the object instead")
        resource, version, namespace, name = self._locate(obj)
        version = version or await self.versions.choose(resource)
        path = resource.path(version, namespace, name, subresource)
        response = await self._send(resource, "PUT", path, self._write_query(dry_run), **self._body(obj, version))
        return self._same_form(obj, self._reader(resource, version).one(response.content))

    async def update_status(self, obj: T) -> T:
        updated: T = await self.update(obj, subresource="status")  # type: ignore[call-overload]
        return updated

    async def patch(
        self,
        obj: T,
        patch: Patch,
        *,
        kind: str = MERGE,
        subresource: str = "",
        versioned: bool | None = None,
        dry_run: bool = False,
    ) -> T:
        """Change the object that `obj` is, and no other of its name: the patch carries its uid. Raise Conflict.

        `versioned` patches carry its resourceVersion too and conflict with every other write; those of claims always
        do unless told otherwise. `kind` is MERGE, JSON_PATCH or STRATEGIC.
        """
        resource, _, namespace, name = self._locate(obj)
        bound = resource is CLAIMS if versioned is None else versioned
        body = patches.requiring(patch, metadata_of(obj), versioned=bound)
        try:
            patched: T = await self._patch(
                resource, namespace, name, subresource, kind, body, self._write_query(dry_run)
            )
        except Invalid as error:
            raise of_another(error) from None
        return patched

    async def patch_named(
        self,
        resource: Resource[T],
        name: str,
        patch: Patch,
        *,
        namespace: str = "",
        kind: str = MERGE,
        subresource: str = "",
        dry_run: bool = False,
    ) -> T:
        """Change whatever object has that name. Of a claim, the patch must say which: by uid and resourceVersion."""
        if resource is CLAIMS and not patches.is_bound(patch):
            raise UsageError(f"patch of claim {name!r}: it must carry the claim's uid and resourceVersion")
        place = self._place(resource, namespace)
        return await self._patch(resource, place, name, subresource, kind, patch, self._write_query(dry_run))

    async def patch_status(self, obj: T, status: Mapping[str, Any], *, versioned: bool | None = None) -> T:
        """Merge into the status of that object."""
        return await self.patch(obj, {"status": status}, subresource="status", versioned=versioned)

    async def apply(
        self,
        obj: Model | Mapping[str, Any],
        *,
        manager: str = "",
        force: bool = False,
        subresource: str = "",
        of: Any = None,
        dry_run: bool = False,
    ) -> Any:
        """Server-side apply: set these fields. The object is created if it does not exist, unless `of` is given.

        With `of`, the object that is meant, the patch carries its uid and resourceVersion. Raise Conflict when
        another manager owns a field with another value, unless forced.
        """
        resource, version, namespace, name = self._locate(obj)
        version = version or await self.versions.choose(resource)
        document = to_wire(obj, version) if isinstance(obj, Model) else obj
        body = patches.requiring(document, metadata_of(of), versioned=True) if of is not None else document
        query = (*self._write_query(dry_run, manager), ("force", "true" if force else "false"))
        return await self._patch(resource, namespace, name, subresource, APPLY, body, query, version)

    async def _patch(
        self,
        resource: Resource[T],
        namespace: str,
        name: str,
        subresource: str,
        kind: str,
        patch: Patch,
        query: Query,
        version: str = "",
    ) -> T:
        version = version or self.versions.known(resource) or await self.versions.choose(resource)
        path = resource.path(version, namespace, name, subresource)
        handed_over = self.transport.in_process and isinstance(patch, dict)
        body = {"document": patch} if handed_over else {"body": patches.encode_patch(patch)}
        response = await self._send(resource, "PATCH", path, query, content_type=kind, **body)
        return self._reader(resource, version).one(response.content)

    async def mutate(
        self,
        resource: Resource[T],
        name: str,
        change: Callable[[T], T | Mapping[str, Any] | None],
        *,
        namespace: str = "",
        subresource: str = "",
        start: T | None = None,
    ) -> T:
        """Read, change, write; again on a conflict. `change` is pure, and returns none when all is well as it is.

        It gets the object and returns a struct, or for a partly modelled kind a whole document. `start` saves the
        first read: an object from a cache, which may be old.
        """
        found = start if start is not None else await self.get(resource, name, namespace=namespace)
        for attempt in range(_CONFLICT_TRIES):
            changed = change(found)
            if changed is None:
                return found
            try:
                written: T = await self.update(changed, subresource=subresource)  # type: ignore[arg-type]
            except Conflict:
                if attempt == _CONFLICT_TRIES - 1:
                    raise
                log.log(V[4], "conflict on %s %s/%s: reading it again", resource.name, namespace, name)
                found = await self.get(resource, name, namespace=namespace)
            else:
                return written
        raise AssertionError("unreachable")

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        propagation: str = "",
        dry_run: bool = False,
    ) -> T | None:
        """Delete an object; with `uid` or `resource_version` only that one, else Conflict. Raise NotFound.

        Return the object as the server answers with it; none when it is gone and the answer says no more.
        """
        version = self.versions.known(resource) or await self.versions.choose(resource)
        path = resource.path(version, self._place(resource, namespace), name)
        options = delete_options(uid, resource_version, grace, propagation, dry_run)
        response = await self._send(resource, "DELETE", path, **self._body(options, version))
        if isinstance(response.content, OneObject):
            return self._reader(resource, version).one(response.content)
        document = document_in(response.content)
        return None if document.get("kind") == "Status" else self._reader(resource, version).from_document(document)

    async def delete_object(self, obj: Any, *, grace: int | None = None, propagation: str = "") -> None:
        """Delete that object and no other of its name; it may be gone already."""
        resource, _, namespace, name = self._locate(obj)
        uid = metadata_of(obj).uid
        try:
            await self.delete(resource, name, namespace=namespace, uid=uid, grace=grace, propagation=propagation)
        except NotFound:
            return

    async def delete_all(
        self,
        resource: Resource[Any],
        *,
        namespace: str = "",
        labels: Selector = "",
        fields: Selector = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> None:
        """Delete all that match."""
        version = self.versions.known(resource) or await self.versions.choose(resource)
        options = delete_options("", "", grace, propagation, False)
        path = resource.path(version, namespace)
        await self._send(resource, "DELETE", path, selected(labels, fields), **self._body(options, version))

    # Everything else

    async def call(
        self,
        method: str,
        resource: Resource[Any],
        name: str,
        subresource: str,
        body: Mapping[str, Any] | None = None,
        *,
        namespace: str = "",
        query: Query = _NO_QUERY,
    ) -> dict[str, Any]:
        """Call a subresource whose kind is not that of its parent: binding, eviction, scale, token."""
        version = self.versions.known(resource) or await self.versions.choose(resource)
        path = resource.path(version, self._place(resource, namespace), name, subresource)
        sent = self._body(body, version) if body is not None else {}
        asked = query if method == "GET" else (*self._manager, *query)
        return document_in((await self._send(resource, method, path, asked, **sent)).content)

    async def open(
        self, resource: Resource[Any], name: str, subresource: str, *, namespace: str = "", query: Query = _NO_QUERY
    ) -> OpenBody:
        """A subresource whose content comes piece by piece: a log. It must be closed."""
        version = self.versions.known(resource) or await self.versions.choose(resource)
        path = resource.path(version, self._place(resource, namespace), name, subresource)
        headers = {**self._headers, "accept": "*/*"}
        request = Request(method="GET", path=path, query=query, headers=headers, open_body=True)
        response = await self._sender.send(request)
        raise_for(response.code, response.content)
        if not isinstance(response.content, OpenBody):
            raise TypeError(f"{subresource} of {resource.name}: the answer is no stream")
        return response.content

    async def document(self, path: str) -> dict[str, Any]:
        """Any page of the server that is a JSON document: discovery, version."""
        response = await self._sender.send(Request(method="GET", path=path, headers=self._headers))
        raise_for(response.code, response.content)
        return document_in(response.content)

    async def text(self, path: str, **query: str) -> str:
        """Any page of the server as text: health, metrics, logs."""
        headers = {**self._headers, "accept": "*/*"}
        request = Request(method="GET", path=path, query=tuple(query.items()), headers=headers)
        response = await self._sender.send(request)
        raise_for(response.code, response.content)
        return response.content.encode().decode()

    async def serves(self, resource: Resource[Any]) -> bool:
        """Whether the server has this kind."""
        return await self.versions.serves(resource)

    async def version_of(self, resource: Resource[Any]) -> str:
        """The version that the client speaks for this kind: the newest that the server offers."""
        return await self.versions.choose(resource)

    def _reader(self, resource: Resource[T], version: str) -> Reader[T]:
        reader = self._readers.get((resource, version))
        if reader is None:
            reader = self._readers[resource, version] = Reader(resource.kind, version)
        return reader

    def _place(self, resource: Resource[Any], namespace: str) -> str:
        if not resource.kind.namespaced:
            return ""
        if not namespace:
            raise UsageError(f"{resource.name}: a namespace is needed to name an object")
        return namespace

    def _locate(self, obj: Any) -> tuple[Resource[Any], str, str, str]:
        """Resource, version, namespace and name of an object; a document is sent in the version it is written in.

        The version is empty if it takes a question to know it.
        """
        if isinstance(obj, Model):
            resource = resource_of_model(obj)
            metadata = metadata_of(obj)
            namespace, name = metadata.namespace, metadata.name
            version = self.versions.known(resource) or ""
        else:
            document = obj.document if type(obj) is Partial else obj
            resource, version = resource_of_document(document)
            plain = document.get("metadata") or {}
            namespace, name = plain.get("namespace") or "", plain.get("name") or ""
        return resource, version, (namespace or self.namespace) if resource.kind.namespaced else "", name

    def _body(self, obj: Any, version: str) -> dict[str, Any]:
        """What a request carries: the object itself in process, its bytes otherwise."""
        if isinstance(obj, Model):
            internal = resource_of_model(obj).kind.internal
            if not self.transport.in_process:
                return {"body": encode(obj, version)}
            return {"document": obj if version == internal else to_wire(obj, version)}
        document = obj.document if type(obj) is Partial else obj
        if self.transport.in_process:
            return {"document": document if type(document) is dict else dict(document)}
        return {"body": msgspec.json.encode(document)}

    def _same_form(self, given: Any, found: Any) -> Any:
        return found.view if isinstance(given, Model) and type(found) is Partial else found

    def _write_query(self, dry_run: bool, manager: str = "") -> Query:
        owner: Query = (("fieldManager", manager),) if manager else self._manager
        return (*owner, ("dryRun", "All")) if dry_run else owner

    async def _send(
        self,
        resource: Resource[Any],
        method: str,
        path: str,
        query: Query = _NO_QUERY,
        *,
        body: bytes = b"",
        document: Any = None,
        content_type: str = JSON,
    ) -> Response:
        headers = self._headers if method == "GET" else {**self._headers, "content-type": content_type}
        request = Request(method=method, path=path, query=query, headers=headers, body=body, document=document)
        response = await self._sender.send(request)
        if response.code >= 400:
            try:
                raise_for(response.code, response.content, retry_after=retry_after(response))
            except NotServed:
                self.versions.forget(resource)  # the server may have changed: look again before the next request
                raise
        return response
