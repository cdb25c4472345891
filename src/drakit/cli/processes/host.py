"""Where and how an API server of this machine listens, and where it keeps things.

In:  flags.
Out: a bound socket with its certificates, a directory, a kubeconfig's content; errors that name the flag or file.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from drakit.apiserver.auth.audit import AuditLog
from drakit.apiserver.auth.auditpolicy import EVERYTHING, AuditPolicy
from drakit.apiserver.auth.authentication import StaticTokens
from drakit.apiserver.auth.certificates import Authority, Pair, key_text, read_key, write_private
from drakit.apiserver.auth.identities import ADMIN, NODE_CLIENT
from drakit.apiserver.auth.tokens.serviceaccounts import new_key
from drakit.apiserver.http.listener import Security, bind, bind_unix
from drakit.apiserver.nodes import NodeClient, NodeFiles
from drakit.apiserver.serving.kubeconfig import ServerAccess
from drakit.apiserver.storage.encryption import NO_ENCRYPTION, Encryption
from drakit.base.clock import RealClock
from drakit.base.errors import Unavailable, UsageError
from drakit.base.inputfiles import read_settings_text
from drakit.cli.flags.files import explained
from drakit.cli.flags.groups import ServingFlags
from drakit.controllers.authority import SigningAuthority
from drakit.nodeagent.runtimes.shim.kernel import start_time

log = logging.getLogger("drakit.cli")

_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1")
BLOCKING, STRICT = "blocking", "blocking-strict"
"""What `--audit-log-mode` may say."""
_EPHEMERAL = "drakit-"
_OWNER = "owner"
"""Whose an ephemeral directory is: the process, by pid and start time."""
_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


class ListenAddress(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags say about listening. `given` is a certificate to serve with in place of one of our own."""

    address: str = "127.0.0.1"
    port: int = 0
    unix_socket: Path | None = None
    insecure: bool = False
    given: Pair | None = None
    client_ca: Path | None = None
    nodes: NodeFiles | None = None
    """Certificates for calls to node agents, in place of those of our own CA."""

    @property
    def secure(self) -> bool:
        return not self.insecure and self.unix_socket is None


class Host:
    """A place with its socket bound, and its certificate authority in a directory."""

    def __init__(self, place: ListenAddress, directory: Path) -> None:
        self.place = place
        where = place.unix_socket or f"{place.address}:{place.port}"
        try:
            self.socket = bind_unix(place.unix_socket) if place.unix_socket else bind(place.address, place.port)
        except OSError as error:
            raise Unavailable(f"cannot listen on {where}: {error}") from None
        self._everywhere = place.address in _ANY
        self.reached = "127.0.0.1" if self._everywhere else place.address
        with explained(directory / "pki"):
            self.authority = Authority(directory / "pki", RealClock().now()) if place.secure else None

    @property
    def url(self) -> str:
        if self.place.unix_socket:
            return f"unix://{self.place.unix_socket}"
        host = f"[{self.reached}]" if ":" in self.reached else self.reached
        return f"{'https' if self.place.secure else 'http'}://{host}:{self.socket.getsockname()[1]}"

    def security(self) -> Security | None:
        if self.authority is None:
            return None
        names = dict.fromkeys((*_NAMES, self.reached, *(_own_names() if self._everywhere else ())))
        client_ca = self.place.client_ca
        authorities = [self.authority.files.certificate, *([client_ca] if client_ca else [])]
        return Security(self.place.given or self.authority.server(tuple(names)), tuple(authorities))

    def node_client(self) -> NodeClient | None:
        """How the agents of nodes are reached: by the files that were given, else by certificates of our own CA."""
        if self.place.nodes is not None:
            return NodeClient(self.place.nodes)
        if self.authority is None:
            return None
        pair = self.authority.client(NODE_CLIENT.name, NODE_CLIENT.groups, "apiserver-kubelet-client")
        return NodeClient(NodeFiles(self.authority.files.certificate, pair))

    def access(self, token: str) -> ServerAccess:
        if self.authority is None:
            return ServerAccess(url=self.url, token=token)
        return ServerAccess(url=self.url, ca=self._ca, client=self.authority.client(ADMIN.name, ADMIN.groups, "admin"))

    def signer(self) -> SigningAuthority | None:
        """Who signs certificates that are asked for; nobody where there is no TLS."""
        if self.authority is None:
            return None
        files = self.authority.files
        return SigningAuthority(files.certificate.read_bytes(), files.key.read_bytes(), RealClock())

    def root_ca(self) -> str:
        """The CA by which pods verify the server, in PEM; empty without TLS."""
        with explained(self._ca):
            return read_settings_text(self._ca) if self._ca is not None else ""

    @property
    def _ca(self) -> Path | None:
        if self.authority is None:
            return None
        return self.place.given.certificate if self.place.given else self.authority.files.certificate


