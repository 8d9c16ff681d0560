"""Service account tokens: issued for a pod, secret or node, and verified against those objects."""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

from navarch._base.clock import Clock
from navarch.api.strconv import go_quoted
from navarch.api.times import parse_time
from navarch.cluster.server.pipeline.authentication.signing import InvalidTokenError, SigningKey, decode_part
from navarch.cluster.server.pipeline.authentication.users import (
    CREDENTIAL_ID,
    service_account_groups,
    service_account_name,
    service_account_of,
)
from navarch.cluster.server.wire.request import Json, User

ISSUER: Final = "https://kubernetes.default.svc"
"""The issuer and default audience of service account tokens."""
_LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
_LEGACY: Final = "kubernetes.io/serviceaccount/"
_INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
_LEEWAY: Final = 60.0
_MOST_REMEMBERED: Final = 4096
_IN: Final = "authentication.kubernetes.io"
_INVALIDATED: Final = "service account token has been invalidated"


class TokenObjects(Protocol):
    """Reads ServiceAccounts, pods, Secrets and nodes."""

    async def get(self, group: str, resource: str, namespace: str, name: str) -> Json | None:
        """The object as it is now; None if there is none."""
        ...


class Proof(NamedTuple):
    """The user of a token, and the requested audiences that it is valid for."""

    user: User
    audiences: tuple[str, ...]


class Bound(NamedTuple):
    """The objects that a token is bound to: a pod, its node (without a uid if it does not exist), a Secret."""

    pod: Json | None = None
    node: Json | None = None
    secret: Json | None = None


class ServiceAccountTokens:
    """Issues tokens with Kubernetes' claims and finds out whom they prove."""

    def __init__(
        self,
        key: SigningKey,
        objects: TokenObjects,
        clock: Clock,
        rng: random.Random,
        audiences: tuple[str, ...] = (ISSUER,),
    ) -> None:
        self.key = key
        self.objects = objects
        self.clock = clock
        self.audiences = audiences
        self._rng = rng
        self._claims: dict[bytes, dict[str, Any]] = {}

    def issue(
        self, account: Json, bound: Bound, audiences: Sequence[str], seconds: int, warn_after: int | None = None
    ) -> str:
        """A token of a ServiceAccount that ends after so many seconds."""
        metadata, now = account["metadata"], int(self.clock.now().timestamp())
        own: Json = {"namespace": metadata["namespace"], "serviceaccount": _reference(account)}
        own |= {kind: _reference(value) for kind, value in bound._asdict().items() if value is not None}
        if warn_after is not None:
            own["warnafter"] = now + warn_after
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "nbf": now,
            "iss": ISSUER,
            "jti": str(uuid.UUID(int=self._rng.getrandbits(128), version=4)),
            "kubernetes.io": own,
            "sub": service_account_name(metadata["namespace"], metadata["name"]),
        }
        return self.key.sign(claims)

    def issue_for_secret(self, account: Json, secret: Json) -> str:
        """The token that belongs into a Secret of type kubernetes.io/service-account-token; it does not end."""
        metadata = account["metadata"]
        claims = {
            "iss": _LEGACY_ISSUER,
            "sub": service_account_name(metadata["namespace"], metadata["name"]),
            f"{_LEGACY}namespace": metadata["namespace"],
            f"{_LEGACY}secret.name": secret["metadata"]["name"],
            f"{_LEGACY}service-account.name": metadata["name"],
            f"{_LEGACY}service-account.uid": metadata["uid"],
        }
        return self.key.sign(claims)

    async def prove(self, token: str, audiences: Sequence[str]) -> Proof | None:
        """Returns the user of a token; None if another issuer signed it. Raises `InvalidTokenError`."""
        claims = self._verified(token)
        if claims is None:
            return None
        meant = _matching(_audiences(claims) or self.audiences, audiences)
        if claims["iss"] == _LEGACY_ISSUER:
            return Proof(await self._legacy_user(token, claims), meant)
        self._check_times(claims)
        return Proof(await self._user(claims), meant)

    def _verified(self, token: str) -> dict[str, Any] | None:
        """The claims; a signature is checked once. What is remembered is not the token but its digest."""
        digest = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        claims = self._claims.get(digest)
        if claims is not None:
            return claims
        claims = _unverified(token)
        if claims is None or claims.get("iss") not in (ISSUER, _LEGACY_ISSUER):
            return None
        self.key.verify(token)
        if len(self._claims) >= _MOST_REMEMBERED:
            self._claims.clear()
        self._claims[digest] = claims
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = self.clock.now().timestamp()
        if (begin := _time(claims, "nbf")) is not None and now + _LEEWAY < begin:
            raise InvalidTokenError("service account token is not valid yet")
        if (end := _time(claims, "exp")) is not None and now - _LEEWAY > end:
            raise InvalidTokenError("service account token has expired")
        if (issued := _time(claims, "iat")) is not None and now + _LEEWAY < issued:
            raise InvalidTokenError("service account token is issued in the future")

    async def _user(self, claims: dict[str, Any]) -> User:
        own = _mapping(claims.get("kubernetes.io"))
        namespace, account = str(own.get("namespace", "")), _mapping(own.get("serviceaccount"))
        name = str(account.get("name", ""))
        await self._check_account(namespace, name, account.get("uid", ""))
        await self._check_bound("secret", "secrets", namespace, own)
        await self._check_bound("pod", "pods", namespace, own)
        if "pod" not in own:
            await self._check_bound("node", "nodes", "", own)
        groups = service_account_groups(namespace)
        return User(service_account_name(namespace, name), account.get("uid", ""), groups, _extra(claims, own))

    async def _check_account(self, namespace: str, name: str, uid: object) -> None:
        if not name:
            raise InvalidTokenError("resource name may not be empty")
        account = await self.objects.get("", "serviceaccounts", namespace, name)
        if account is None:
            raise InvalidTokenError(f"serviceaccounts {go_quoted(name)} not found")
        if account["metadata"]["uid"] != uid:
            raise InvalidTokenError(f"service account UID ({account['metadata']['uid']}) does not match claim ({uid})")
        if self._is_gone(account):
            raise InvalidTokenError(f"service account {namespace}/{name} has been deleted")

    async def _check_bound(self, kind: str, resource: str, namespace: str, own: dict[str, Any]) -> None:
        if kind not in own:
            return
        reference = _mapping(own[kind])
        found = await self.objects.get("", resource, namespace, str(reference.get("name", "")))
        if found is None:
            raise InvalidTokenError(_INVALIDATED)
        uid, claimed = found["metadata"]["uid"], reference.get("uid", "")
        if uid != claimed:
            what = "pod UID" if kind == "pod" else f"{kind} UID"
            raise InvalidTokenError(f"{what} ({uid}) does not match service account {kind} ref claim ({claimed})")
        if self._is_gone(found):
            raise InvalidTokenError(_INVALIDATED)

    def _is_gone(self, value: Json) -> bool:
        """Tells whether an object was deleted long enough ago to invalidate its tokens, even if a finalizer keeps it."""
        deleted: datetime | None = None
        if text := value["metadata"].get("deletionTimestamp"):
            deleted = parse_time(text)
        return deleted is not None and deleted < self.clock.now() - timedelta(seconds=_LEEWAY)

    async def _legacy_user(self, token: str, claims: dict[str, Any]) -> User:
        namespace, secret_name, name, uid = _legacy_claims(claims)
        secret = await self.objects.get("", "secrets", namespace, secret_name)
        if secret is None or secret["metadata"].get("deletionTimestamp"):
            raise InvalidTokenError("Token has been invalidated")
        stored = base64.b64decode((secret.get("data") or {}).get("token") or "")
        if not hmac.compare_digest(stored, token.encode()):
            raise InvalidTokenError("Token does not match server's copy")
        await self._check_legacy_account(namespace, name, uid)
        if (secret["metadata"].get("labels") or {}).get(_INVALID_SINCE):
            raise InvalidTokenError(_marked_invalid(namespace, secret_name, name))
        return User(service_account_name(namespace, name), uid, service_account_groups(namespace))

    async def _check_legacy_account(self, namespace: str, name: str, uid: str) -> None:
        account = await self.objects.get("", "serviceaccounts", namespace, name)
        if account is None:
            raise InvalidTokenError(f"serviceaccounts {go_quoted(name)} not found")
        if account["metadata"].get("deletionTimestamp"):
            raise InvalidTokenError(f"ServiceAccount {namespace}/{name} has been deleted")
        if account["metadata"]["uid"] != uid:
            raise InvalidTokenError(f"ServiceAccount UID ({account['metadata']['uid']}) does not match claim ({uid})")


