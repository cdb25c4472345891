"""The plugins CertificateApproval, CertificateSigning and CertificateSubjectRestriction.

In:  requests for certificates that are made, approved or signed.
Out: refusals: who approves or signs for a signer needs the verb on it; nobody becomes an administrator by a request.
"""

from __future__ import annotations

import base64

from cryptography import x509
from cryptography.x509.oid import NameOID

from drakit.api.exchange import User
from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.auth.authorization import Attributes, Authorizer, Decision
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.base import fields, status
from drakit.base.fields import FieldError, Path

_REQUEST = known_kind("certificates.k8s.io/v1", "CertificateSigningRequest")
_CLIENT = "kubernetes.io/kube-apiserver-client"
_MASTERS = "system:masters"
_LEAST_SECONDS = 600
_USAGES = frozenset(
    (
        "signing", "digital signature", "content commitment", "key encipherment", "key agreement", "data encipherment",
        "cert sign", "crl sign", "encipher only", "decipher only", "any", "server auth", "client auth", "code signing",
        "email protection", "s/mime", "ipsec end system", "ipsec tunnel", "ipsec user", "timestamping", "ocsp signing",
        "microsoft sgc", "netscape sgc",
    )
)  # fmt: skip


async def _may(authorizer: Authorizer, user: User, verb: str, signer: str) -> bool:
    """The verb on the signer, or on all signers of its domain."""
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        asked = Attributes(
            user=user, verb=verb, group="certificates.k8s.io", version="*", resource="signers", name=name
        )
        if (await authorizer.authorize(asked)).decision is Decision.ALLOW:
            return True
    return False


def _signer(change: ObjectChange) -> str:
    old = change.old.document if change.old is not None else {}
    return str((old.get("spec") or {}).get("signerName", ""))


class CertificateApproval(AdmissionPlugin):
    name = "CertificateApproval"

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind is _REQUEST and operation == UPDATE and subresource == "approval"

    async def validate(self, change: ObjectChange) -> None:
        signer = _signer(change)
        if not await _may(self._authorizer, change.user, "approve", signer):
            raise change.forbid(f'user not permitted to approve requests with signerName "{signer}"')


class CertificateSigning(AdmissionPlugin):
    name = "CertificateSigning"

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind is _REQUEST and operation == UPDATE and subresource == "status"

    async def validate(self, change: ObjectChange) -> None:
        old = (change.old.document.get("status") or {}) if change.old is not None else {}
        new, signer = change.document.get("status") or {}, _signer(change)
        same = all(new.get(name) == old.get(name) for name in ("certificate", "conditions"))
        if not same and not await _may(self._authorizer, change.user, "sign", signer):
            raise change.forbid(f'user not permitted to sign requests with signerName "{signer}"')


class CertificateSubjectRestriction(AdmissionPlugin):
    name = "CertificateSubjectRestriction"

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind is _REQUEST and operation == CREATE and not subresource

    async def validate(self, change: ObjectChange) -> None:
        spec, found = change.document["spec"], []
        asked: x509.CertificateSigningRequest | None = None
        try:
            asked = x509.load_pem_x509_csr(base64.b64decode(spec.get("request", "")))
        except ValueError:
            why = "PEM block type must be CERTIFICATE REQUEST"
            found.append(fields.invalid(Path("spec.request"), spec.get("request", ""), why))
        found += _broken(spec)
        if found:
            raise ApiError(status.invalid(_REQUEST.kind, _REQUEST.group, change.name, found))
        if asked is not None and spec["signerName"] == _CLIENT and _MASTERS in _groups(asked):
            raise change.forbid(f"use of {_CLIENT} signer with {_MASTERS} group is not allowed")


def _groups(asked: x509.CertificateSigningRequest) -> list[str]:
    return [str(each.value) for each in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def _broken(spec: Plain) -> list[FieldError]:
    found, usages, path = [], spec.get("usages") or [], Path("spec.usages")
    if not usages:
        found.append(fields.required(path))
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            found.append(fields.not_supported(path[index], usage, sorted(_USAGES)))
        elif usage in usages[:index]:
            found.append(fields.duplicate(path[index], usage))
    signer = spec.get("signerName", "")
    if not signer:
        found.append(fields.required(Path("spec.signerName")))
    elif "/" not in signer:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        found.append(fields.invalid(Path("spec.signerName"), signer, why))
    elif signer == "kubernetes.io/legacy-unknown":
        why = "the legacy signerName is not allowed via this API version"
        found.append(fields.invalid(Path("spec.signerName"), signer, why))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _LEAST_SECONDS:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        found.append(fields.invalid(Path("spec.expirationSeconds"), seconds, why))
    return found
