"""Put a server together.

In:  a store, a clock, and settings.
Out: a Server that answers requests. The objects that every cluster has are in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from cryptography.hazmat.primitives.asymmetric import ec

from drakit.apiserver.admission.chain import Admission, choose
from drakit.apiserver.admission.claimstatus import ClaimStatusRules
from drakit.apiserver.admission.criteria.worker import Worker
from drakit.apiserver.admission.plugins.drakit_warnings import DrakitWarnings
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
from drakit.apiserver.kinds.events import CORE
from drakit.apiserver.kinds.served import served_kinds
from drakit.apiserver.metrics import ServerMetrics
from drakit.apiserver.nodes import NodeClient
from drakit.apiserver.openapi.pages import OpenAPIPages
from drakit.apiserver.requests.routing import Routes
from drakit.apiserver.serving.access import AccessControl
from drakit.apiserver.serving.bootstrap import bootstrap, check_bootstrap
from drakit.apiserver.serving.eventexpiry import EventExpiry
from drakit.apiserver.serving.health import Health
from drakit.apiserver.serving.issuer import IssuerPages
from drakit.apiserver.serving.server import Server
from drakit.apiserver.serving.shares import Limits
from drakit.apiserver.storage.encryption import NO_ENCRYPTION, Encryption
from drakit.apiserver.storage.objectstore import LARGEST, ObjectStore
from drakit.apiserver.verbs.connect import Connector
from drakit.apiserver.verbs.context import ServerContext, random_uid
from drakit.apiserver.verbs.dispatch import Resources
from drakit.apiserver.verbs.reviews import Reviewer
from drakit.base.clock import Clock, RealClock
from drakit.base.gates import FeatureGates
from drakit.store import Store

ISSUER = "https://kubernetes.default.svc"


@dataclass(slots=True)
class Settings:
    """How a server behaves. The defaults suit a server that is used in process."""

    gates: FeatureGates = field(default_factory=FeatureGates.defaults)
    runtime_config: str = ""
    tokens: StaticTokens | None = None
    anonymous: bool = True
    authorizer: Authorizer = field(default_factory=AlwaysAllow)
    modes: Sequence[str] = ()
    """Authorization modes, in order: `Node`, `RBAC`, …. If there are any, `authorizer` is not used."""
    aggregate_roles: bool = False
    """Whether the server keeps aggregated roles (`admin`, `edit`, …) up to date: in Kubernetes a controller does."""
    audit: AuditLog | None = None
    enable_plugins: Sequence[str] = ()
    disable_plugins: Sequence[str] = ()
    drakit_warnings: bool = False
    """Whether the server warns of what is allowed and yet will not do what its author hopes. Kubernetes does not."""
    event_ttl: float | None = None
    """Seconds after their last write that events are kept; None: for ever."""
    caller: Caller = field(default_factory=Caller)
    """How webhooks are reached."""
    nodes: NodeClient | None = None
    """How the agents of nodes are reached, for logs and the like; without it, there are none of those."""
    limits: Limits = field(default_factory=Limits)
    encryption: Encryption = NO_ENCRYPTION
    """How values of chosen resources are encrypted at rest."""
    largest_object: int = LARGEST
    """Bytes of a stored object."""
    random: Random = field(default_factory=Random)
    new_uid: Callable[[], str] = random_uid
    signing_key: ec.EllipticCurvePrivateKey | None = None


async def build_server(store: Store, *, clock: Clock | None = None, settings: Settings | None = None) -> Server:
    """A server that answers at once. It has tasks: close it, or use it as `async with await build_server(…)`."""
    settings = settings or Settings()
    clock = clock or RealClock()
    lifetimes = {CORE.qualified: settings.event_ttl} if settings.event_ttl is not None else {}
    objects = ObjectStore(
        store, largest=settings.largest_object, encryption=settings.encryption, lifetimes=lifetimes, clock=clock
    )
    access = AccessControl(objects, settings.modes, aggregate=settings.aggregate_roles)
    # Three threads: a policy's expression does not wait for the compilation of a large claim, nor for a large object.
    workers = Worker("drakit-expressions"), Worker("drakit-selectors"), Worker("drakit-objects")
    context = _context(objects, clock, settings, access, *workers)
    accounts = ServiceAccountTokens(
        settings.signing_key or new_key(), ISSUER, (ISSUER,), clock, access.bound_objects, settings.new_uid
    )
    sources: list[TokenSource] = [*([settings.tokens] if settings.tokens else []), accounts]
    metrics = ServerMetrics()
    connector = Connector(context, settings.nodes) if settings.nodes else None
    served = served_kinds(settings.runtime_config)
    expiry = EventExpiry(objects, clock, settings.event_ttl) if settings.event_ttl is not None else None
    await _prepare_store(store, context, access)
    if expiry is not None:
        await expiry.start()
    return Server(
        context,
        authentication=Authentication([ClientCertificates(), BearerTokens(sources)], anonymous=settings.anonymous),
        routes=Routes(served),
        discovery=Discovery(served),
        documents=OpenAPIPages(served, workers[2]),
        health=_health(store, access, context),
        issuer=IssuerPages(accounts),
        metrics=metrics,
        resources=Resources(context, metrics, Reviewer(context.authorizer, sources), accounts, connector),
        access=access,
        workers=workers,
        expiry=expiry,
        limits=settings.limits,
        audit=settings.audit,
    )


def _context(
    objects: ObjectStore,
    clock: Clock,
    settings: Settings,
    access: AccessControl,
    policy_worker: Worker,
    selector_worker: Worker,
    object_worker: Worker,
) -> ServerContext:
    authorizer = access.authorizer() if settings.modes else settings.authorizer
    plugins = standard_plugins(
        objects,
        clock=clock,
        random=settings.random,
        new_uid=settings.new_uid,
        caller=settings.caller,
        worker=policy_worker,
        authorizer=authorizer,
    )
    admission = choose(plugins, enable=settings.enable_plugins, disable=settings.disable_plugins)
    advice = (DrakitWarnings(settings.gates),) if settings.drakit_warnings else ()
    rules = ClaimStatusRules(
        ObjectRules(settings.gates, objects, object_worker), authorizer, settings.gates, selector_worker
    )
    return ServerContext(
        objects=objects,
        clock=clock,
        gates=settings.gates,
        # The check against escalation comes last: it sees roles as all other plugins leave them.
        admission=Admission((*advice, *admission.plugins, *access.plugins(authorizer))),
        authorizer=authorizer,
        rules=RegistrationRules(rules),
        random=settings.random,
        new_uid=settings.new_uid,
        worker=object_worker,
        watches_per_user=settings.limits.watches_per_user,
    )


async def _prepare_store(store: Store, context: ServerContext, access: AccessControl) -> None:
    """Write what every cluster has, and start to follow what authorization depends on."""
    fresh = not (await store.stats()).keys
    await bootstrap(context)
    try:
        await access.start(context)
        await context.admission.start()
        if fresh:
            # The first watch of a new cluster starts after these objects, as if they had always been there.
            await store.compact(await store.revision())
    except BaseException:
        await context.admission.stop()
        await access.stop()
        raise


def _health(store: Store, access: AccessControl, context: ServerContext) -> Health:
    async def answers() -> None:
        await store.revision()

    async def ping() -> None:
        return

    async def followed() -> None:
        access.check_followed()

    async def bootstrapped() -> None:
        await check_bootstrap(context)

    alive = {"ping": ping, "store": answers, "etcd": answers}
    return Health(
        alive,
        {
            "store-writes": store.check_writes,
            "informer-sync": followed,
            "poststarthook/start-system-namespaces-controller": bootstrapped,
            "poststarthook/rbac/bootstrap-roles": access.check_roles,
        },
    )
