"""The key that signs service account tokens, and the JSON Web Tokens that it signs."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Final, Self

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from navarch.cluster.server.wire.request import Json
from navarch.errors import ConfigError

_HALF: Final = 32
"""Bytes of each half of a signature with P-256."""
_NOT_SIGNED: Final = "go-jose/go-jose: error in cryptographic primitive"
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class InvalidTokenError(Exception):
    """A token that proves nothing; the text says why, as Kubernetes does, and never shows the token."""


class SigningKey:
    """A private key for tokens: P-256 (ES256) or RSA (RS256)."""

    def __init__(self, private: PrivateKey) -> None:
        if isinstance(private, ec.EllipticCurvePrivateKey) and not isinstance(private.curve, ec.SECP256R1):
            raise ConfigError(f"expected an RSA key or one on the curve P-256, got one on {private.curve.name}")
        self._private = private
        self._public = private.public_key()
        self.algorithm = "ES256" if isinstance(private, ec.EllipticCurvePrivateKey) else "RS256"
        encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        self.id = _text(hashlib.sha256(self._public.public_bytes(encoding, form)).digest())
        self._head = _text(msgspec.json.encode({"alg": self.algorithm, "kid": self.id}))

    @classmethod
    def generate(cls) -> Self:
        """A new key on P-256: made a thousand times faster than one for RSA, which a server that starts per test needs."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def from_pem(cls, pem: bytes) -> Self:
        """The key of a PEM file; raises ConfigError."""
        try:
            private = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as error:
            raise ConfigError("expected a private key as PEM, without a password") from error
        if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise ConfigError(f"expected an RSA key or one on the curve P-256, got {type(private).__name__}")
        return cls(private)

    def to_pem(self) -> bytes:
        """For a file that only its owner can read."""
        encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self._private.private_bytes(encoding, form, serialization.NoEncryption())

    def web_key(self) -> Json:
        """The public key, as a JSON web key."""
        key: Json = {"use": "sig", "kty": "EC", "kid": self.id}
        numbers = self._public.public_numbers()
        if isinstance(numbers, ec.EllipticCurvePublicNumbers):
            point = {"x": _text(numbers.x.to_bytes(_HALF, "big")), "y": _text(numbers.y.to_bytes(_HALF, "big"))}
            return {**key, "crv": "P-256", "alg": self.algorithm, **point}
        return {**key, "kty": "RSA", "alg": self.algorithm, "n": _number(numbers.n), "e": _number(numbers.e)}

    def sign(self, claims: Json) -> str:
        """A token with these claims."""
        message = f"{self._head}.{_text(msgspec.json.encode(claims, order='sorted'))}"
        return f"{message}.{_text(self._signature(message.encode()))}"

    def verify(self, token: str) -> None:
        """Raises `InvalidTokenError` unless this key signed the token, which has three parts."""
        message, _, signature = token.rpartition(".")
        head = decode_part(message.partition(".")[0])
        if head.get("kid") not in (None, "", self.id):
            raise InvalidTokenError("invalid signature, no keys found")
        if head.get("alg") != self.algorithm:
            raise InvalidTokenError(_NOT_SIGNED)
        try:
            self._check(_bytes(signature), message.encode())
        except (InvalidSignature, ValueError) as error:
            raise InvalidTokenError(_NOT_SIGNED) from error

    def _signature(self, message: bytes) -> bytes:
        if isinstance(self._private, rsa.RSAPrivateKey):
            return self._private.sign(message, padding.PKCS1v15(), hashes.SHA256())
        first, second = decode_dss_signature(self._private.sign(message, ec.ECDSA(hashes.SHA256())))
        return first.to_bytes(_HALF, "big") + second.to_bytes(_HALF, "big")

    def _check(self, signature: bytes, message: bytes) -> None:
        if isinstance(self._public, rsa.RSAPublicKey):
            self._public.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
            return
        if len(signature) != 2 * _HALF:
            raise InvalidSignature
        first, second = int.from_bytes(signature[:_HALF], "big"), int.from_bytes(signature[_HALF:], "big")
        self._public.verify(encode_dss_signature(first, second), message, ec.ECDSA(hashes.SHA256()))


def decode_part(part: str) -> dict[str, Any]:
    """The object in the first or second part of a token; raises `InvalidTokenError`."""
    try:
        found = msgspec.json.decode(_bytes(part))
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise InvalidTokenError("go-jose/go-jose: compact JWS format must have three parts") from error
    if not isinstance(found, dict):
        raise InvalidTokenError("go-jose/go-jose: compact JWS format must have three parts")
    return found


def _number(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """Base64 for URLs without padding, and nothing else: Python's own decoder skips what it does not know."""
    data = text.encode()
    try:
        decoded = base64.b64decode(data + b"=" * (-len(data) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("expected base64 for URLs without padding") from error
    if b"=" in data or b"+" in data or b"/" in data:
        raise ValueError("expected base64 for URLs without padding")
    return decoded
