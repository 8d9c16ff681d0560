"""Health, readiness and metrics, over real sockets."""

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certificates import Signed, sign
from navarch._base.clock import ManualClock
from navarch.api import Dynamic, Kind
from navarch.client import Client
from navarch.errors import ConfigError
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import ServiceAccount
from navarch.observe.metrics import LeaderMetrics, Metrics
from navarch.operator.endpoints import Address, Check, Endpoints, EndpointServer, Listening
from scripted import ScriptedTransport, answer, refusal, scripted

LOCAL = Endpoints(health="127.0.0.1:0", metrics="127.0.0.1:0")
REVIEWED = Endpoints(health=None, metrics="127.0.0.1:0", token_review=True)
BOUND = 30.0


@contextlib.asynccontextmanager
async def served(
    options: Endpoints = LOCAL,
    *,
    alive: Mapping[str, Check] | None = None,
    ready: Mapping[str, Check] | None = None,
    metrics: Metrics | None = None,
    client: Client | None = None,
    clock: ManualClock | None = None,
) -> AsyncIterator[Listening]:
    """A server that listens."""
    server = EndpointServer(
        options,
        alive={} if alive is None else alive,
        ready={} if ready is None else ready,
        metrics=metrics or Metrics(),
        client=client or scripted()[0],
        clock=clock or ManualClock(),
    )
    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        running = group.create_task(server.run())
        yield await server.listening()
        running.cancel()


async def get(
    address: Address | None,
    path: str,
    headers: Mapping[str, str] | None = None,
    trusted: ssl.SSLContext | None = None,
) -> tuple[int, str]:
    """Status and text of one answer."""
    url = f"{'https' if trusted else 'http'}://{address}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=trusted or True) as response:
        return response.status, await response.text()


async def scrape(address: Address | None, token: str | None) -> int:
    """The status of a scrape with that token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return (await get(address, "/metrics", headers))[0]


async def test_process_without_faults_is_well() -> None:
    """The answer that probes know."""
    async with served() as at:
        assert await get(at.health, "/healthz") == (200, "ok")
        assert await get(at.health, "/readyz") == (200, "ok")


async def test_failing_check_says_why() -> None:
    """Beside those that pass; health and readiness are apart."""
    ready = {"watches": lambda: "Pod: no news\nfor 62 s", "leader": lambda: None}
    async with served(alive={"loop": lambda: None}, ready=ready) as at:
        status, text = await get(at.health, "/readyz")
        assert status == 503
        assert text == "[-]watches failed: Pod: no news for 62 s\n[+]leader ok\nreadyz check failed\n"
        assert await get(at.health, "/healthz") == (200, "ok")


async def test_verbose_names_every_check() -> None:
    """Also when all is well."""
    async with served(ready={"watches": lambda: None}) as at:
        assert await get(at.health, "/readyz?verbose") == (200, "[+]watches ok\nreadyz check passed\n")


async def test_one_check_can_be_asked_for() -> None:
    """By its name; a name that is not there is said."""
    checks: dict[str, Check] = {"a": lambda: None, "b": lambda: "broken"}
    async with served(alive=checks) as at:
        assert await get(at.health, "/healthz/a") == (200, "ok")
        assert (await get(at.health, "/healthz/b"))[0] == 503
        assert await get(at.health, "/healthz/c") == (404, "expected one of ['a', 'b'], got 'c'\n")


async def test_check_that_raises_fails() -> None:
    """And does not show what it raised, which may be anything."""

    def check() -> str | None:
        raise KeyError("hunter2")

    async with served(alive={"odd": check}) as at:
        status, text = await get(at.health, "/healthz")
    assert status == 503
    assert "[-]odd failed: the check itself raised KeyError" in text
    assert "hunter2" not in text


async def test_checks_may_come_and_go() -> None:
    """They are looked up for each probe."""
    checks: dict[str, Check] = {}
    async with served(ready=checks) as at:
        assert (await get(at.health, "/readyz"))[0] == 200
        checks["cache"] = lambda: "not filled yet"
        assert (await get(at.health, "/readyz"))[0] == 503


async def test_metrics_are_served_on_their_own_address() -> None:
    """And nothing else there; nor are they on the address of health."""
    metrics = Metrics()
    metrics.add(LeaderMetrics("memcached-operator", lambda: False))
    async with served(metrics=metrics) as at:
        status, text = await get(at.metrics, "/metrics")
        assert status == 200
        assert 'leader_election_master_status{name="memcached-operator"} 0.0' in text
        assert (await get(at.metrics, "/healthz"))[0] == 404
        assert (await get(at.health, "/metrics"))[0] == 404


async def test_endpoint_that_is_left_out_is_not_served() -> None:
    """None means none."""
    async with served(Endpoints(health="127.0.0.1:0", metrics=None)) as at:
        assert at.metrics is None
        assert (await get(at.health, "/healthz"))[0] == 200


async def test_port_that_is_taken_is_said() -> None:
    """With the address and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = Endpoints(health=f"127.0.0.1:{port}", metrics=None)
        server = EndpointServer(
            options, alive={}, ready={}, metrics=Metrics(), client=scripted()[0], clock=ManualClock()
        )
        with pytest.raises(ConfigError, match=rf"listen at 127.0.0.1:{port} for health.*Endpoints\(health=…\)"):
            await server.run()


