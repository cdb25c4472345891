"""Put a server together.

In:  a store, a clock, and how the server is to behave.
Out: a Server, ready to handle requests; the objects that every cluster has are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from cryptography.hazmat.primitives.asymmetric import ec

from drakit.apiserver.admission.chain import Admission, choose
from drakit.apiserver.admission.claimstatus import ClaimStatusRules
from drakit.apiserver.admission.registration_rules import RegistrationRules
from drakit.apiserver.admission.rules import ObjectRules
from drakit.apiserver.admission.standard import Caller, standard_plugins
from drakit.apiserver.auth.audit import AuditLog
from drakit.apiserver.auth.authentication import (
    Authentication,
    BearerTokens,
    ClientCertificates,
    StaticTokens,
    TokenSource,
)
from drakit.apiserver.auth.authorization import AlwaysAllow, Authorizer
from drakit.apiserver.auth.tokens.serviceaccounts import ServiceAccountTokens, new_key
from drakit.apiserver.http.discovery import Discovery
from drakit.apiserver.kinds.served import served_kinds
from drakit.apiserver.metrics import Metrics
from drakit.apiserver.nodes import NodeClient
from drakit.apiserver.openapi.pages import OpenAPIPages
from drakit.apiserver.requests.routing import Routes
from drakit.apiserver.serving.bootstrap import bootstrap
from drakit.apiserver.serving.guard import Guard
from drakit.apiserver.serving.health import Health
from drakit.apiserver.serving.server import Limits, Server
from drakit.apiserver.storage.objectstore import Keeper
from drakit.apiserver.verbs.connect import Connector
from drakit.apiserver.verbs.context import Machinery, random_uid
from drakit.apiserver.verbs.dispatch import Resources
from drakit.apiserver.verbs.reviews import Reviewer
from drakit.base.clock import Clock, RealClock
from drakit.base.gates import FeatureGates
from drakit.store import Store

ISSUER = "https://kubernetes.default.svc"


@dataclass(slots=True)
class Settings:
    """How a server behaves. The defaults are those of a server that is used from within its process."""

    gates: FeatureGates = field(default_factory=FeatureGates.defaults)
    runtime_config: str = ""
    tokens: StaticTokens | None = None
    anonymous: bool = True
    authorizer: Authorizer = field(default_factory=AlwaysAllow)
    modes: Sequence[str] = ()
    """Of authorization, in order: `Node`, `RBAC`, …; they take the place of `authorizer`."""
    aggregate_roles: bool = False
    """Whether to keep `admin`, `edit`, `view` and their like up to date: a controller's task in Kubernetes."""
    audit: AuditLog | None = None
    enable_plugins: Sequence[str] = ()
    disable_plugins: Sequence[str] = ()
    caller: Caller = field(default_factory=Caller)
    """How webhooks are reached."""
    nodes: NodeClient | None = None
    """How the agents of nodes are reached, for logs and the like; without it, there are none of those."""
    limits: Limits = field(default_factory=Limits)
    random: Random = field(default_factory=Random)
    new_uid: Callable[[], str] = random_uid
    signing_key: ec.EllipticCurvePrivateKey | None = None


async def build_server(store: Store, *, clock: Clock | None = None, settings: Settings | None = None) -> Server:
    settings = settings or Settings()
    clock = clock or RealClock()
    keeper = Keeper(store)
    guard = Guard(keeper, settings.modes, aggregate=settings.aggregate_roles)
    authorizer = guard.authorizer() if settings.modes else settings.authorizer
    plugins = standard_plugins(
        keeper, clock=clock, random=settings.random, new_uid=settings.new_uid, caller=settings.caller
    )
    admission = choose(plugins, enable=settings.enable_plugins, disable=settings.disable_plugins)
    machinery = Machinery(
        keeper=keeper,
        clock=clock,
        gates=settings.gates,
        admission=Admission((*admission.plugins, *guard.plugins(authorizer))),
        authorizer=authorizer,
        rules=RegistrationRules(ClaimStatusRules(ObjectRules(settings.gates, keeper), authorizer, settings.gates)),
        random=settings.random,
        new_uid=settings.new_uid,
    )
    accounts = ServiceAccountTokens(
        settings.signing_key or new_key(), ISSUER, (ISSUER,), clock, guard.living, settings.new_uid
    )
    sources: list[TokenSource] = [*([settings.tokens] if settings.tokens else []), accounts]
    figures = Metrics()
    served = served_kinds(settings.runtime_config)
    fresh = not (await store.stats()).keys
    await bootstrap(machinery)
    await guard.start(machinery)
    if fresh:
        # Nobody has seen how the first objects came about: history begins here.
        await store.compact(await store.revision())
    return Server(
        machinery,
        authentication=Authentication([ClientCertificates(), BearerTokens(sources)], anonymous=settings.anonymous),
        routes=Routes(served),
        discovery=Discovery(served),
        documents=OpenAPIPages(served),
        health=_health(store),
        figures=figures,
        resources=Resources(
            machinery,
            figures,
            Reviewer(authorizer, sources),
            accounts,
            Connector(machinery, settings.nodes) if settings.nodes else None,
        ),
        limits=settings.limits,
        audit=settings.audit,
    )


def _health(store: Store) -> Health:
    async def answers() -> None:
        await store.revision()

    async def ping() -> None:
        return

    return Health({"ping": ping, "store": answers})
