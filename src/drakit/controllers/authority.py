"""A certificate authority that signs what others ask for.

In:  its certificate and key, in PEM.
Out: certificates for the subject, the names and the key of a request, with the usages that were approved.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from drakit.base.clock import Clock

_BACKDATE = timedelta(minutes=5)  # clocks differ
_PURPOSES = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}


class SigningAuthority:
    def __init__(self, certificate: bytes, key: bytes, clock: Clock) -> None:
        """Raise ValueError for what is no certificate, or a key that cannot sign."""
        self._certificate = x509.load_pem_x509_certificate(certificate)
        loaded = serialization.load_pem_private_key(key, password=None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ValueError("expected an RSA or an elliptic curve key")
        if loaded.public_key() != self._certificate.public_key():
            raise ValueError("certificate and key do not belong together")
        self._key = loaded
        self._clock = clock

    def sign(self, request: x509.CertificateSigningRequest, usages: Iterable[str], life: timedelta) -> bytes:
        """The certificate, in PEM. It never outlives the authority."""
        now, wanted = self._clock.now(), set(usages)
        end = min(now + life, self._certificate.not_valid_after_utc)
        purposes = [_PURPOSES[each] for each in sorted(wanted & _PURPOSES.keys())]
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._certificate.subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATE)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(wanted), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        try:
            names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            builder = builder.add_extension(names.value, critical=names.critical)
        except x509.ExtensionNotFound:
            pass
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _key_usage(wanted: set[str]) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature="digital signature" in wanted, key_encipherment="key encipherment" in wanted,
        content_commitment=False, data_encipherment=False, key_agreement=False, key_cert_sign=False, crl_sign=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
