"""Metrics for those alone whom the API server knows and allows to read them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from navarch._base.clock import ManualClock
from navarch.api import Dynamic, Kind
from navarch.client import Client
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import ServiceAccount
from navarch.operator.endpoints import Address, Endpoints
from scripted import ScriptedTransport, answer, refusal, scripted
from served_endpoints import get, served

REVIEWED = Endpoints(health=None, metrics="127.0.0.1:0", token_review=True)


async def scrape(address: Address | None, token: str | None) -> int:
    """The status of a scrape with that token."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return (await get(address, "/metrics", headers))[0]


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