async def test_nothing_listens_afterwards() -> None:
    """The port is free again, even if a client still holds a connection."""
    async with served() as at:
        assert at.health is not None
        reader, writer = await asyncio.open_connection(at.health.host, at.health.port)
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(at.health, "/healthz")


@pytest.mark.parametrize("address", [":8080", "0.0.0.0:8080", "10.0.0.1:8080", "[::]:8080", "example.com:8080"])
def test_metrics_leave_the_machine_only_with_tokens(address: str) -> None:
    """What is counted tells much about a cluster; the remedy is said."""
    with pytest.raises(ConfigError, match=r'set token_review=True, or metrics="127.0.0.1:8080"'):
        Endpoints(metrics=address)
    assert Endpoints(metrics=address, token_review=True).metrics == address


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "127.1.2.3:8080", "[::1]:8080", "localhost:8080"])
def test_metrics_on_this_machine_need_no_token(address: str) -> None:
    """Loopback in all its forms."""
    assert Endpoints(metrics=address).metrics_address is not None


def test_health_may_listen_anywhere() -> None:
    """A kubelet asks at the pod's own address."""
    assert Endpoints(health=":8081").health_address == Address("", 8081)


@pytest.mark.parametrize("address", ["", "8080", "127.0.0.1", "127.0.0.1:http", "::1:8080", "127.0.0.1:65536"])
def test_address_that_is_none_is_refused(address: str) -> None:
    """With how one looks."""
    with pytest.raises(ConfigError, match="expected an address to listen at such as"):
        Endpoints(health=address)


def test_options_that_contradict_each_other_are_refused() -> None:
    """One port for two servers; half of a certificate."""
    with pytest.raises(ConfigError, match="expected two addresses"):
        Endpoints(health="127.0.0.1:8080", metrics="127.0.0.1:8080")
    with pytest.raises(ConfigError, match="give both or neither"):
        Endpoints(certificate=Path("tls.crt"))


