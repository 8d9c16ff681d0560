"""Who asks: certificates, tokens, nobody; and what does not count as any of them."""

from __future__ import annotations

import asyncio
import base64
import logging
import random
from datetime import timedelta

import hypothesis.strategies as st
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from hypothesis import given

from cluster.access.miniature import ADMIN, Miniature
from navarch.cluster.server.pipeline.authentication.authenticator import CredentialAuthenticator
from navarch.cluster.server.pipeline.authentication.signing import InvalidTokenError, SigningKey
from navarch.cluster.server.pipeline.authentication.tokens import ISSUER, Bound, ServiceAccountTokens
from navarch.cluster.server.pipeline.authentication.users import ANONYMOUS
from navarch.cluster.server.wire.request import ApiRequest, Json, User
from navarch.errors import ConfigError

ROBOT: Json = {"metadata": {"name": "robot", "namespace": "default", "uid": "u-1"}}
SHARED = Miniature()
TOKEN = "the-token-of-the-admin"


@pytest.fixture
def server() -> Miniature:
    miniature = Miniature()
    miniature.objects["serviceaccounts", "default", "robot"] = ROBOT
    return miniature


def asking(token: str = "", *, certificate: bytes | None = None) -> ApiRequest:
    bearer = {"authorization": f"Bearer {token}"} if token else {}
    return ApiRequest(method="GET", path="/api", headers=bearer, certificate=certificate)


def issued(server: Miniature, seconds: int = 600, bound: Bound = Bound()) -> str:  # noqa: B008 - a tuple
    return server.accounts.issue(ROBOT, bound, [ISSUER], seconds)


async def test_a_fixed_token_proves_its_user(server: Miniature) -> None:
    """A fixed token authenticates its user, who is then in system:authenticated."""
    user = await server.authenticator.authenticate(asking(TOKEN))
    assert user == User(ADMIN.name, ADMIN.uid, ("system:masters", "system:authenticated"))


async def test_a_token_can_be_believed_later(server: Miniature) -> None:
    """A token that is added later authenticates its user."""
    assert await server.authenticator.authenticate(asking("new")) is None
    server.authenticator.believe("new", User("ann"))
    assert await server.authenticator.authenticate(asking("new")) == User("ann", groups=("system:authenticated",))


