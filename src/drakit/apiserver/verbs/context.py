"""What handlers work with: the parts of the server, and one request.

In:  the parts, put together at the start; a request whose user may make it.
Out: `ServerContext`, one per server; `ApiCall`, one per request.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from os import urandom
from random import Random
from typing import Any, TypeVar

from drakit.api.exchange import Request, User
from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.api.text.times import format_time
from drakit.apiserver.admission.chain import Admission, ObjectChange
from drakit.apiserver.admission.criteria.worker import LARGE, Worker
from drakit.apiserver.admission.rules import WriteRules
from drakit.apiserver.auth.authorization import Attributes, Authorizer
from drakit.apiserver.auth.identities import is_component
from drakit.apiserver.patching.entries import Owners
from drakit.apiserver.requests.options import ListOptions, list_options
from drakit.apiserver.requests.routing import Target
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.apiserver.strategies import KindStrategy, strategy_of
from drakit.base.clock import Clock
from drakit.base.gates import FeatureGates

T = TypeVar("T")
_SELECTOR_WEIGHT = 16
"""How many bytes of an object take as long as one of a selector."""


def random_uid() -> str:
    """A UUID of version 4 as text. uuid4 makes an object in between, which takes three times as long."""
    text = urandom(16).hex()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


@dataclass(slots=True)
class ServerContext:
    """The parts of a server that handlers use."""

    objects: ObjectStore
    clock: Clock
    gates: FeatureGates
    admission: Admission
    authorizer: Authorizer
    rules: WriteRules
    random: Random
    new_uid: Callable[[], str] = random_uid
    worker: Worker | None = None
    """Where large objects are worked on, beside the loop; None: nowhere else."""
    watches_per_user: int = 1000
    _second: datetime | None = None
    _timestamp: str = ""
    """That second as objects have it."""

    def watches_of(self, user: User) -> int:
        """How many watches a user may have. Each event wakes all that watch the same: 50 µs for each of them."""
        return sys.maxsize if is_component(user) else self.watches_per_user

    async def beside(self, size: int, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Call a function that takes long for much data, in a thread if there is much: others are served meanwhile.

        The function must not touch what others can change.
        """
        if size < LARGE or self.worker is None:
            return function(*args, **options)
        return await self.worker.call(partial(function, *args, **options))

    async def list_options(self, request: Request, *, watch: bool = False) -> ListOptions:
        """The options of a list or a watch. A selector may be as long as a URL: a long one is read beside the loop."""
        size = len(request.parameter("labelSelector")) + len(request.parameter("fieldSelector"))
        return await self.beside(_SELECTOR_WEIGHT * size, list_options, request, watch=watch)

    def now(self) -> datetime:
        return self.clock.now()

    def timestamp(self) -> str:
        """The current time as objects have it: in whole seconds."""
        second = self.clock.now().replace(microsecond=0)
        if second != self._second:  # formatted once a second
            self._second, self._timestamp = second, format_time(second)
        return self._timestamp


class ApiCall:
    """One request for a resource, and what its handlers have found out about it so far."""

    __slots__ = (
        "annotations", "completed", "kind", "managed_fields", "name", "namespace", "old_size", "request",
        "spaced_parameters", "strategy", "subresource", "target", "user", "version", "warnings",
    )  # fmt: skip

    def __init__(
        self,
        request: Request,
        target: Target,
        user: User,
        warnings: list[str] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> None:
        kind, info = target.kind, target.info
        self.request = request
        self.target = target
        self.user = user
        self.warnings: list[str] = [] if warnings is None else warnings
        self.annotations: dict[str, str] = {} if annotations is None else annotations
        """Notes of admission plugins for the audit log."""
        # Parts of the target, which a write looks at fifty times.
        self.kind: Kind = kind
        self.version: str = target.version
        self.namespace: str = info.namespace if kind.namespaced else ""
        self.name: str = info.name
        self.subresource: str = target.subresource.name if target.subresource else ""
        self.strategy: KindStrategy = strategy_of(kind)
        self.completed: Mapping[str, Any] = {}
        """The new object as it was decoded, see `bodies.Incoming.completed`."""
        self.managed_fields: tuple[list[Plain], Owners] | None = None
        """`metadata.managedFields` after this write: the entries, and the same as owners."""
        self.old_size = 0
        """Bytes of the stored object that is changed."""
        self.spaced_parameters = False
        """Whether the client sent opaque parameters with spaces between tokens, see `bodies.has_spaced_parameters`."""

    def attributes(self, verb: str) -> Attributes:
        """What the authorizer is asked if the request also needs the right to another verb."""
        info = self.target.info
        return Attributes(
            user=self.user,
            verb=verb,
            group=info.group,
            version=info.version,
            resource=info.resource,
            subresource=info.subresource,
            namespace=info.namespace,
            name=info.name,
            path=info.path,
        )

    @property
    def size(self) -> int:
        """Bytes of what is worked on: the body, or the object that it changes."""
        return max(len(self.request.body), self.old_size)

    def change(
        self,
        operation: str,
        name: str,
        *,
        new: Plain | None,
        old: StoredObject | None,
        dry_run: bool,
        sent: Any = None,
    ) -> ObjectChange:
        return ObjectChange(
            operation=operation,
            kind=self.kind,
            version=self.version,
            namespace=self.target.namespace,
            name=name,
            user=self.user,
            new=new,
            old=old,
            subresource=self.subresource,
            verb=self.target.verb,
            size=self.size,
            dry_run=dry_run,
            sent=sent,
            warnings=self.warnings,
            annotations=self.annotations,
        )
