"""`drakit apiserver`: serve the Kubernetes API for dynamic resource allocation.

In:  flags, named as kube-apiserver names them where it has them.
Out: a server on a socket until it is told to stop; certificates and a kubeconfig beside its data.
"""

from __future__ import annotations

import gc
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from cryptography.hazmat.primitives.asymmetric import ec

from drakit.api.exchange import User
from drakit.apiserver.access.audit import AuditLog
from drakit.apiserver.access.guard import MODES
from drakit.apiserver.access.tokens import new_key
from drakit.apiserver.authentication import StaticTokens
from drakit.apiserver.building import Settings, build_server
from drakit.apiserver.certificates import Authority, Pair, key_text, read_key, write_private
from drakit.apiserver.kubeconfig import Access, write_kubeconfig
from drakit.apiserver.listening import Listener, Security, bind, bind_unix
from drakit.base.clock import RealClock
from drakit.base.errors import Unavailable, UsageError
from drakit.base.gates import FeatureGates
from drakit.store import MemoryStore, SQLiteStore, Store

ADMIN = User(name="kubernetes-admin", groups=("system:masters",))
_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1")
_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


def apiserver(
    bind_address: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    secure_port: Annotated[
        int, typer.Option("--secure-port", "--port", min=0, max=65535, help="Port; 0 is any free one.")
    ] = 6443,
    unix_socket: Annotated[Path | None, typer.Option(help="Listen on this socket instead, without TLS.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Keep data, certificates and kubeconfig here.")] = None,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Keep everything in memory.")] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Plain HTTP.")] = False,
    kubeconfig: Annotated[Path | None, typer.Option(help="Where to write the kubeconfig.")] = None,
    token_auth_file: Annotated[Path | None, typer.Option(help='Lines of token,user,uid,"groups".')] = None,
    client_ca_file: Annotated[Path | None, typer.Option(help="Take certificates of this CA for identities.")] = None,
    tls_cert_file: Annotated[Path | None, typer.Option(help="Serve with this certificate.")] = None,
    tls_private_key_file: Annotated[Path | None, typer.Option(help="The key of that certificate.")] = None,
    anonymous_auth: Annotated[
        str, typer.Option(help="true or false: whether requests without credentials come in as anonymous.")
    ] = "true",
    feature_gates: Annotated[str, typer.Option(help="Name=bool,… also AllAlpha and AllBeta.")] = "",
    authorization_mode: Annotated[str, typer.Option(help="Comma-separated, asked in order.")] = "Node,RBAC",
    aggregate_roles: Annotated[
        bool, typer.Option("--aggregate-roles", help="Gather the rules of aggregated roles: admin, edit, view, …")
    ] = False,
    audit_log_path: Annotated[Path | None, typer.Option(help="Append a line of JSON per request to this file.")] = None,
    enable_admission_plugins: Annotated[str, typer.Option(help="Comma-separated.")] = "",
    disable_admission_plugins: Annotated[str, typer.Option(help="Comma-separated.")] = "",
    runtime_config: Annotated[str, typer.Option(help="group/version=bool,… also api/all, api/beta, api/alpha.")] = "",
) -> None:
    """Serve the Kubernetes API for dynamic resource allocation."""
    if (data_dir is None) != ephemeral:
        raise UsageError("give either --data-dir DIR to keep the data, or --ephemeral to forget it")
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together")
    given = Pair(tls_cert_file, tls_private_key_file) if tls_cert_file and tls_private_key_file else None
    with _directory(data_dir) as directory, _audit(audit_log_path) as audit:
        admin_token = secrets.token_urlsafe(24) if insecure or unix_socket else ""
        settings = Settings(
            gates=FeatureGates.parse(feature_gates),
            runtime_config=runtime_config,
            tokens=_tokens(token_auth_file, admin_token),
            anonymous=_boolean("--anonymous-auth", anonymous_auth),
            modes=_modes(authorization_mode),
            aggregate_roles=aggregate_roles,
            audit=audit,
            enable_plugins=_names(enable_admission_plugins),
            disable_plugins=_names(disable_admission_plugins),
            signing_key=_signing_key(directory / "service-account.key"),
        )
        host = _Host(directory, bind_address, secure_port, unix_socket, insecure, given, client_ca_file)
        target = kubeconfig or directory / "admin.kubeconfig"
        uvloop.run(_serve(host, settings, None if ephemeral else directory / "drakit.db", target, admin_token))


