"""The credentials of one cluster: its certificate authority, signed certificates, and the kubeconfig of its administrator."""

from __future__ import annotations

import base64
import ipaddress
import ssl
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from navarch._base.clock import Clock
from navarch.cluster.server.wire.request import Json, User
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch.client import Config


class ClusterAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The URL of a cluster, its authority, and the administrator's certificate and token."""

    name: str
    url: str
    authority: bytes
    """The certificate of the authority, as PEM."""
    admin: X509KeyPair
    token: str

    def __repr__(self) -> str:
        return f"<ClusterAccess to {self.url}>"

    def config(self, token: str = "", namespace: str = "default") -> Config:
        """Returns the config of a client with this token; without one, with the administrator's certificate."""
        from navarch.client import Config  # noqa: PLC0415 - a server without clients of its own needs none

        given = Config(server=self.url, ca_data=self.authority, namespace=namespace, origin=self.name)
        if token:
            return msgspec.structs.replace(given, token=token)
        return msgspec.structs.replace(
            given, client_certificate_data=self.admin.certificate, client_key_data=self.admin.key
        )

    def kubeconfig(self) -> Json:
        """Returns the administrator's kubeconfig with the client certificate."""
        user = {
            "client-certificate-data": _base64(self.admin.certificate),
            "client-key-data": _base64(self.admin.key),
        }
        cluster = {"server": self.url, "certificate-authority-data": _base64(self.authority)}
        context = {"cluster": self.name, "user": f"{self.name}-admin", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": f"{self.name}-admin", "user": user}],
            "contexts": [{"name": self.name, "context": context}],
            "current-context": self.name,
        }

    def kubeconfig_file(self) -> bytes:
        """Returns the kubeconfig as the content of a file: JSON, which is YAML."""
        return msgspec.json.format(msgspec.json.encode(self.kubeconfig()), indent=2) + b"\n"


def _base64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


_EARLIER: Final = timedelta(minutes=5)
_LONGEST: Final = timedelta(days=365)
_SHORTEST: Final = timedelta(minutes=10)


def sign_request(authority: X509KeyPair, clock: Clock, request: bytes, seconds: int | None) -> bytes:
    """Signs a PEM certificate signing request of a client; returns the PEM certificate.

    It is valid for a year, or for `seconds` but at least ten minutes. Raises ValueError if `request` is not a request.
    """
    asked = x509.load_pem_x509_csr(request)
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    key = serialization.load_pem_private_key(authority.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "an authority has no other"
    lasting = _LONGEST if seconds is None else max(_SHORTEST, min(_LONGEST, timedelta(seconds=seconds)))
    now = clock.now()
    builder = x509.CertificateBuilder().subject_name(asked.subject).issuer_name(issuer.subject)
    builder = builder.public_key(asked.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _EARLIER).not_valid_after(now + lasting)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    signed = builder.add_extension(known, critical=False).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


_VALID: Final = timedelta(days=3650)
_SERVICE: Final = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_HOSTS: Final = ("localhost", *_SERVICE)
_ADDRESSES: Final = ("127.0.0.1", "::1", "10.0.0.1")


_SIGNS: Final = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class X509KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "<X509KeyPair: a certificate and its private key>"


class ClusterAuthority:
    """Signs the certificates of one cluster. Raises `ConfigError` for a pair that is no PEM certificate with an EC key."""

    def __init__(self, pair: X509KeyPair) -> None:
        self.pair = pair
        try:
            key = serialization.load_pem_private_key(pair.key, password=None)
            self._name = x509.load_pem_x509_certificate(pair.certificate).subject
        except (ValueError, TypeError) as error:
            raise ConfigError("expected the certificate and the private key of an authority, as PEM") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigError(f"expected a private key on an elliptic curve, got {type(key).__name__}")
        self._key = key

    @classmethod
    def make(cls, clock: Clock) -> Self:
        """Returns a new authority."""
        key, name = _new_key(), _name("navarch-ca")
        builder = _builder(clock, name, name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_SIGNS, critical=True)  # or strict clients refuse it, as those of Python 3.13
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(_pair(builder.sign(key, hashes.SHA256()), key))

    def server_pair(self, clock: Clock, service: str = "") -> X509KeyPair:
        """Returns a certificate for a server on loopback addresses and on the address `service`."""
        names = [x509.DNSName(host) for host in _HOSTS]
        known = [*_ADDRESSES, service] if service and service not in _ADDRESSES else _ADDRESSES
        addresses = [x509.IPAddress(ipaddress.ip_address(address)) for address in known]
        extension = x509.SubjectAlternativeName([*names, *addresses])
        return self._issued(clock, _name("kube-apiserver"), [ExtendedKeyUsageOID.SERVER_AUTH], extension)

    def peer_pair(self, clock: Clock, name: str) -> X509KeyPair:
        """Returns a certificate for servers and clients on loopback."""
        extension = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(_ADDRESSES[0]))])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issued(clock, _name(name), usages, extension)

    def client_pair(self, clock: Clock, user: User) -> X509KeyPair:
        """Returns a client certificate that authenticates this user."""
        return self._issued(clock, _name(user.name, *user.groups), [ExtendedKeyUsageOID.CLIENT_AUTH], None)

    def _issued(
        self,
        clock: Clock,
        name: x509.Name,
        usages: list[x509.ObjectIdentifier],
        extension: x509.SubjectAlternativeName | None,
    ) -> X509KeyPair:
        key = _new_key()
        builder = _builder(clock, name, self._name, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def server_context(authority: ClusterAuthority, pair: X509KeyPair) -> ssl.SSLContext:
    """Returns a TLS context of a server that accepts, but does not demand, client certificates of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory(prefix="navarch-") as folder:  # readable by this user alone
        chain = Path(folder, "chain.pem")
        chain.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(chain)
    return context


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(common: str, *organizations: str) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    clock: Clock, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = clock.now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _VALID)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> X509KeyPair:
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return X509KeyPair(certificate.public_bytes(encoding), private)
