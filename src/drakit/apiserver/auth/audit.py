"""The audit log: one line of JSON for each request.

In:  each request with its user, decision and response code.
Out: lines in a file, in the form of Kubernetes' audit events. They contain no body, no token and no other header.
"""

from __future__ import annotations

import errno
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import urlencode

import msgspec

from drakit.api.exchange import Content, OneObject, Request, StatusContent, User
from drakit.apiserver.auth.auditpolicy import EVERYTHING, NAMES, AuditPolicy, Level
from drakit.apiserver.auth.authorization import AuthorizationResult, Decision
from drakit.apiserver.auth.users import user_info
from drakit.apiserver.failures import internal
from drakit.apiserver.requests.routing import RequestInfo

log = logging.getLogger("drakit.apiserver.auth")


class Trail(msgspec.Struct):
    """What the audit log needs to know about a request. The server fills it in on the way."""

    begun: datetime
    audit_id: str = ""
    user: User | None = None
    acting_as: User | None = None
    decision: str = ""
    reason: str = ""
    body: bytes = b""
    """The body, once it was read."""
    annotations: dict[str, str] = {}
    """Notes of admission plugins."""

    def decided(self, result: AuthorizationResult) -> AuthorizationResult:
        self.decision = "allow" if result.decision is Decision.ALLOW else "forbid"
        self.reason = result.reason
        return result


class AuditLog:
    """Appends to a file that only its owner can read. A line that cannot be written is lost, counted and told.

    A strict log has a line for each request before it is handled as well. Without that line the request is refused.
    """

    def __init__(
        self,
        path: Path,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        *,
        policy: AuditPolicy = EVERYTHING,
        strict: bool = False,
    ) -> None:
        self._policy = policy
        self._strict = strict
        self._failing = False
        self._is_torn = False
        self.lost = 0
        """Lines that could not be written."""
        # Unbuffered appends: a line is in the file when the response is sent, and writers do not mix lines.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._file: IO[bytes] = os.fdopen(descriptor, "ab", buffering=0)
        self._new_id = new_id

    def begin(self, request: Request, info: RequestInfo, trail: Trail) -> None:
        """Note that a request has come, if the log is strict. Raise 500 when that cannot be written."""
        level = self._policy.level(trail.user, info)
        if not self._strict or level is Level.NONE:
            return
        event = describe(request, info, trail)
        trail.audit_id = self._new_id()
        event |= {"level": NAMES[level], "stage": "RequestReceived"}
        if not self._write(event, trail, trail.begun):
            raise internal("failed to store audit event")

    def note(
        self,
        request: Request,
        info: RequestInfo | None,
        trail: Trail,
        code: int,
        ended: datetime,
        content: Content | None = None,
    ) -> None:
        level = self._policy.level(trail.user, info)
        if level is Level.NONE:
            return
        event = describe(request, info, trail) | {
            "level": NAMES[level],
            # A watch or a connection is logged when it begins: its end may be hours later.
            "stage": "ResponseStarted" if _goes_on(info, code) else "ResponseComplete",
            "responseStatus": {"code": code},
        }
        if level >= Level.REQUEST and (sent := _sent(request, trail)) is not None:
            event["requestObject"] = sent
        if level >= Level.RESPONSE and isinstance(content, OneObject | StatusContent):
            event["responseObject"] = msgspec.Raw(content.encode().rstrip())
        self._write(event, trail, ended)

    def _write(self, event: dict[str, Any], trail: Trail, at: datetime) -> bool:
        """Whether it could be written. Of many failures one after the other, the first is told."""
        event |= {
            "auditID": trail.audit_id or self._new_id(),
            "requestReceivedTimestamp": _micro(trail.begun),
            "stageTimestamp": _micro(at),
        }
        # Behind half a line, which was all that the disk had room for, a new one begins.
        line = (b"\n" if self._is_torn else b"") + msgspec.json.encode(event) + b"\n"
        try:
            written = self._file.write(line)
            self._is_torn = bool(written) and written != len(line)
            if written != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.lost += 1
            if not self._failing:
                log.error("audit: cannot write: %s", error)
            self._failing = True
            return False
        self._failing = False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _sent(request: Request, trail: Trail) -> Any:
    """What the client sent, if it is JSON; of anything else how long it is."""
    if request.document is not None:
        return request.document if isinstance(request.document, Mapping) else msgspec.to_builtins(request.document)
    body = trail.body or request.body
    try:
        return msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"bytes": len(body)}


def describe(request: Request, info: RequestInfo | None, trail: Trail) -> dict[str, Any]:
    """The event without its stage and its times."""
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "requestURI": request.path + (f"?{urlencode(request.query)}" if request.query else ""),
        "verb": info.verb if info else request.method.lower(),
        "user": user_info(trail.user) if trail.user else {},
    }
    if trail.acting_as is not None:
        event["impersonatedUser"] = user_info(trail.acting_as)
    if request.source:
        event["sourceIPs"] = [request.source]
    if agent := request.headers.get("user-agent"):
        event["userAgent"] = agent
    if info is not None and info.resource:
        event["objectRef"] = _object(info)
    if trail.decision:
        event["annotations"] = {
            "authorization.k8s.io/decision": trail.decision,
            "authorization.k8s.io/reason": trail.reason,
            **trail.annotations,
        }
    return event


def _goes_on(info: RequestInfo | None, code: int) -> bool:
    """Whether the response has only begun: a watch, a log, a connection to a pod."""
    if info is None:
        return False
    return info.verb == "watch" or code == 101 or (info.subresource == "log" and code == 200)


def _object(info: RequestInfo) -> dict[str, str]:
    parts = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {name: value for name, value in parts.items() if value}


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