def written(folder: Path, signed: Signed) -> Endpoints:
    """Options that serve metrics with this certificate, from files."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(signed.pem)
    key.write_bytes(signed.key)
    return Endpoints(health=None, metrics="127.0.0.1:0", certificate=certificate, key=key)


def trusting(authority: Signed) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem.decode())


async def test_certificate_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """Connections that begin afterwards get the new one; nothing is restarted."""
    old, new = sign("old authority"), sign("new authority")
    clock = ManualClock()
    async with served(written(tmp_path, sign("one", old)), clock=clock) as at:
        assert (await get(at.metrics, "/metrics", trusted=trusting(old)))[0] == 200
        written(tmp_path, sign("two", new))
        await clock.advance(10)
        assert (await get(at.metrics, "/metrics", trusted=trusting(new)))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(at.metrics, "/metrics", trusted=trusting(old))


@pytest.mark.parametrize("fault", ["other key", "no file", "no certificate"])
async def test_bad_new_certificate_leaves_the_old_one(tmp_path: Path, fault: str) -> None:
    """Half-written files are common while a Secret is renewed; a good pair later is taken."""
    authority, clock = sign("authority"), ManualClock()
    async with served(written(tmp_path, sign("one", authority)), clock=clock) as at:
        match fault:
            case "other key":
                (tmp_path / "tls.key").write_bytes(sign("two", authority).key)
            case "no file":
                (tmp_path / "tls.key").unlink()
            case _:
                (tmp_path / "tls.crt").write_text("-----BEGIN")
        await clock.advance(10)
        assert (await get(at.metrics, "/metrics", trusted=trusting(authority)))[0] == 200
        newer = sign("newer authority")
        written(tmp_path, sign("three", newer))
        await clock.advance(10)
        assert (await get(at.metrics, "/metrics", trusted=trusting(newer)))[0] == 200


LOCKED = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"hunter2")
)


@pytest.mark.parametrize("key", [b"hunter2", LOCKED])
async def test_unusable_certificate_is_said_at_the_start(tmp_path: Path, key: bytes) -> None:
    """With both files, and without the key's content; nobody is asked for a password."""
    options = written(tmp_path, sign("one"))
    (tmp_path / "tls.key").write_bytes(key)
    server = EndpointServer(options, alive={}, ready={}, metrics=Metrics(), client=scripted()[0], clock=ManualClock())
    with pytest.raises(ConfigError, match=r"tls\.crt and its key in .*tls\.key") as caught:
        await server.run()
    assert "hunter2" not in str(caught.value)


def known(name: str = "prometheus") -> Any:
    """A TokenReview that knows the token."""
    user = {"username": name, "uid": "7", "groups": ["scrapers"], "extra": {"pod": ["prometheus-0"]}}
    return review({"authenticated": True, "user": user})


def review(status: Any) -> Any:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": {"token": "t"}}
    return answer({**body, "status": status}, 201)


