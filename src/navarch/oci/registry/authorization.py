"""Answers the challenges of one registry: basic, and bearer with tokens from a token server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

import msgspec
from yarl import URL

from navarch._base.clock import Clock
from navarch.errors import RegistryError
from navarch.oci.registry.credentials import CredentialSource, RegistryCredential

Scopes = frozenset[str]
"""What a request needs: `repository:NAME:pull`, `repository:NAME:pull,push` or `registry:catalog:*`."""
_CLIENT: Final = "navarch"
_SHORTEST_LIFE: Final = 60.0  # what the protocol promises, whatever the answer says
_MARGIN: Final = 10.0
_PART: Final = re.compile(
    r"""[\s,]*(?:(?P<key>[\w-]+)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]+))|(?P<scheme>[\w-]+))"""
)


class Challenge(NamedTuple):
    """One way in which a registry lets itself be asked."""

    scheme: str
    parameters: dict[str, str]


class TokenQuery(NamedTuple):
    """A request to a token server; with `form` it is a POST."""

    url: URL
    authorization: str = ""
    form: dict[str, str] | None = None


FetchToken = Callable[[TokenQuery], Awaitable[tuple[int, bytes]]]


class _TokenAnswer(msgspec.Struct):
    token: str = ""
    access_token: str = ""
    expires_in: float | None = None


class _BearerToken(NamedTuple):
    header: str
    expires: float


def parse_challenges(headers: Iterable[str]) -> list[Challenge]:
    """Reads the headers `WWW-Authenticate`, each of which may have several challenges.

    >>> parse_challenges(['Bearer realm="https://auth.example.com/token",service="registry", Basic realm="r"'])[1]
    Challenge(scheme='basic', parameters={'realm': 'r'})
    """
    found: list[Challenge] = []
    for header in headers:
        for part in _PART.finditer(header):
            if part["scheme"]:
                found.append(Challenge(part["scheme"].lower(), {}))
            elif found:
                value = re.sub(r"\\(.)", r"\1", part["quoted"]) if part["plain"] is None else part["plain"]
                found[-1].parameters[part["key"].lower()] = value
    return found


class RegistryAuthorization:
    """The authorization of requests to one registry. Remembers its challenge, and tokens until they expire."""

    def __init__(
        self, registry: str, credentials: CredentialSource, fetch: FetchToken, clock: Clock, *, plain_http: bool
    ) -> None:
        self._registry = registry
        self._credentials = credentials
        self._fetch = fetch
        self._clock = clock
        self._plain_http = plain_http
        self._challenge: Challenge | None = None
        self._credential: RegistryCredential | None = None
        self._tokens: dict[Scopes, _BearerToken] = {}
        self._asked_for: dict[Scopes, Scopes] = {}  # what the registry wanted to see in the token for those scopes
        self._turn = asyncio.Lock()

    async def header(self, scopes: Scopes) -> str:
        """Returns the value of `Authorization` for a request, as far as the registry has asked for one before."""
        async with self._turn:
            if self._challenge is None:
                return ""
            return await self._header(self._challenge, scopes)

    async def answer(self, challenges: list[Challenge], scopes: Scopes, refused: str) -> str:
        """Returns another value of `Authorization` after the registry has refused a request with this one.

        Raises `RegistryError` if there is none: no credential, or one that was refused.
        """
        async with self._turn:
            known = {each.scheme: each for each in challenges}
            challenge = known.get("bearer") or known.get("basic")
            if challenge is None:
                schemes = ", ".join(known) or "none"
                raise RegistryError(
                    f"{self._registry}: expected it to ask for basic or bearer authorization, got {schemes}", status=401
                )
            if self._challenge is None:
                self._credential = await self._credentials.find(self._registry)
            self._challenge = challenge
            asked = frozenset(challenge.parameters.get("scope", "").split())
            self._asked_for[scopes] = self._asked_for.get(scopes, scopes) | asked
            cached = self._tokens.get(scopes)
            if cached is not None and cached.header == refused:
                del self._tokens[scopes]
            found = await self._header(challenge, scopes)
            if challenge.scheme == "basic" and found in {"", refused}:
                raise self.refusal()
            return found

    def refusal(self) -> RegistryError:
        """Returns the error of a registry that refuses whatever it is shown."""
        if self._credential is None:
            text = f"expected to be let in without credentials, got a refusal; run `docker login {self._registry}`"
        else:
            user = self._credential.username or "the identity token"
            text = (
                f"expected {user} to be let in, got a refusal; check the rights, or run `docker login {self._registry}`"
            )
        return RegistryError(f"{self._registry}: {text}", status=401)

    async def _header(self, challenge: Challenge, scopes: Scopes) -> str:
        if challenge.scheme == "basic":
            if self._credential is None or self._credential.identity_token:
                return ""
            return self._credential.basic
        token = self._tokens.get(scopes)
        if token is None or token.expires <= self._clock.monotonic():
            token = self._tokens[scopes] = await self._new_token(challenge, self._asked_for.get(scopes, scopes))
        return token.header

    async def _new_token(self, challenge: Challenge, scopes: Scopes) -> _BearerToken:
        query = self._query(challenge, sorted(scopes))
        where = f"{self._registry}: the token server {query.url.origin()}"
        began = self._clock.monotonic()
        status, content = await self._fetch(query)
        if status in {401, 403}:
            raise self.refusal()
        if status != 200:
            raise RegistryError(f"{where}: expected a token, got status {status}", status=status)
        try:
            answer = msgspec.json.decode(content, type=_TokenAnswer)
        except msgspec.MsgspecError:
            answer = _TokenAnswer()
        token = answer.token or answer.access_token
        if not token or not token.isascii() or not token.isprintable():
            raise RegistryError(f"{where}: expected JSON with a token, got something else")
        life = max(answer.expires_in or 0.0, _SHORTEST_LIFE) - _MARGIN
        return _BearerToken(f"Bearer {token}", began + life)

    def _query(self, challenge: Challenge, scopes: list[str]) -> TokenQuery:
        try:
            realm = URL(challenge.parameters.get("realm", ""))
        except ValueError:
            realm = URL()
        if realm.scheme not in {"http", "https"} or not realm.host:
            raise RegistryError(
                f"{self._registry}: expected the address of a token server as realm, got none", status=401
            )
        if realm.scheme == "http" and not self._plain_http:
            raise RegistryError(
                f"{self._registry}: expected a token server with TLS, got {realm.origin()}; "
                "credentials go there only with --plain-http",
                status=401,
            )
        service = challenge.parameters.get("service", "")
        if self._credential is not None and self._credential.identity_token:
            form = {"grant_type": "refresh_token", "refresh_token": self._credential.identity_token}
            return TokenQuery(realm, form={**form, "service": service, "client_id": _CLIENT, "scope": " ".join(scopes)})
        realm = realm.extend_query([("service", service)] if service else [])
        realm = realm.extend_query([("scope", scope) for scope in scopes])
        return TokenQuery(realm, self._credential.basic if self._credential is not None else "")