async def test_a_service_account_token_proves_its_account(server: Miniature) -> None:
    """The user has the groups of service accounts, of the namespace and system:authenticated, and the credential's id."""
    user = await server.authenticator.authenticate(asking(issued(server)))
    assert user is not None
    assert (user.name, user.uid) == ("system:serviceaccount:default:robot", "u-1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


async def test_who_shows_nothing_is_anonymous(server: Miniature) -> None:
    """A request without credentials is anonymous, or gets 401 where anonymous requests are off."""
    assert await server.authenticator.authenticate(asking()) == ANONYMOUS
    strict = CredentialAuthenticator(server.clock, server.accounts, {}, anonymous=False)
    assert await strict.authenticate(asking()) is None


@pytest.mark.parametrize(
    "token", ["x", "a.b.c", "é", "\udce9", "." * 2000, "eyJ9.eyJpc3MiOiJ4In0.x", TOKEN[:-1], TOKEN + "x"]
)
async def test_a_bad_token_is_nobody_and_not_anonymous(server: Miniature, token: str) -> None:
    """A bad token gets 401, whatever it looks like."""
    assert await server.authenticator.authenticate(asking(token)) is None


async def test_a_token_ends(server: Miniature) -> None:
    """A token expires a minute after its time; the cached signature does not extend it."""
    request = asking(issued(server, 600))
    assert await server.authenticator.authenticate(request) is not None
    await server.clock.advance(659)
    assert await server.authenticator.authenticate(request) is not None
    await server.clock.advance(2)
    assert await server.authenticator.authenticate(request) is None


async def test_a_token_ends_with_its_account(server: Miniature) -> None:
    """A token ends with its ServiceAccount; a new one of the same name does not revive it."""
    request = asking(issued(server))
    assert await server.authenticator.authenticate(request) is not None
    del server.objects["serviceaccounts", "default", "robot"]
    assert await server.authenticator.authenticate(request) is None
    server.objects["serviceaccounts", "default", "robot"] = {"metadata": {**ROBOT["metadata"], "uid": "u-2"}}
    assert await server.authenticator.authenticate(request) is None


async def test_a_token_ends_soon_after_the_deletion_that_a_finalizer_holds_up(server: Miniature) -> None:
    """A token ends a minute after the deletion timestamp of its ServiceAccount."""
    request = asking(issued(server))
    deleted = {**ROBOT["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}
    server.objects["serviceaccounts", "default", "robot"] = {"metadata": deleted}
    await server.clock.advance(59)
    assert await server.authenticator.authenticate(request) is not None
    await server.clock.advance(2)
    assert await server.authenticator.authenticate(request) is None


async def test_a_token_bound_to_a_pod_ends_with_it(server: Miniature) -> None:
    """A bound token names its pod and node, and ends with the pod."""
    pod: Json = {"metadata": {"name": "p", "uid": "p-1"}, "spec": {"nodeName": "n"}}
    server.objects["pods", "default", "p"] = pod
    request = asking(issued(server, bound=Bound(pod=pod, node={"metadata": {"name": "n"}})))
    user = await server.authenticator.authenticate(request)
    assert user is not None
    assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert user.extra["authentication.kubernetes.io/node-name"] == ("n",)
    del server.objects["pods", "default", "p"]
    assert await server.authenticator.authenticate(request) is None


async def test_another_clusters_token_proves_nothing(server: Miniature) -> None:
    """A token of another cluster is refused even with the same issuer, account and uid."""
    other = ServiceAccountTokens(SigningKey.generate(), server, server.clock, random.Random(2))
    assert await server.authenticator.authenticate(asking(other.issue(ROBOT, Bound(), [ISSUER], 600))) is None


async def test_a_token_in_a_secret_proves_its_account_as_long_as_the_secret_has_it(server: Miniature) -> None:
    """A token in a Secret has no expiry, and ends with its Secret."""
    secret: Json = {"metadata": {"name": "s", "uid": "s-1"}, "type": "kubernetes.io/service-account-token"}
    token = server.accounts.issue_for_secret(ROBOT, secret)
    request = asking(token)
    assert await server.authenticator.authenticate(request) is None
    stored = {**secret, "data": {"token": base64.b64encode(token.encode()).decode()}}
    server.objects["secrets", "default", "s"] = stored
    user = await server.authenticator.authenticate(request)
    assert user is not None
    assert user.name == "system:serviceaccount:default:robot"
    marked = {"name": "s", "labels": {"kubernetes.io/legacy-token-invalid-since": "2030-01-01"}}
    server.objects["secrets", "default", "s"] = {**stored, "metadata": marked}
    assert await server.authenticator.authenticate(request) is None
    server.objects["secrets", "default", "s"] = {**stored, "data": None}
    assert await server.authenticator.authenticate(request) is None


async def test_no_error_and_no_log_shows_a_token(server: Miniature, caplog: pytest.LogCaptureFixture) -> None:
    """No error and no log line contains a token, valid or not."""
    caplog.set_level(logging.DEBUG)
    for token in (issued(server, -1000), "secret-rubbish", f"{issued(server)}x"):
        with pytest.raises(InvalidTokenError) as raised:
            await server.authenticator.prove(token, [ISSUER])
        assert token not in str(raised.value)
        assert token not in repr(raised.value)
    assert "secret-rubbish" not in caplog.text
    assert TOKEN not in repr(vars(server.authenticator))


def certificate(server: Miniature, *names: tuple[x509.ObjectIdentifier, str], days: int = 1) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in names])
    now = server.clock.now()
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = (
        builder.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=days))
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


