"""Give a request for a resource to the handler of its verb.

In:  an ApiCall whose user is authorized.
Out: a response. Errors are raised; the server makes a Status of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from drakit.api.codec.protobuf import has_message
from drakit.api.exchange import JSON, Response
from drakit.apiserver.admission.chain import CREATE
from drakit.apiserver.auth.tokens import requests as tokenrequests
from drakit.apiserver.auth.tokens.serviceaccounts import ServiceAccountTokens
from drakit.apiserver.failures import method_not_allowed, too_many_requests, unavailable
from drakit.apiserver.metrics import ServerMetrics
from drakit.apiserver.nodes import NodeBody, NodeTunnel
from drakit.apiserver.requests.bodies import incoming, read_body
from drakit.apiserver.requests.negotiation import negotiate
from drakit.apiserver.requests.options import delete_options, write_options
from drakit.apiserver.verbs import connect
from drakit.apiserver.verbs.bind import bind
from drakit.apiserver.verbs.components import COMPONENT_STATUS, component, components
from drakit.apiserver.verbs.connect import Connector
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.create import create
from drakit.apiserver.verbs.delete import delete, delete_found
from drakit.apiserver.verbs.evict import evict
from drakit.apiserver.verbs.patch import patch
from drakit.apiserver.verbs.proxy import PROXY
from drakit.apiserver.verbs.read import collect, get, list_objects
from drakit.apiserver.verbs.representation import Presenter
from drakit.apiserver.verbs.reviews import KINDS as REVIEWS
from drakit.apiserver.verbs.reviews import Reviewer
from drakit.apiserver.verbs.scale import scale_of, write_scale
from drakit.apiserver.verbs.selection import SelectionPredicate
from drakit.apiserver.verbs.update import update
from drakit.apiserver.verbs.watch import ObjectStream, watch
from drakit.base.status import ListMeta, Status, StatusDetails

VerbHandler = Callable[[ApiCall, Presenter], Awaitable[Response]]
_DELETED_TOGETHER = 64
"""Deletions of a collection that run at the same time: the store commits them in one group."""


class Resources:
    """Handles requests for resources. Owns the watches, and the streams of nodes, that are open."""

    def __init__(
        self,
        context: ServerContext,
        metrics: ServerMetrics,
        reviewer: Reviewer,
        tokens: ServiceAccountTokens,
        connector: Connector | None = None,
    ) -> None:
        self._context = context
        self._metrics = metrics
        self._reviewer = reviewer
        self._tokens = tokens
        self._connector = connector
        self._watches: set[ObjectStream] = set()
        self._watches_of: Counter[str] = Counter()
        self._node_streams: set[NodeBody | NodeTunnel] = set()
        self._verbs: dict[str, VerbHandler] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        self._subresources: dict[str, VerbHandler] = {
            "binding": self._bind,
            "eviction": self._evict,
            "scale": self._scale,
            "token": self._token,
        }

    async def handle(self, call: ApiCall) -> Response:
        if call.subresource in connect.SUBRESOURCES:
            # What comes from there has a form of its own.
            return await self._connect(call)
        protobuf = has_message(call.target.group_version, call.kind.kind)
        wanted = negotiate(call.request.headers.get("accept", ""), protobuf=protobuf)
        presenter = Presenter(call, wanted, self._context)
        response = await self._handler(call)(call, presenter)
        return response if response.content_type == JSON else await presenter.finished(response)

    def _handler(self, call: ApiCall) -> VerbHandler:
        if call.kind.kind in REVIEWS:
            return self._review
        # A subresource that is written like its object (`status`, `resize`) has no handler of its own.
        handler = self._subresources.get(call.subresource) or self._verbs.get(call.target.verb)
        if handler is None:
            raise method_not_allowed()
        return handler

    async def _get(self, call: ApiCall, presenter: Presenter) -> Response:
        if call.kind is COMPONENT_STATUS:
            return presenter.object(await component(self._context, call.name))
        return presenter.object(await get(self._context, call))

    async def _list(self, call: ApiCall, presenter: Presenter) -> Response:
        if call.kind is COMPONENT_STATUS:
            return await presenter.list(await components(self._context))
        return await presenter.list(await list_objects(self._context, call))

    async def _watch(self, call: ApiCall, presenter: Presenter) -> Response:
        user = call.user.name
        if self._watches_of[user] >= self._context.watches_of(call.user):
            raise too_many_requests()
        stream = await watch(self._context, call)
        self._watches_of[user] += 1
        where = (call.kind.group, call.version, call.kind.plural)
        self._metrics.watch_opened(*where)
        self._watches.add(stream)

        def closed(events: int) -> None:
            self._watches.discard(stream)
            self._watches_of[user] -= 1
            if not self._watches_of[user]:
                del self._watches_of[user]
            self._metrics.watch_closed(*where, events)

        stream.on_close = closed
        return presenter.watch(stream)

    async def close(self) -> None:
        """End every watch, and every stream of a node. Idempotent."""
        while self._watches:
            await self._watches.pop().close()
        while self._node_streams:
            await self._node_streams.pop().close()

    async def _create(self, call: ApiCall, presenter: Presenter) -> Response:
        return presenter.object(await create(self._context, call), 201)

    async def _update(self, call: ApiCall, presenter: Presenter) -> Response:
        stored, new = await update(self._context, call)
        return presenter.object(stored, 201 if new else 200)

    async def _patch(self, call: ApiCall, presenter: Presenter) -> Response:
        stored, new = await patch(self._context, call)
        return presenter.object(stored, 201 if new else 200)

    async def _delete(self, call: ApiCall, presenter: Presenter) -> Response:
        deleted = await delete(self._context, call)
        if not deleted.gone or call.strategy.returns_deleted:
            return presenter.object(deleted.object)
        kind = call.kind
        details = StatusDetails(name=call.name, group=kind.group, kind=kind.plural, uid=deleted.object.uid)
        return _success(200, details, presenter)

    async def _delete_collection(self, call: ApiCall, presenter: Presenter) -> Response:
        """Delete what the selection finds, and answer with what was found."""
        options = delete_options(call.request, read_body(call.request))
        wanted = await self._context.list_options(call.request)
        selection = SelectionPredicate(call.kind, call.target.group_version, call.namespace, "", wanted)
        found = await collect(self._context, call.kind, call.version, selection, wanted)
        for start in range(0, len(found.objects), _DELETED_TOGETHER):
            some = found.objects[start : start + _DELETED_TOGETHER]
            deletions = (delete_found(self._context, call, stored, options) for stored in some)
            for problem in await asyncio.gather(*deletions, return_exceptions=True):
                if problem is not None:
                    raise problem
        return await presenter.list(found)

    async def _review(self, call: ApiCall, presenter: Presenter) -> Response:
        sent = read_body(call.request)
        options = write_options(call.request, "CreateOptions")
        found = incoming(
            call.kind, call.version, {} if sent is None else sent, self._context.now(),
            strict=options.validation == "Strict",
        )  # fmt: skip
        return presenter.document(await self._reviewer.review(call, found.document, self._context.timestamp()), 201)

    async def _bind(self, call: ApiCall, presenter: Presenter) -> Response:
        await bind(self._context, call)
        return _success(201, None, presenter)

    async def _evict(self, call: ApiCall, presenter: Presenter) -> Response:
        await evict(self._context, call)
        return _success(201, None, presenter)

    async def _scale(self, call: ApiCall, presenter: Presenter) -> Response:
        if call.target.verb == "get":
            stored = await get(self._context, call)
        else:
            stored = await write_scale(self._context, call)
        return presenter.document(scale_of(stored))

    async def _token(self, call: ApiCall, presenter: Presenter) -> Response:
        account = await self._context.objects.get(call.kind, call.namespace, call.name)
        sent = read_body(call.request)
        change = call.change(CREATE, call.name, new=None, old=account, dry_run=False, sent=sent)
        await self._context.admission.admit(change)
        await self._context.admission.validate(change)
        wanted = tokenrequests.read_request(sent, call.namespace, call.name)
        bound = await tokenrequests.bind(self._context.objects, wanted, call.namespace, call.name)
        issued = await self._tokens.issue(call.namespace, call.name, account.uid, wanted, bound)
        return presenter.document(issued, 201)

    async def _connect(self, call: ApiCall) -> Response:
        """These lead to the pod's node; a server that was not told how to reach nodes has none."""
        if self._connector is None:
            await self._context.objects.get(call.kind, call.namespace, call.name)
            noun = call.kind.singular
            raise unavailable(f"{call.subresource} of {noun} {call.name!r} is not available: no node serves it")
        join = {connect.LOG: self._connector.log, PROXY: self._connector.proxy}.get(
            call.subresource, self._connector.upgrade
        )
        response, stream = await join(call)
        self._node_streams.add(stream)
        ended = self._metrics.stream_opened(call.kind.group, call.version, f"{call.kind.plural}/{call.subresource}")

        def closed() -> None:
            self._node_streams.discard(stream)
            ended()

        stream.on_close = closed
        return response


def _success(code: int, details: StatusDetails | None, presenter: Presenter) -> Response:
    done = Status(
        api_version="v1",
        metadata=ListMeta(),
        status="Success",
        details=details,
        code=0 if code == 200 else code,
    )
    return presenter.status(done, code)