def _own_names() -> list[str]:
    """What other machines may call this one."""
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        found = []
    return [name, *(str(each[4][0]).partition("%")[0] for each in found)]


@contextmanager
def directory_of(flags: ServingFlags, default: Path | None = None) -> Iterator[Path]:
    """The data directory; for an ephemeral server one that goes with it."""
    data_dir = flags.data_dir or (None if flags.ephemeral else default)
    if (data_dir is None) != flags.ephemeral:
        raise UsageError("give either --data-dir DIR to keep the data, or --ephemeral to forget it")
    if data_dir is not None:
        with explained("--data-dir"):
            data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            _tighten(data_dir)
        yield data_dir
        return
    made = Path(tempfile.mkdtemp(prefix=_EPHEMERAL))
    write_private(made / _OWNER, f"{os.getpid()} {start_time(os.getpid())}".encode())
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def forsaken_directories() -> list[Path]:
    """Directories that ephemeral servers of this user left behind when they were killed."""
    found = []
    for each in Path(tempfile.gettempdir()).glob(f"{_EPHEMERAL}*/{_OWNER}"):
        try:
            pid, _, start = each.read_text().partition(" ")
            # The pid may belong to another process by now; with the start time it names one process for good.
            if each.stat().st_uid == os.getuid() and pid.isdecimal() and start_time(int(pid)) != start:
                found.append(each.parent)
        except OSError:
            continue  # somebody else's, or gone by now
    return found


@contextmanager
def audit_log(path: Path | None, policy: Path | None = None, mode: str = BLOCKING) -> Iterator[AuditLog | None]:
    if mode not in (BLOCKING, STRICT):
        raise UsageError(f"--audit-log-mode: expected {BLOCKING} or {STRICT}, got {mode!r}")
    if path is None:
        if mode == STRICT:
            raise UsageError(f"--audit-log-mode {STRICT} needs --audit-log-path")
        if policy is not None:
            raise UsageError("--audit-policy-file needs --audit-log-path")
        yield None
        return
    rules = EVERYTHING
    if policy is not None:
        with explained("--audit-policy-file"):
            rules = AuditPolicy.parse(read_settings_text(policy), source=str(policy))
    with explained("--audit-log-path"):
        log = AuditLog(path, policy=rules, strict=mode == STRICT)
    with log:
        yield log


def _tighten(directory: Path) -> None:
    """Keys and secrets are in it: nobody else may look in. OSError if it belongs to somebody else."""
    if directory.stat().st_mode & 0o077:
        log.warning("%s could be read by others: now only its owner can", directory)
        directory.chmod(0o700)


def encryption_of(path: Path | None) -> Encryption:
    if path is None:
        return NO_ENCRYPTION
    with explained("--encryption-provider-config"):
        return Encryption.parse(read_settings_text(path), source=str(path))


def kept_token(path: Path) -> str:
    """An administrator's token: kept, so that kubeconfigs and open pages outlive a restart."""
    with explained(path):
        if path.exists() and (found := path.read_text(encoding="ascii").strip()):
            return found
        made = secrets.token_urlsafe(24)
        write_private(path, made.encode())
        return made


def static_tokens(path: Path | None, admin_token: str) -> StaticTokens:
    users = {admin_token: ADMIN} if admin_token else {}
    if path is None:
        return StaticTokens(users)
    with explained("--token-auth-file"):
        text = read_settings_text(path)
    return StaticTokens.parse(text, source=str(path)).extended(users)


def signing_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key of service account tokens: kept, so that tokens outlive a restart."""
    with explained(path):
        if path.exists():
            return read_key(path)
        made = new_key()
        write_private(path, key_text(made))
        return made