async def test_a_certificate_proves_its_common_name_in_its_organizations(server: Miniature) -> None:
    """A certificate authenticates its common name and organizations, with its fingerprint as credential id, until it expires."""
    names = ((NameOID.ORGANIZATION_NAME, "g1"), (NameOID.COMMON_NAME, "ann"), (NameOID.ORGANIZATION_NAME, "g2"))
    request = asking(certificate=certificate(server, *names))
    user = await server.authenticator.authenticate(request)
    assert user is not None
    assert (user.name, user.groups) == ("ann", ("g1", "g2", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")
    await server.clock.advance(86_401)
    assert await server.authenticator.authenticate(request) is None


async def test_a_certificate_with_a_uid_says_it(server: Miniature) -> None:
    """The uid is read from Kubernetes' attribute; a certificate with two is refused."""
    oid = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
    names = ((NameOID.COMMON_NAME, "ann"), (oid, "u-7"))
    user = await server.authenticator.authenticate(asking(certificate=certificate(server, *names)))
    assert user is not None
    assert user.uid == "u-7"
    twice = certificate(server, *names, (oid, "u-8"))
    assert await server.authenticator.authenticate(asking(certificate=twice)) is None


async def test_a_certificate_of_nobody_leaves_it_to_the_token(server: Miniature) -> None:
    """A certificate without a common name is ignored; an unreadable or expired one is refused unless a token is valid."""
    nameless = certificate(server, (NameOID.ORGANIZATION_NAME, "g"))
    assert await server.authenticator.authenticate(asking(certificate=nameless)) == ANONYMOUS
    assert await server.authenticator.authenticate(asking(certificate=b"rubbish")) is None
    user = await server.authenticator.authenticate(asking(TOKEN, certificate=b"rubbish"))
    assert user is not None
    assert user.name == ADMIN.name


async def test_a_websocket_may_hide_its_token_among_the_subprotocols(server: Miniature) -> None:
    """A WebSocket can carry its token in a subprotocol, beside another one to answer with."""
    hidden = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
    token = f"base64url.bearer.authorization.k8s.io.{hidden}"

    async def offering(protocols: str, upgrade: str = "websocket") -> User | None:
        headers = {"upgrade": upgrade, "sec-websocket-protocol": protocols}
        return await server.authenticator.authenticate(ApiRequest(method="GET", path="/api", headers=headers))

    found = await offering(f"v5.channel.k8s.io, {token}")
    assert found is not None
    assert found.name == ADMIN.name
    assert await offering(token) is None
    assert await offering(f"a, {token}, {token}") is None
    assert await offering("a, base64url.bearer.authorization.k8s.io.!") is None
    assert await offering("a, b") == ANONYMOUS
    assert await offering(f"a, {token}", upgrade="") == ANONYMOUS


@given(st.text())
def test_no_header_makes_authentication_fail(text: str) -> None:
    """Any header yields a user or 401, and no other error."""

    async def answers() -> None:
        for header in (text, f"Bearer {text}", f"bearer {text}.{text}.{text}"):
            request = ApiRequest(method="GET", path="/", headers={"authorization": header})
            user = await SHARED.authenticator.authenticate(request)
            assert user is None or user == ANONYMOUS

    asyncio.run(answers())


@pytest.mark.parametrize("private", [ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)])
def test_a_key_signs_what_it_verifies(private: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    """P-256 and RSA keys verify their own signatures; another key's, a changed claim and a cut signature are refused."""
    key = SigningKey.from_pem(SigningKey(private).to_pem())
    token = key.sign({"a": 1})
    key.verify(token)
    head, claims, signature = token.split(".")
    for bad in (
        f"{head}.{claims}x.{signature}",
        f"{head}.{claims}.{signature[:-4]}",
        f"{head}.{claims}.",
        f"{head}.{claims}.!",
    ):
        with pytest.raises(InvalidTokenError):
            key.verify(bad)
    with pytest.raises(InvalidTokenError):
        SigningKey.generate().verify(token)


def test_a_key_of_another_kind_is_refused() -> None:
    """A key of another kind, a password-protected or a broken file is refused with the reason."""
    with pytest.raises(ConfigError, match="secp384r1"):
        SigningKey(ec.generate_private_key(ec.SECP384R1()))
    with pytest.raises(ConfigError, match="as PEM"):
        SigningKey.from_pem(b"rubbish")
