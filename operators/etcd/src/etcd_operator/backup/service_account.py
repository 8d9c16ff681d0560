"""Tokens that a Google service account signs for itself, with the key that its Secret has."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from etcd_operator.backup.faults import PlaceError

if TYPE_CHECKING:
    from obstore.store import GCSCredential

__all__ = ["ServiceAccount"]

_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.full_control"
_LIFETIME: Final = timedelta(hours=1)
_LONGEST_KEY: Final = 8 * 1024
"""Of a key in PEM; one of 4096 bits has 3,300 bytes. What is longer takes seconds to be checked."""


@dataclass(frozen=True, slots=True, repr=False)
class ServiceAccount:
    """Provides credentials to obstore. Whatever else is in the file of the key, such as a URL, is not used."""

    email: str
    key_id: str
    key: RSAPrivateKey
    now: Callable[[], datetime]

    @classmethod
    def of(cls, fields: Mapping[str, Any], now: Callable[[], datetime], secret: str) -> ServiceAccount:
        """From the fields of `credentials.json`; raises `PlaceError` without what is in them."""
        pem = str(fields["private_key"]).encode()
        try:
            key = load_pem_private_key(pem, password=None) if len(pem) <= _LONGEST_KEY else None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, RSAPrivateKey):
            raise PlaceError(f"the store cannot be opened with what the Secret {secret} has") from None
        return cls(str(fields["client_email"]), str(fields.get("private_key_id", "")), key, now)

    def __call__(self) -> GCSCredential:
        """A token for an hour."""
        now = self.now()
        claims = {
            "iss": self.email,
            "sub": self.email,
            "scope": _SCOPE,
            "iat": int(now.timestamp()),
            "exp": int((now + _LIFETIME).timestamp()),
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": self.key_id}
        unsigned = f"{_text(msgspec.json.encode(head))}.{_text(msgspec.json.encode(claims))}"
        signature = self.key.sign(unsigned.encode(), PKCS1v15(), SHA256())
        return {"token": f"{unsigned}.{_text(signature)}", "expires_at": now + _LIFETIME}


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
