"""What the agent needs of a plugin's sockets: the seam between it and gRPC.

In:  paths of sockets.
Out: registration and driver peers. `channels` makes them over real sockets; tests give scripted ones.

PluginCallFailed    (Retryable) the call did not succeed; carries the gRPC code by its Go name, and the text
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from drakit.base.errors import Retryable

V1 = "v1.DRAPlugin"
V1BETA1 = "v1beta1.DRAPlugin"
SERVICES = (V1, V1BETA1)
"""The services that the agent speaks, in the order in which it names them."""

FULL_NAMES = {
    V1: "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    V1BETA1: "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
}


class PluginCallFailed(Retryable):
    """A gRPC call that failed: `code` as Go writes it (`Unavailable`), `detail` as the peer or the dial gave it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {detail}")
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """What a plugin says about itself when it registers."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimIdentity:
    """A claim as drivers are told of it."""

    namespace: str
    uid: str
    name: str


@dataclass(frozen=True, slots=True)
class DeviceAnswer:
    """A device as a driver answered for it; nothing in it is checked."""

    pool: str
    device: str
    requests: tuple[str, ...] = ()
    cdi_ids: tuple[str, ...] = ()
    share_id: str | None = None


@dataclass(frozen=True, slots=True)
class PrepareAnswer:
    devices: tuple[DeviceAnswer, ...] = ()
    error: str = ""


PrepareAnswers = Mapping[str, PrepareAnswer]
"""By claim uid."""


@dataclass(frozen=True, slots=True)
class DeviceHealthReport:
    """The health of one device as its driver reports it; `timeout` in seconds, zero or less for the default."""

    pool: str
    device: str
    health: str
    message: str = ""
    timeout: int = 0


class RegistrationPeer(Protocol):
    """A plugin's registration socket. Both calls raise PluginCallFailed."""

    async def get_info(self) -> PluginInfo: ...

    async def notify(self, *, registered: bool, error: str) -> None: ...

    async def close(self) -> None: ...


class DriverPeer(Protocol):
    """A driver's service socket. A broken connection is made again by itself, and at once when a call comes."""

    @property
    def connected(self) -> bool: ...

    def on_change(self, call: Callable[[], None]) -> None:
        """Call that function whenever `connected` changes."""
        ...

    async def prepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> PrepareAnswers:
        """By claim uid. Raises PluginCallFailed."""
        ...

    async def unprepare(self, service: str, claims: Sequence[ClaimIdentity], *, limit: float) -> Mapping[str, str]:
        """The error of each claim by its uid, empty for success. Raises PluginCallFailed."""
        ...

    def watch_health(self) -> AsyncIterator[Sequence[DeviceHealthReport]]:
        """The full state, each time the driver tells it. Ends with the stream; raises PluginCallFailed."""
        ...

    async def close(self) -> None:
        """Idempotent. Calls under way fail."""
        ...


class Dialer(Protocol):
    def registration(self, path: str) -> RegistrationPeer: ...

    def driver(self, endpoint: str) -> DriverPeer: ...