class _Host:
    """Where and how the server listens."""

    def __init__(
        self,
        directory: Path,
        address: str,
        port: int,
        unix_socket: Path | None,
        insecure: bool,
        given: Pair | None,
        client_ca: Path | None,
    ) -> None:
        self.secure = not insecure and unix_socket is None
        try:
            self.socket = bind_unix(unix_socket) if unix_socket else bind(address, port)
        except OSError as error:
            raise Unavailable(f"cannot listen on {unix_socket or f'{address}:{port}'}: {error}") from None
        self._everywhere = address in _ANY
        self.reached = "127.0.0.1" if self._everywhere else address
        with _explained(directory / "pki"):
            self.authority = Authority(directory / "pki", RealClock().now()) if self.secure else None
        self.unix_socket = unix_socket
        self._given = given
        self._client_ca = client_ca

    @property
    def url(self) -> str:
        if self.unix_socket:
            return f"unix://{self.unix_socket}"
        host = f"[{self.reached}]" if ":" in self.reached else self.reached
        return f"{'https' if self.secure else 'http'}://{host}:{self.socket.getsockname()[1]}"

    def security(self) -> Security | None:
        if self.authority is None:
            return None
        names = dict.fromkeys((*_NAMES, self.reached, *(_own_names() if self._everywhere else ())))
        authorities = [self.authority.files.certificate, *([self._client_ca] if self._client_ca else [])]
        return Security(self._given or self.authority.server(tuple(names)), tuple(authorities))

    def access(self, token: str) -> Access:
        if self.authority is None:
            return Access(url=self.url, token=token)
        client = self.authority.client(ADMIN.name, ADMIN.groups, "admin")
        ca = self._given.certificate if self._given else self.authority.files.certificate
        return Access(url=self.url, ca=ca, client=client)


def _own_names() -> list[str]:
    """What other machines may call this one."""
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        found = []
    return [name, *(str(each[4][0]).partition("%")[0] for each in found)]


async def _serve(host: _Host, settings: Settings, database: Path | None, kubeconfig: Path, token: str) -> None:
    store: Store = await SQLiteStore.open(database) if database else MemoryStore()
    async with store:
        server = await build_server(store, settings=settings)
        server.address = host.url.rpartition("//")[2]
        listener = Listener(server, host.socket, host.security())
        with _explained("--kubeconfig"):
            write_kubeconfig(kubeconfig, host.access(token))
        with listener.stopped_by_signals():
            typer.echo(f"drakit apiserver: listening on {host.url}, kubeconfig {kubeconfig}")
            _spare_the_collector()
            await listener.serve()
    if host.unix_socket:
        host.unix_socket.unlink(missing_ok=True)


def _spare_the_collector() -> None:
    """Objects live long and have no cycles: walking all of them again and again would only stop the server.

    Without this the longest pause grows with the number of objects: 100 ms at 15,000 claims.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@contextmanager
def _explained(what: object) -> Iterator[None]:
    """A file that cannot be read, written or understood is named, with what it was for."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise UsageError(f"{what}: {error}") from None


@contextmanager
def _directory(data_dir: Path | None) -> Iterator[Path]:
    """The data directory; for an ephemeral server one that goes with it."""
    if data_dir is not None:
        with _explained("--data-dir"):
            data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        yield data_dir
        return
    made = Path(tempfile.mkdtemp(prefix="drakit-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _audit(path: Path | None) -> Iterator[AuditLog | None]:
    if path is None:
        yield None
        return
    with _explained("--audit-log-path"):
        log = AuditLog(path)
    with log:
        yield log


def _tokens(path: Path | None, admin_token: str) -> StaticTokens:
    users = {admin_token: ADMIN} if admin_token else {}
    if path is None:
        return StaticTokens(users)
    with _explained("--token-auth-file"):
        text = path.read_text(encoding="utf-8")
    return StaticTokens.parse(text, source=str(path)).extended(users)


def _modes(text: str) -> tuple[str, ...]:
    names = _names(text)
    unknown = [name for name in names if name not in MODES]
    if unknown or not names:
        raise UsageError(f"--authorization-mode: unknown {text!r}; known are {', '.join(MODES)}")
    return names


def _boolean(flag: str, text: str) -> bool:
    """As Kubernetes' flags have them: `--anonymous-auth=false`."""
    if text.lower() not in ("true", "false"):
        raise UsageError(f"{flag}: expected true or false, got {text!r}")
    return text.lower() == "true"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _signing_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key of service account tokens: kept, so that tokens outlive a restart."""
    with _explained(path):
        if path.exists():
            return read_key(path)
        made = new_key()
        write_private(path, key_text(made))
        return made