def access(*, allowed: bool) -> Any:
    """A SubjectAccessReview that says so."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": {}}
    return answer({**body, "status": {"allowed": allowed}}, 201)


def asked(transport: ScriptedTransport) -> list[Any]:
    """The specs of the reviews that were sent."""
    return [json.loads(request.body or b"")["spec"] for request in transport.requests]


async def test_scrape_with_an_allowed_token_is_answered() -> None:
    """The owner of the token is asked about, with all that is known of them."""
    client, transport = scripted(known(), access(allowed=True))
    async with served(REVIEWED, client=client) as at:
        assert await scrape(at.metrics, "t") == 200
    token, question = asked(transport)
    assert token == {"token": "t"}
    assert question == {
        "user": "prometheus",
        "uid": "7",
        "groups": ["scrapers"],
        "extra": {"pod": ["prometheus-0"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer  ", "Basic dDp0", "t"])
async def test_scrape_without_a_token_is_unauthorized(header: str | None) -> None:
    """The API server is not even asked."""
    headers = {} if header is None else {"Authorization": header}
    async with served(REVIEWED) as at:
        status, _ = await get(at.metrics, "/metrics", headers)
    assert status == 401


async def test_unknown_token_is_unauthorized() -> None:
    """Whatever else the review says."""
    client, _ = scripted(review({"authenticated": False, "error": "expired"}))
    async with served(REVIEWED, client=client) as at:
        assert await scrape(at.metrics, "t") == 401


async def test_owner_without_the_right_is_forbidden() -> None:
    """Known, but not allowed."""
    client, _ = scripted(known(), access(allowed=False))
    async with served(REVIEWED, client=client) as at:
        status, text = await get(at.metrics, "/metrics", {"Authorization": "Bearer t"})
    assert status == 403
    assert "# HELP" not in text


async def test_verdict_is_remembered_for_a_while() -> None:
    """A minute for whom is let in: the API server is not asked for each scrape."""
    clock = ManualClock()
    client, transport = scripted(known(), access(allowed=True), known(), access(allowed=False))
    async with served(REVIEWED, client=client, clock=clock) as at:
        assert [await scrape(at.metrics, "t") for _ in range(3)] == [200, 200, 200]
        assert len(transport.requests) == 2
        await clock.advance(61)
        assert await scrape(at.metrics, "t") == 403
        await clock.advance(9)
        assert await scrape(at.metrics, "t") == 403
        assert len(transport.requests) == 4


async def test_scrapes_at_the_same_time_are_reviewed_once() -> None:
    """Those that come during a review wait for its verdict."""
    client, transport = scripted(known(), access(allowed=True))
    async with served(REVIEWED, client=client) as at:
        assert await asyncio.gather(*(scrape(at.metrics, "t") for _ in range(5))) == [200] * 5
    assert len(transport.requests) == 2


async def test_verdict_belongs_to_one_token() -> None:
    """Another token is another question."""
    client, _ = scripted(known(), access(allowed=True), review({"authenticated": False}))
    async with served(REVIEWED, client=client) as at:
        assert await scrape(at.metrics, "good") == 200
        assert await scrape(at.metrics, "bad") == 401
        assert await scrape(at.metrics, "good") == 200


async def test_review_that_fails_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    """It is not remembered; the log says what the operator lacks, and not the token."""
    refused = refusal(403, "Forbidden", "cannot create resource tokenreviews")
    client, _ = scripted(refused, known(), access(allowed=True))
    async with served(REVIEWED, client=client) as at:
        assert await scrape(at.metrics, "hunter2") == 503
        assert await scrape(at.metrics, "hunter2") == 200
    warned = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "system:auth-delegator" in warned[0].getMessage()
    assert not any("hunter2" in repr(vars(record)) for record in caplog.records)


async def test_many_tokens_are_not_remembered_for_ever() -> None:
    """Whoever sends one token after the other fills no memory."""
    client, transport = scripted(*(review({"authenticated": False}) for _ in range(102)))
    async with served(REVIEWED, client=client) as at:
        for number in range(101):
            assert await scrape(at.metrics, f"t{number}") == 401
        assert await scrape(at.metrics, "t100") == 401
        assert len(transport.requests) == 101
        assert await scrape(at.metrics, "t0") == 401
        assert len(transport.requests) == 102


def test_server_is_imported_only_when_it_runs() -> None:
    """aiohttp's server takes memory that an operator without endpoints does not need."""
    script = "import sys, navarch.operator.endpoints; print('aiohttp.web' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


async def allow_scraping(client: Client, account: str) -> list[tuple[Kind, str]]:
    """Gives an account the right to read metrics; returns what to delete afterwards."""
    api, name = "rbac.authorization.k8s.io", f"scrape-{client.options.namespace}"
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": client.options.namespace}
    reference = {"kind": "ClusterRole", "name": name, "apiGroup": api}
    binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
    await client.create(Dynamic(role))
    await client.create(Dynamic({"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", **binding}))
    kinds = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}
    return [(Kind(api, "v1", kind, plural=plural, namespaced=False), name) for kind, plural in kinds.items()]


async def token_of(client: Client, account: str) -> str:
    await client.create(ServiceAccount(name=account))
    request = TokenRequest(spec=TokenRequestSpec(audiences=[], expiration_seconds=600))
    token = (await client.create_subresource(ServiceAccount, account, "token", request)).status.token
    assert token
    return token


@pytest.mark.real
async def test_real_tokens_are_reviewed(client: Client) -> None:
    """A service account with the right reads metrics, one without does not, nonsense is nobody."""
    good, other = await token_of(client, "prometheus"), await token_of(client, "other")
    granted = await allow_scraping(client, "prometheus")
    clock = ManualClock()
    async with served(REVIEWED, client=client, clock=clock) as at:
        assert await scrape(at.metrics, other) == 403
        assert await scrape(at.metrics, "nonsense") == 401
        for _ in range(500):  # the server takes a moment to know the new right
            if (status := await scrape(at.metrics, good)) == 200:
                break
            await clock.advance(11)
        assert status == 200, "expected the right to hold before it was asked about 500 times"
    for kind, name in granted:
        await client.delete(kind, name)
