"""How a cluster is reached, as kubectl and every other client reads it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from navarch.cluster.embedded.certificates import Pair
from navarch.cluster.server.wire.request import Json

if TYPE_CHECKING:
    from navarch.client import Config

__all__ = ["Access"]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cluster is, whom to believe there, and what proves the administrator: a certificate, or a token."""

    name: str
    url: str
    authority: bytes
    """The certificate of the authority, as PEM."""
    admin: Pair
    token: str

    def __repr__(self) -> str:
        return f"<Access to {self.url}>"

    def config(self, token: str = "", namespace: str = "default") -> Config:
        """For a client of whoever the token proves; without one, of the administrator."""
        from navarch.client import Config  # noqa: PLC0415 - a server without clients of its own needs none

        given = Config(server=self.url, ca_data=self.authority, namespace=namespace, origin=self.name)
        if token:
            return msgspec.structs.replace(given, token=token)
        return msgspec.structs.replace(
            given, client_certificate_data=self.admin.certificate, client_key_data=self.admin.key
        )

    def kubeconfig(self) -> Json:
        """The administrator's, with the client certificate in it."""
        user = {
            "client-certificate-data": _text(self.admin.certificate),
            "client-key-data": _text(self.admin.key),
        }
        cluster = {"server": self.url, "certificate-authority-data": _text(self.authority)}
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
        """The same as the content of a file: JSON, which is YAML."""
        return msgspec.json.format(msgspec.json.encode(self.kubeconfig()), indent=2) + b"\n"


def _text(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