def _unverified(token: str) -> dict[str, Any] | None:
    """Returns the unverified claims of a token; None if it is no JSON Web Token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        return decode_part(parts[1])
    except InvalidTokenError:
        return None


def _audiences(claims: dict[str, Any]) -> tuple[str, ...]:
    audiences = claims.get("aud") or ()
    return (audiences,) if isinstance(audiences, str) else tuple(map(str, audiences))


def _matching(of_token: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    both = tuple(audience for audience in of_token if audience in wanted)
    if not both:
        lists = [" ".join(map(go_quoted, each)) for each in (of_token, wanted)]
        raise InvalidTokenError(f"token audiences [{lists[0]}] is invalid for the target audiences [{lists[1]}]")
    return both


def _time(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidTokenError("go-jose/go-jose/jwt: expected number value to unmarshal NumericDate")
    return float(value)


def _extra(claims: dict[str, Any], own: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    pod, node = _mapping(own.get("pod")), _mapping(own.get("node"))
    values = {
        CREDENTIAL_ID: f"JTI={claims['jti']}" if claims.get("jti") else "",
        f"{_IN}/node-name": node.get("name", ""),
        f"{_IN}/node-uid": node.get("uid", ""),
        f"{_IN}/pod-name": pod.get("name", ""),
        f"{_IN}/pod-uid": pod.get("uid", ""),
    }
    return {key: (value,) for key, value in values.items() if value}


def _legacy_claims(claims: dict[str, Any]) -> tuple[str, str, str, str]:
    """Namespace, Secret, name and uid; raises `InvalidTokenError` unless all are there and agree with the subject."""
    wanted = {
        "sub": "sub",
        f"{_LEGACY}namespace": "namespace",
        f"{_LEGACY}secret.name": "secretName",
        f"{_LEGACY}service-account.name": "serviceAccountName",
        f"{_LEGACY}service-account.uid": "serviceAccountUID",
    }
    for claim, said in wanted.items():
        if not isinstance(claims.get(claim), str) or not claims[claim]:
            raise InvalidTokenError(f"{said} claim is missing")
    subject, namespace, secret, name, uid = (claims[claim] for claim in wanted)
    if service_account_of(subject) != (namespace, name):
        raise InvalidTokenError("sub claim is invalid")
    return namespace, secret, name, uid


def _marked_invalid(namespace: str, secret: str, name: str) -> str:
    return (
        f"the token in secret {namespace}/{secret} for service account {namespace}/{name} has been marked invalid. Use "
        "tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
        f"'{_INVALID_SINCE}' label from the secret to temporarily allow use of this token"
    )


def _reference(value: Json) -> Json:
    metadata = value["metadata"]
    return {key: metadata[key] for key in ("name", "uid") if metadata.get(key)}


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
