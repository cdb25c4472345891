"""What a request for a certificate asks for, and whether a signer may give it. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from cryptography import x509
from cryptography.x509.oid import NameOID

from drakit.api.objects.certificates import CertificateSigningRequest
from drakit.api.objects.partial import Partial

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING = "kubernetes.io/kubelet-serving"
NODES = "system:nodes"
NODE_PREFIX = "system:node:"
_CLIENT_USAGES = frozenset({"digital signature", "key encipherment", "client auth"})
_SERVING_USAGES = frozenset({"digital signature", "key encipherment", "server auth"})
_ANY_CLIENT = _CLIENT_USAGES
_NAME_TYPES = (
    (x509.DNSName, "DNS"), (x509.RFC822Name, "email"), (x509.IPAddress, "IP"), (x509.UniformResourceIdentifier, "URI"),
)  # fmt: skip
OneRequest = Partial[CertificateSigningRequest]


class NotPermitted(Exception):
    """A signer does not give what is asked for."""


def parse_request(text: str) -> x509.CertificateSigningRequest:
    """Read the PEM block, in base64; ValueError for anything else."""
    return x509.load_pem_x509_csr(base64.b64decode(text, validate=False))


def decided(request: CertificateSigningRequest) -> set[str]:
    """Which of Approved, Denied and Failed hold."""
    return {each.type for each in request.status.conditions}


def common_name(asked: x509.CertificateSigningRequest) -> str:
    found = asked.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def organizations(asked: x509.CertificateSigningRequest) -> list[str]:
    return [str(each.value) for each in asked.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def alternative_names(asked: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    try:
        return list(asked.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def check_kubelet_client(asked: x509.CertificateSigningRequest, usages: Iterable[str]) -> None:
    """Raise NotPermitted unless this is what a kubelet asks for to reach the server."""
    if organizations(asked) != [NODES]:
        raise NotPermitted("subject organization is not system:nodes")
    for type_, words in _NAME_TYPES:
        if any(isinstance(each, type_) for each in alternative_names(asked)):
            raise NotPermitted(f"{words} subjectAltNames are not allowed")
    if not common_name(asked).startswith(NODE_PREFIX):
        raise NotPermitted("subject common name does not begin with system:node: ")
    _check_usages(usages, _CLIENT_USAGES)


def check_kubelet_serving(asked: x509.CertificateSigningRequest, usages: Iterable[str]) -> None:
    """Raise NotPermitted unless this is what a kubelet asks for to be reached."""
    if organizations(asked) != [NODES]:
        raise NotPermitted("subject organization is not system:nodes")
    names = alternative_names(asked)
    if not any(isinstance(each, x509.DNSName | x509.IPAddress) for each in names):
        raise NotPermitted("DNS or IP subjectAltName is required")
    if any(isinstance(each, x509.RFC822Name) for each in names):
        raise NotPermitted("email subjectAltNames are not allowed")
    if any(isinstance(each, x509.UniformResourceIdentifier) for each in names):
        raise NotPermitted("URI subjectAltNames are not allowed")
    _check_usages(usages, _SERVING_USAGES)
    if not common_name(asked).startswith(NODE_PREFIX):
        raise NotPermitted("subject common name does not begin with system:node: ")


def check_client(_asked: x509.CertificateSigningRequest, usages: Iterable[str]) -> None:
    """Raise NotPermitted unless the certificate is for clients and nothing else."""
    given = frozenset(usages)
    if "client auth" not in given or not given <= _ANY_CLIENT:
        raise NotPermitted(f"usages did not match {_listed(_CLIENT_USAGES)}")


def _check_usages(usages: Iterable[str], wanted: frozenset[str]) -> None:
    # Keys that are not RSA do not encipher.
    if frozenset(usages) not in (wanted, wanted - {"key encipherment"}):
        raise NotPermitted(f"usages did not match {_listed(wanted)}")


def _listed(words: Iterable[str]) -> str:
    return "[" + " ".join(sorted(words)) + "]"
