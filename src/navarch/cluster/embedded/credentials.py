"""The credentials of one cluster: its certificate authority, signed certificates, and the kubeconfig of its administrator."""

from __future__ import annotations

import base64
import ssl
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self

import msgspec

from navarch._base.clock import Clock
from navarch._base.tls import pem_file
from navarch.certificates import CertificateAuthority, CertificateSubject, KeyPair
from navarch.cluster.server.wire.request import Json, User

if TYPE_CHECKING:
    from navarch.client import Config


class ClusterAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The URL of a cluster, its authority, and the administrator's certificate and token."""

    name: str
    url: str
    authority: bytes
    """The certificate of the authority, as PEM."""
    admin: KeyPair
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


_LONGEST: Final = timedelta(days=365)
_SHORTEST: Final = timedelta(minutes=10)


def sign_request(authority: KeyPair, clock: Clock, request: bytes, seconds: int | None) -> bytes:
    """Signs a PEM certificate signing request of a client; returns the PEM certificate.

    It is valid for a year, or for `seconds` but at least ten minutes. Raises ValueError if `request` is not a request.
    """
    lifetime = _LONGEST if seconds is None else max(_SHORTEST, min(_LONGEST, timedelta(seconds=seconds)))
    return CertificateAuthority(authority).sign_request(request, clock.now(), lifetime)


_VALID: Final = timedelta(days=3650)
_SERVICE: Final = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
_HOSTS: Final = ("localhost", *_SERVICE)
_ADDRESSES: Final = ("127.0.0.1", "::1", "10.0.0.1")


class ClusterAuthority(CertificateAuthority):
    """Signs the certificates of one cluster."""

    @classmethod
    def make(cls, clock: Clock) -> Self:
        """Returns a new authority."""
        return cls.create("navarch-ca", clock.now(), _VALID)

    def server_pair(self, clock: Clock, service: str = "") -> KeyPair:
        """Returns a certificate for a server on loopback addresses and on the address `service`."""
        known = (*_ADDRESSES, service) if service and service not in _ADDRESSES else _ADDRESSES
        subject = CertificateSubject(common_name="kube-apiserver", hosts=(*_HOSTS, *known))
        return self.issue(subject, clock.now(), _VALID)

    def peer_pair(self, clock: Clock, name: str) -> KeyPair:
        """Returns a certificate for servers and clients on loopback."""
        subject = CertificateSubject(common_name=name, hosts=_ADDRESSES[:1], usages=("server", "client"))
        return self.issue(subject, clock.now(), _VALID)

    def client_pair(self, clock: Clock, user: User) -> KeyPair:
        """Returns a client certificate that authenticates this user."""
        subject = CertificateSubject(common_name=user.name, organizations=tuple(user.groups), usages=("client",))
        return self.issue(subject, clock.now(), _VALID)


def server_context(authority: ClusterAuthority, pair: KeyPair) -> ssl.SSLContext:
    """Returns a TLS context of a server that accepts, but does not demand, client certificates of this authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    with pem_file(pair.certificate + pair.key) as chain:
        context.load_cert_chain(chain)
    return context
