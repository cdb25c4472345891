"""View of CertificateSigningRequest."""

from __future__ import annotations

from collections.abc import Mapping

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.wire import constant, mapping, nested, text
from drakit.base.structs import Model


class SigningRequestCondition(Model):
    type: str = text()
    status: str = text()
    reason: str = ""
    message: str = ""
    last_update_time: str | None = None
    last_transition_time: str | None = None


class SigningRequestSpec(Model):
    """`request` is a PEM block, in base64. `username` and `groups` are those of who asked, as the server saw them."""

    request: str = text()
    signer_name: str = text()
    expiration_seconds: int | None = None
    usages: tuple[str, ...] = ()
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = mapping()


class SigningRequestStatus(Model):
    conditions: tuple[SigningRequestCondition, ...] = ()
    certificate: str = ""


class CertificateSigningRequest(Model):
    kind: str = constant("CertificateSigningRequest")
    api_version: str = constant("certificates.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: SigningRequestSpec = nested(SigningRequestSpec)
    status: SigningRequestStatus = nested(SigningRequestStatus)
