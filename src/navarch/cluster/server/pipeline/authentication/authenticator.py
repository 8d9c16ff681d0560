"""The authenticator: client certificates, bearer tokens, anonymous requests."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from navarch._base.clock import Clock
from navarch.cluster.server.pipeline.authentication.signing import InvalidTokenError
from navarch.cluster.server.pipeline.authentication.tokens import Proof, ServiceAccountTokens
from navarch.cluster.server.pipeline.authentication.users import ANONYMOUS, CREDENTIAL_ID, authenticated
from navarch.cluster.server.wire.request import ApiRequest, User

_USER_UID: Final = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_MOST_REMEMBERED: Final = 1024


class InvalidCertificateError(Exception):
    """A certificate that cannot be read, or is not valid now, or says more than one uid."""


class ClientCertificates:
    """The user of a certificate: its common name, with its organizations as groups."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: dict[bytes, tuple[User | None, datetime, datetime]] = {}

    def user(self, der: bytes) -> User | None:
        """None if the certificate names nobody; raises `InvalidCertificateError`."""
        if der not in self._read:
            if len(self._read) >= _MOST_REMEMBERED:
                self._read.clear()
            self._read[der] = _read(der)
        user, begin, end = self._read[der]
        if not begin <= self._clock.now() <= end:
            raise InvalidCertificateError("x509: certificate has expired or is not yet valid")
        return user


def _read(der: bytes) -> tuple[User | None, datetime, datetime]:
    try:
        certificate = x509.load_der_x509_certificate(der)
        user = _user(certificate.subject, hashlib.sha256(der).hexdigest())
    except ValueError as error:
        raise InvalidCertificateError("x509: the certificate cannot be read") from error
    return user, certificate.not_valid_before_utc, certificate.not_valid_after_utc


def _user(subject: x509.Name, fingerprint: str) -> User | None:
    """Go takes the last common name; of uids there may be one."""
    names, groups, uids = (
        tuple(str(each.value) for each in subject.get_attributes_for_oid(oid))
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, _USER_UID)
    )
    if len(uids) > 1:
        raise ValueError("expected one uid")
    if not names or not names[-1]:
        return None
    return User(names[-1], "".join(uids), groups, {CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)})


_WEBSOCKET_TOKEN: Final = "base64url.bearer.authorization.k8s.io."  # noqa: S105 - a prefix
_INVALID: Final = "invalid bearer token"


class CredentialAuthenticator:
    """Authenticates requests. `tokens` are fixed bearer tokens, of which only digests are kept.

    Who shows no credential is `system:anonymous`, unless `anonymous` is off; who shows a bad one is nobody.
    """

    def __init__(
        self,
        clock: Clock,
        accounts: ServiceAccountTokens,
        tokens: Mapping[str, User],
        *,
        anonymous: bool = True,
    ) -> None:
        self._certificates = ClientCertificates(clock)
        self._accounts = accounts
        self._fixed: dict[bytes, tuple[bytes, User]] = {}
        self._anonymous = anonymous
        for token, user in tokens.items():
            self.believe(token, user)

    def believe(self, token: str, user: User) -> None:
        """Adds a fixed token of a user."""
        digest = _digest(token)
        self._fixed[digest] = (digest, authenticated(user))

    async def authenticate(self, request: ApiRequest) -> User | None:
        """Returns the user with the groups of every authenticated user; None if the request gets 401."""
        refused = False
        if request.certificate is not None:
            try:
                user = self._certificates.user(request.certificate)
            except InvalidCertificateError:
                refused = True
            else:
                if user is not None:
                    return authenticated(user)
        try:
            token = _bearer_token(request.headers.get("authorization", "")) or _websocket_token(request.headers)
            if token:
                return (await self.prove(token, self._accounts.audiences)).user
        except InvalidTokenError:
            return None
        return ANONYMOUS if self._anonymous and not refused else None

    async def prove(self, token: str, audiences: Sequence[str]) -> Proof:
        """Returns the user and audiences of a token; raises `InvalidTokenError`."""
        fixed = self._fixed_user(token)
        if fixed is not None:
            meant = tuple(audience for audience in self._accounts.audiences if audience in audiences)
            if not meant:
                raise InvalidTokenError(_INVALID)
            return Proof(fixed, meant)
        try:
            proof = await self._accounts.prove(token, audiences)
        except InvalidTokenError as error:
            raise InvalidTokenError(f"[{_INVALID}, {error}]") from error
        if proof is None:
            raise InvalidTokenError(_INVALID)
        return Proof(authenticated(proof.user), proof.audiences)

    async def review(self, token: str, audiences: Sequence[str]) -> Proof:
        """Authenticates a token of a TokenReview like a header `Bearer <token>`; raises `InvalidTokenError`."""
        found = _bearer_token(f"Bearer {token}")
        if found:
            return await self.prove(found, audiences or self._accounts.audiences)
        if not self._anonymous:
            raise InvalidTokenError(_INVALID)
        return Proof(ANONYMOUS, tuple(audiences or self._accounts.audiences))

    def _fixed_user(self, token: str) -> User | None:
        digest = _digest(token)
        known, user = self._fixed.get(digest, (b"", ANONYMOUS))
        return user if hmac.compare_digest(known, digest) else None


def _digest(token: str) -> bytes:
    """Returns the digest by which tokens are compared, in constant time."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def _bearer_token(header: str) -> str:
    scheme, _, rest = header.partition("\n")[0].strip().partition(" ")
    return rest.split(" ")[0] if scheme.lower() == "bearer" else ""


def _websocket_token(headers: Mapping[str, str]) -> str:
    """The token that a browser may hide among the subprotocols of a WebSocket; raises `InvalidTokenError`."""
    if headers.get("upgrade", "").lower() != "websocket":
        return ""
    offered = [each.strip() for each in headers.get("sec-websocket-protocol", "").replace("\n", ",").split(",")]
    tokens = [each.removeprefix(_WEBSOCKET_TOKEN) for each in offered if each.startswith(_WEBSOCKET_TOKEN)]
    if not tokens:
        return ""
    if len(tokens) > 1 or len(offered) == 1:
        raise InvalidTokenError("expected one token and at least one other subprotocol")
    try:
        return base64.b64decode(tokens[0] + "=" * (-len(tokens[0]) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise InvalidTokenError("invalid base64.bearer.authorization token encoding") from error
