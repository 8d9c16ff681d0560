"""Pages beside the resources: metrics, OpenID, old watches, and answers laid out for people."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from http.client import HTTPMessage, HTTPSConnection
from typing import Any

import pytest

from conformance.controllers.watching import until
from navarch.client import Client, Config
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import ConfigMap, ServiceAccount

SECONDS = 60.0


class Browser:
    """GET as the administrator."""

    def __init__(self, config: Config) -> None:
        address = config.server.removeprefix("https://")
        self._connection = HTTPSConnection(address, context=config.ssl_context(), timeout=SECONDS)
        self._token = config.token

    def get(self, path: str, **headers: str) -> tuple[str, str]:
        """The content type and the body."""
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}", **headers})
        with self._connection.getresponse() as answer:
            body = answer.read().decode()
            assert answer.status == 200, body
            return answer.headers["Content-Type"], body

    def watched(self, path: str, wanted: set[str]) -> list[str]:
        """The names of what is there, as a watch tells them, up to the last one that is wanted."""
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
        seen: list[str] = []
        with self._connection.getresponse() as answer:
            while not wanted <= {*seen}:
                event = json.loads(answer.readline())
                assert event["type"] == "ADDED", event
                seen.append(event["object"]["metadata"]["name"])
        self._connection.close()
        return seen

    def head(self, path: str, **headers: str) -> HTTPMessage:
        """The headers of an answer, whatever it is."""
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}", **headers})
        with self._connection.getresponse() as answer:
            answer.read()
            return answer.headers

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def browser(config: Config) -> Iterator[Browser]:
    browser = Browser(config)
    yield browser
    browser.close()


def sample(text: str, name: str, **labels: str) -> float:
    """The value of one line of the metrics."""
    for line in text.splitlines():
        found = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line)
        if found and found[1] == name and labels.items() <= dict(re.findall(r'(\w+)="(.*?)"', found[2])).items():
            return float(found[3])
    return 0.0


async def test_requests_are_counted(client: Client, browser: Browser) -> None:
    """By verb, resource, scope and code, with their durations, under kube-apiserver's names."""
    labels = {"resource": "configmaps", "verb": "POST", "scope": "resource", "version": "v1", "component": "apiserver"}
    labels["dry_run"] = ""
    before = sample(browser.get("/metrics")[1], "apiserver_request_total", code="201", **labels)
    for name in ("a", "b"):
        await client.create(ConfigMap(name=name))

    async def counts() -> tuple[str, float, float, float]:
        kind, now = browser.get("/metrics")
        total = sample(now, "apiserver_request_total", code="201", **labels)
        durations = sample(now, "apiserver_request_duration_seconds_count", **labels)
        return kind, total, durations, sample(now, "apiserver_request_duration_seconds_bucket", le="+Inf", **labels)

    # A request is counted when it has been answered.
    kind, *_ = await until(counts, lambda found: min(found[1:]) >= before + 2, f"{before} and two requests more")
    assert kind.startswith("text/plain; version=")


async def test_watches_under_way_are_counted(client: Client, browser: Browser) -> None:
    """As long as they last."""
    labels = {"resource": "configmaps", "verb": "WATCH", "scope": "namespace"}

    async def under_way() -> float:
        return sample(browser.get("/metrics")[1], "apiserver_longrunning_requests", **labels)

    async def counted() -> tuple[float, float]:
        before = await under_way()
        async with client.watch(ConfigMap):
            return before, await under_way()

    # The watches of others, which the real server has too, end whenever they like.
    _, during = await until(counted, lambda found: found[1] == found[0] + 1, "one watch more while it is open")
    await until(under_way, lambda found: found < during, "fewer watches when it has ended")


async def test_process_shows_its_figures(client: Client, browser: Browser) -> None:
    """Memory, time and files; how much it stores, a moment after its start."""
    text = browser.get("/metrics")[1]
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"):
        assert re.search(rf"^{name} [0-9.e+]+$", text, re.MULTILINE), name

    async def metrics() -> str:
        return browser.get("/metrics")[1]

    stored = 'apiserver_resource_objects{group="",resource="namespaces"}'
    await until(metrics, lambda found: stored in found, stored)


