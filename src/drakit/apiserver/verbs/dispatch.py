"""Requests for resources: from a Call to the handler of its verb, and back to a response.

In:  a call whose user may make it.
Out: a response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from drakit.api.exchange import JSON, Outcome, Response
from drakit.apiserver.admission.chain import CREATE
from drakit.apiserver.auth.tokens import requests as tokenrequests
from drakit.apiserver.auth.tokens.serviceaccounts import ServiceAccountTokens
from drakit.apiserver.failures import method_not_allowed, unavailable
from drakit.apiserver.metrics import Metrics
from drakit.apiserver.requests.bodies import incoming, read_body
from drakit.apiserver.requests.negotiation import negotiate
from drakit.apiserver.requests.options import delete_options, list_options, write_options
from drakit.apiserver.verbs import bind as binding
from drakit.apiserver.verbs import connect
from drakit.apiserver.verbs import create as creating
from drakit.apiserver.verbs import delete as deleting
from drakit.apiserver.verbs import patch as patches
from drakit.apiserver.verbs import read as listing
from drakit.apiserver.verbs import scale as scaling
from drakit.apiserver.verbs import update as updating
from drakit.apiserver.verbs import watch as watching
from drakit.apiserver.verbs.connect import Connector
from drakit.apiserver.verbs.context import Call, Machinery
from drakit.apiserver.verbs.representation import Presenter
from drakit.apiserver.verbs.reviews import KINDS as REVIEWS
from drakit.apiserver.verbs.reviews import Reviewer
from drakit.apiserver.verbs.selection import Selection
from drakit.base.status import ListMeta, Status, StatusDetails

Handler = Callable[[Call, Presenter], Awaitable[Response]]
_AT_A_TIME = 64


class Resources:
    def __init__(
        self,
        machinery: Machinery,
        metrics: Metrics,
        reviewer: Reviewer,
        tokens: ServiceAccountTokens,
        connector: Connector | None = None,
    ) -> None:
        self._machinery = machinery
        self._metrics = metrics
        self._reviewer = reviewer
        self._tokens = tokens
        self._connector = connector
        self._verbs: dict[str, Handler] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        self._subresources: dict[str, Handler] = {
            "binding": self._bind,
            "eviction": self._evict,
            "scale": self._scale,
            "token": self._token,
        }

    async def handle(self, call: Call) -> Response:
        wanted = negotiate(call.request.headers.get("accept", ""))
        presenter = Presenter(call, wanted, self._machinery.now)
        if call.kind.kind in REVIEWS:
            return await self._review(call, presenter)
        if call.subresource in connect.SUBRESOURCES:
            return await self._connect(call)
        handler = self._subresources.get(call.subresource) or self._verbs.get(call.target.verb)
        if handler is None:
            raise method_not_allowed()
        return await handler(call, presenter)

    async def _get(self, call: Call, presenter: Presenter) -> Response:
        return presenter.object(await listing.get(self._machinery, call))

    async def _list(self, call: Call, presenter: Presenter) -> Response:
        return presenter.list(await listing.list_objects(self._machinery, call))

    async def _watch(self, call: Call, presenter: Presenter) -> Response:
        stream = await watching.watch(self._machinery, call)
        where = (call.kind.group, call.version, call.kind.plural)
        self._metrics.watch_opened(*where)
        stream.on_close = lambda events: self._metrics.watch_closed(*where, events)
        return presenter.watch(stream)

    async def _create(self, call: Call, presenter: Presenter) -> Response:
        return presenter.object(await creating.create(self._machinery, call), 201)

    async def _update(self, call: Call, presenter: Presenter) -> Response:
        kept, new = await updating.update(self._machinery, call)
        return presenter.object(kept, 201 if new else 200)

    async def _patch(self, call: Call, presenter: Presenter) -> Response:
        kept, new = await patches.patch(self._machinery, call)
        return presenter.object(kept, 201 if new else 200)

    async def _delete(self, call: Call, presenter: Presenter) -> Response:
        deleted = await deleting.delete(self._machinery, call)
        if not deleted.gone or call.strategy.returns_deleted:
            return presenter.object(deleted.object)
        kind = call.kind
        details = StatusDetails(name=call.name, group=kind.group, kind=kind.plural, uid=deleted.object.uid)
        return _success(200, details, call)

    async def _delete_collection(self, call: Call, presenter: Presenter) -> Response:
        """What is found is deleted, some at a time, which the store commits together; what goes meanwhile is gone.

        The answer is what was found.
        """
        options = delete_options(call.request, read_body(call.request))
        wanted = list_options(call.request)
        selection = Selection(call.kind, call.target.group_version, call.namespace, "", wanted)
        found = await listing.collect(self._machinery, call.kind, call.version, selection, wanted)
        for start in range(0, len(found.kept), _AT_A_TIME):
            some = found.kept[start : start + _AT_A_TIME]
            deletions = (deleting.delete_found(self._machinery, call, kept, options) for kept in some)
            for problem in await asyncio.gather(*deletions, return_exceptions=True):
                if problem is not None:
                    raise problem
        return presenter.list(found)

    async def _review(self, call: Call, presenter: Presenter) -> Response:
        sent = read_body(call.request)
        options = write_options(call.request, "CreateOptions")
        found = incoming(
            call.kind, call.version, {} if sent is None else sent, self._machinery.now(),
            strict=options.validation == "Strict",
        )  # fmt: skip
        return presenter.document(await self._reviewer.review(call, found.document, self._machinery.timestamp()), 201)

    async def _bind(self, call: Call, presenter: Presenter) -> Response:  # noqa: ARG002
        await binding.bind(self._machinery, call)
        return _success(201, None, call)

    async def _evict(self, call: Call, presenter: Presenter) -> Response:  # noqa: ARG002
        await binding.evict(self._machinery, call)
        return _success(201, None, call)

    async def _scale(self, call: Call, presenter: Presenter) -> Response:
        if call.target.verb == "get":
            kept = await listing.get(self._machinery, call)
        else:
            kept = await scaling.write_scale(self._machinery, call)
        return presenter.document(scaling.scale_of(kept))

    async def _token(self, call: Call, presenter: Presenter) -> Response:
        account = await self._machinery.keeper.get(call.kind, call.namespace, call.name)
        sent = read_body(call.request)
        change = call.change(CREATE, call.name, new=None, old=account, dry_run=False, sent=sent)
        await self._machinery.admission.admit(change)
        await self._machinery.admission.validate(change)
        wanted = tokenrequests.read_request(sent, call.namespace, call.name)
        bound = await tokenrequests.bind(self._machinery.keeper, wanted, call.namespace, call.name)
        issued = await self._tokens.issue(call.namespace, call.name, account.uid, wanted, bound)
        return presenter.document(issued, 201)

    async def _connect(self, call: Call) -> Response:
        """These lead to the pod's node; a server that was not told how to reach nodes has none."""
        if self._connector is None:
            await self._machinery.keeper.get(call.kind, call.namespace, call.name)
            raise unavailable(f"{call.subresource} of pod {call.name!r} is not available: no node serves it")
        closed = self._metrics.stream_opened(call.kind.group, call.version, f"{call.kind.plural}/{call.subresource}")
        try:
            join = self._connector.log if call.subresource == connect.LOG else self._connector.upgrade
            return await join(call, closed)
        except BaseException:
            closed()
            raise


def _success(code: int, details: StatusDetails | None, call: Call) -> Response:
    done = Status(
        api_version="v1",
        metadata=ListMeta(),
        status="Success",
        details=details,
        code=0 if code == 200 else code,
    )
    return Response(code=code, content=Outcome(done), content_type=JSON, warnings=tuple(call.warnings))