async def test_tokens_can_be_checked_with_what_is_published(client: Client, browser: Browser) -> None:
    """The issuer is that of the tokens, and the key that signed them is there."""
    document = json.loads(browser.get("/.well-known/openid-configuration")[1])
    kind, body = browser.get("/openid/v1/jwks")
    (key,) = json.loads(body)["keys"]
    assert kind == "application/jwk-set+json"
    assert document["jwks_uri"].endswith("/openid/v1/jwks")
    assert document["id_token_signing_alg_values_supported"] == [key["alg"]]
    assert document["response_types_supported"] == ["id_token"]
    await client.create(ServiceAccount(name="robot"))
    request = TokenRequest(spec=TokenRequestSpec(audiences=[]))
    token = str((await client.create_subresource(ServiceAccount, "robot", "token", request)).status.token)
    head, claims = (decoded(part) for part in token.split(".")[:2])
    assert (head["kid"], head["alg"], claims["iss"]) == (key["kid"], key["alg"], document["issuer"])


def decoded(part: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return value


async def test_watches_are_served_under_their_old_paths(client: Client, browser: Browser) -> None:
    """A collection, one object, and all namespaces."""
    namespace = client.options.namespace
    for name in ("a", "b"):
        await client.create(ConfigMap(name=name))
    collection = f"/api/v1/watch/namespaces/{namespace}/configmaps"
    browser.watched(collection, {"a", "b"})
    assert browser.watched(f"{collection}/b", {"b"}) == ["b"]
    assert browser.watched(f"/api/v1/watch/namespaces/{namespace}", {namespace}) == [namespace]
    browser.watched("/api/v1/watch/configmaps", {"a", "b"})


@pytest.mark.parametrize(
    ("query", "agent", "is_laid_out"),
    [
        ("", "navarch", False),
        ("", "curl/8.5.0", True),
        ("", "Wget/1.21", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("?pretty=true", "navarch", True),
        ("?pretty=1", "navarch", True),
        ("?pretty=false", "curl/8.5.0", False),
        ("?pretty=", "curl/8.5.0", True),
        ("?pretty=x", "navarch", False),
    ],
)
async def test_answers_are_laid_out_for_people(
    client: Client, browser: Browser, query: str, agent: str, is_laid_out: bool
) -> None:
    """If they ask for it, or use what people use."""
    await client.create(ConfigMap(name="a"))
    path = f"/api/v1/namespaces/{client.options.namespace}/configmaps/a"
    _, body = browser.get(f"{path}{query}", **{"User-Agent": agent})
    assert body.startswith("{\n  ") == is_laid_out
    assert (body.rstrip() == json.dumps(json.loads(body), indent=2)) == is_laid_out


async def test_answers_say_under_which_id_they_are_on_record(client: Client, browser: Browser) -> None:
    """One of their own, or the one that the client chose."""
    first, second = (browser.head("/version")["Audit-Id"] for _ in range(2))
    assert first != second
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", first)
    assert browser.head("/api/v1/nope", **{"Audit-Id": "mine"})["Audit-Id"] == "mine"


async def test_health_is_told_check_by_check(browser: Browser) -> None:
    """With the names of kube-apiserver's checks, each of which can be asked for alone or left out."""
    _, ready = browser.get("/readyz?verbose")
    lines = ready.splitlines()
    assert lines[-1] == "readyz check passed"
    assert {"[+]ping ok", "[+]informer-sync ok", "[+]poststarthook/crd-informer-synced ok"} <= set(lines)
    assert browser.get("/livez/poststarthook/rbac/bootstrap-roles")[1] == "ok"
    assert "[+]etcd excluded: ok" in browser.get("/healthz?verbose&exclude=etcd")[1].splitlines()


async def test_a_timeout_that_is_none_is_refused(client: Client, config: Config) -> None:
    """In Go's words, before anybody asks who it is."""
    connection = HTTPSConnection(config.server.removeprefix("https://"), context=config.ssl_context(), timeout=SECONDS)
    for given, why in {"soon": 'invalid duration "soon"', "5": 'missing unit in duration "5"'}.items():
        connection.request("GET", f"/version?timeout={given}")
        with connection.getresponse() as answer:
            assert answer.status == 400
            said = json.loads(answer.read())["message"]
            assert said == f"invalid timeout specified in the request URL - time: {why}"
    connection.close()
