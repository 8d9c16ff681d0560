"""Webhooks as seen by whoever serves them: who is asked what, in which order, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cluster.admission.engines import APPLY, MERGE, Ours, ours
from cluster.admission.hooks import HookServer, patching, saying, serving, silent
from cluster.admission.webhook_cases import CONFIGMAPS, ROOT
from navarch._base.clock import ManualClock
from navarch.cluster.server.wire.webhook_client import ServiceEndpoint

Json = dict[str, Any]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[HookServer]:
    async with serving(tmp_path) as server:
        yield server


@pytest.fixture
async def engine() -> AsyncIterator[Ours]:
    async with ours() as engine:
        yield engine


def _hook(server: HookServer, name: str, **more: Any) -> Json:
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    return {
        "name": f"{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"{server.url}/{name}", "caBundle": server.bundle},
        "rules": [rule],
        **more,
    }


async def _install(engine: Ours, kind: str, name: str, *hooks: Json) -> None:
    full = f"{kind}WebhookConfiguration"
    value = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": full, "metadata": {"name": name}}
    answer = await engine.ask("POST", f"{ROOT}/{full.lower()}s", {**value, "webhooks": list(hooks)})
    assert answer.code == 201, answer.body


def _map(name: str, **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"a": "b"}}


def _asked(server: HookServer) -> list[str]:
    return [path.partition("?")[0].strip("/") for path, _ in server.reviews]


async def test_a_review_has_what_kubernetes_sends(engine: Ours, server: HookServer) -> None:
    """An AdmissionReview of a creation has every field, in the order of the real server."""
    await _install(engine, "Validating", "a", _hook(server, "v"))
    await engine.ask("POST", CONFIGMAPS, _map("one"), fieldManager="me")
    ((path, review),) = server.reviews
    request = review["request"]
    assert path == "/v?timeout=10s"
    assert server.headers["User-Agent"] == "kube-apiserver-admission"
    assert list(request) == [
        "uid",
        "kind",
        "resource",
        "requestKind",
        "requestResource",
        "name",
        "namespace",
        "operation",
        "userInfo",
        "object",
        "oldObject",
        "dryRun",
        "options",
    ]
    assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert request["userInfo"] == {
        "username": "rig-admin",
        "uid": "rig-admin",
        "groups": ["system:masters", "system:authenticated"],
    }
    assert request["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    assert (request["oldObject"], request["dryRun"], request["operation"]) == (None, False, "CREATE")
    assert request["object"]["metadata"]["uid"]


async def test_patches_are_shown_as_updates_and_deletions_have_only_the_old_object(
    engine: Ours, server: HookServer
) -> None:
    """A patch has UpdateOptions without force; a deletion has no object."""
    await engine.ask("POST", CONFIGMAPS, _map("one"))
    await _install(engine, "Validating", "a", _hook(server, "v"))
    path = f"{CONFIGMAPS}/one"
    await engine.ask("PATCH", path, {"data": {"x": "y"}}, media_type=MERGE, dryRun="All")
    await engine.ask("PATCH", path, _map("one"), media_type=APPLY, fieldManager="m", force="true")
    await engine.ask("DELETE", path, {"propagationPolicy": "Background"})
    first, second, third = (review["request"] for _, review in server.reviews)
    assert first["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}
    assert (first["dryRun"], first["oldObject"]["data"], first["object"]["data"]) == (
        True,
        {"a": "b"},
        {"a": "b", "x": "y"},
    )
    assert second["options"] == {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "m"}
    assert third["object"] is None
    assert third["oldObject"]["metadata"]["name"] == "one"
    assert third["options"]["propagationPolicy"] == "Background"


async def test_a_namespace_is_said_to_be_in_itself(engine: Ours, server: HookServer) -> None:
    """A review of a Namespace names the namespace itself, so that namespace selectors match it."""
    selector = {"namespaceSelector": {"matchLabels": {"team": "red"}}}
    await _install(engine, "Validating", "a", _hook(server, "v", **selector))
    for name, team in (("red", "red"), ("blue", "blue")):
        value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}
        assert (await engine.ask("POST", "/api/v1/namespaces", value)).code == 201
    assert [review["request"]["namespace"] for _, review in server.reviews] == ["red"]


async def test_mutating_webhooks_are_asked_by_configuration_and_place(engine: Ours, server: HookServer) -> None:
    """Webhooks are called by configuration name, then by list order; each sees the changes of those before it."""
    await _install(engine, "Mutating", "b", _hook(server, "third"))
    await _install(engine, "Mutating", "a", _hook(server, "second"), _hook(server, "first"))
    server.answers["second"] = patching({"op": "add", "path": "/data/by", "value": "second"})
    answer = await engine.ask("POST", CONFIGMAPS, _map("one"))
    assert _asked(server) == ["second", "first", "third"]
    assert [review["request"]["object"]["data"].get("by") for _, review in server.reviews] == [None, "second", "second"]
    assert answer.body["data"] == {"a": "b", "by": "second"}


async def test_those_who_want_it_are_asked_again_if_others_changed_the_object(engine: Ours, server: HookServer) -> None:
    """A webhook with IfNeeded is called once more if a later webhook changed the object."""
    again = {"reinvocationPolicy": "IfNeeded"}
    hooks = (_hook(server, "again", **again), _hook(server, "never"), _hook(server, "changes", **again))
    await _install(engine, "Mutating", "a", *hooks)
    server.answers["changes"] = patching({"op": "add", "path": "/data/by", "value": "it"})
    await engine.ask("POST", CONFIGMAPS, _map("one"))
    assert _asked(server) == ["again", "never", "changes", "again"]


async def test_nobody_is_asked_again_if_nothing_changed(engine: Ours, server: HookServer) -> None:
    """A patch that changes nothing causes no reinvocation."""
    await _install(engine, "Mutating", "a", _hook(server, "one", reinvocationPolicy="IfNeeded"), _hook(server, "two"))
    server.answers["two"] = patching({"op": "replace", "path": "/data/a", "value": "b"})
    await engine.ask("POST", CONFIGMAPS, _map("one"))
    assert _asked(server) == ["one", "two"]


async def test_a_deletion_cannot_be_changed(engine: Ours, server: HookServer) -> None:
    """A patch of a deletion is refused, since there is no object."""
    await engine.ask("POST", CONFIGMAPS, _map("one"))
    await _install(engine, "Mutating", "a", _hook(server, "m"))
    server.answers["m"] = patching({"op": "add", "path": "/data/x", "value": "y"})
    answer = await engine.ask("DELETE", f"{CONFIGMAPS}/one")
    assert answer.code == 500
    assert 'admission webhook "m.example.com" attempted to modify the object' in answer.body["message"]


async def test_an_object_is_selected_as_it_was_or_as_it_is_to_be(engine: Ours, server: HookServer) -> None:
    """An object selector matches the old or the new object, so that removing a label does not escape a webhook."""
    await engine.ask("POST", CONFIGMAPS, _map("one", labels={"watched": "yes"}))
    selector = {"objectSelector": {"matchLabels": {"watched": "yes"}}}
    await _install(engine, "Validating", "a", _hook(server, "v", **selector))
    patch = {"metadata": {"labels": {"watched": None}}}
    for _ in range(2):
        await engine.ask("PATCH", f"{CONFIGMAPS}/one", patch, media_type=MERGE)
    assert len(server.reviews) == 1


@pytest.mark.parametrize(
    ("rule", "is_asked"),
    [
        ({"resources": ["configmaps"]}, True),
        ({"resources": ["*"]}, True),
        ({"resources": ["configmaps/*"]}, True),
        ({"resources": ["*/status"]}, False),
        ({"resources": ["secrets"]}, False),
        ({"operations": ["UPDATE", "DELETE"]}, False),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v2"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
    ],
)
async def test_rules_decide_who_is_asked(engine: Ours, server: HookServer, rule: Json, is_asked: bool) -> None:
    """A webhook is called if operation, group, version, resource and scope all match."""
    rules = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*"], **rule}]
    await _install(engine, "Validating", "a", _hook(server, "v", rules=rules))
    await engine.ask("POST", CONFIGMAPS, _map("one"))
    assert bool(server.reviews) is is_asked


@pytest.mark.parametrize(("policy", "is_asked"), [("Equivalent", True), ("Exact", False)])
async def test_another_version_of_a_resource_is_converted_if_asked_for(
    engine: Ours, server: HookServer, policy: str, is_asked: bool
) -> None:
    """A rule for events.k8s.io also sees events of the core group, as its own kind."""
    rules = [{"operations": ["*"], "apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "resources": ["events"]}]
    await _install(engine, "Validating", "a", _hook(server, "v", rules=rules, matchPolicy=policy))
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
    answer = await engine.ask("POST", "/api/v1/namespaces/default/events", event)
    assert answer.code == 201, answer.body
    assert bool(server.reviews) is is_asked
    for _, review in server.reviews:
        request = review["request"]
        assert (request["kind"]["group"], request["requestKind"]["group"]) == ("events.k8s.io", "")
        assert request["object"]["apiVersion"] == "events.k8s.io/v1"


async def test_configurations_are_not_subject_to_webhooks(engine: Ours, server: HookServer) -> None:
    """Webhook configurations bypass webhooks, so that a webhook that refuses everything can be removed."""
    await _install(engine, "Validating", "a", _hook(server, "v"))
    server.answers["v"] = saying(False)
    assert (await engine.ask("DELETE", f"{ROOT}/validatingwebhookconfigurations/a")).code == 200
    assert (await engine.ask("POST", CONFIGMAPS, _map("one"))).code == 201
    assert server.reviews == []


async def test_a_silent_webhook_is_given_up_when_its_time_is_over(server: HookServer) -> None:
    """A call ends after the webhook's timeout by the server's clock, and not before."""
    clock = ManualClock()
    server.answers["v"] = silent
    async with ours(clock) as engine:
        await _install(engine, "Validating", "a", _hook(server, "v", timeoutSeconds=30))
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(engine.ask("POST", CONFIGMAPS, _map("one")))
            await asyncio.wait_for(clock.until_sleeping(), 60)
            await clock.advance(29)
            assert not waiting.done()
            await clock.advance(1)
        assert '?timeout=30s": context deadline exceeded' in waiting.result().body["message"]


async def test_a_service_is_reached_where_the_embedder_says(tmp_path: Path) -> None:
    """The embedder resolves the service; the certificate must still be the service's."""
    async with serving(tmp_path, host="hook.default.svc") as server:

        async def resolve(namespace: str, name: str, port: int) -> ServiceEndpoint:
            assert (namespace, name, port) == ("default", "hook", 443)
            return ServiceEndpoint("127.0.0.1", server.port)

        async with ours(resolve=resolve) as engine:
            client = {"service": {"namespace": "default", "name": "hook", "path": "/v"}, "caBundle": server.bundle}
            await _install(engine, "Validating", "a", _hook(server, "v", clientConfig=client))
            assert (await engine.ask("POST", CONFIGMAPS, _map("one"))).code == 201
    assert _asked(server) == ["v"]


async def test_a_certificate_for_somebody_else_is_refused(tmp_path: Path, engine: Ours) -> None:
    """A certificate for another name is refused even if the CA signed it."""
    async with serving(tmp_path, host="other.example.com") as server:
        await _install(engine, "Validating", "a", _hook(server, "v"))
        answer = await engine.ask("POST", CONFIGMAPS, _map("one"))
    assert answer.code == 500
    assert "tls: failed to verify certificate: x509: certificate is not valid for 127.0.0.1" in answer.body["message"]
    assert server.reviews == []


async def test_a_plain_http_url_is_never_used(engine: Ours, server: HookServer) -> None:
    """A plain HTTP URL is refused, since reviews may hold secrets."""
    client = {"url": server.url.replace("https", "http"), "caBundle": server.bundle}
    full = "ValidatingWebhookConfiguration"
    value = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": full, "metadata": {"name": "a"}}
    hook = _hook(server, "v", clientConfig=client)
    if (await engine.ask("POST", f"{ROOT}/{full.lower()}s", {**value, "webhooks": [hook]})).code == 201:
        answer = await engine.ask("POST", CONFIGMAPS, _map("one"))
        assert (answer.code, "is no https URL" in answer.body["message"]) == (500, True)


async def test_redirects_are_not_followed(engine: Ours, server: HookServer) -> None:
    """Redirects are refused, so that a webhook cannot send an object elsewhere."""
    from aiohttp import web

    server.answers["v"] = lambda _: web.Response(status=307, headers={"Location": f"{server.url}/other"})
    await _install(engine, "Validating", "a", _hook(server, "v"))
    answer = await engine.ask("POST", CONFIGMAPS, _map("one"))
    assert "the server responded with the status code 307" in answer.body["message"]
    assert _asked(server) == ["v"]


async def test_validating_webhooks_are_asked_at_once(engine: Ours, server: HookServer) -> None:
    """Validating webhooks run concurrently; the first refusal in order is returned."""
    names = ["one", "two", "three"]
    await _install(engine, "Validating", "a", *(_hook(server, name) for name in names))
    server.answers |= {"two": saying(False, status={"message": "2"}), "three": saying(False, status={"message": "3"})}
    answer = await engine.ask("POST", CONFIGMAPS, _map("one"))
    assert sorted(_asked(server)) == sorted(names)
    assert answer.body["message"] == 'admission webhook "two.example.com" denied the request: 2'


async def test_a_webhook_with_side_effects_is_no_part_of_a_dry_run(engine: Ours, server: HookServer) -> None:
    """A dry run that matches a webhook with side effects is refused without a call."""
    await _install(engine, "Validating", "a", _hook(server, "v"))
    resource = engine.catalog.find("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
    assert resource is not None
    found = await engine.registry.get(resource, "", "a")
    found.value["webhooks"][0]["sideEffects"] = "Some"
    await engine.registry.update(resource, found.value, found.stored)
    answer = await engine.ask("POST", CONFIGMAPS, _map("one"), dryRun="All")
    assert (answer.code, answer.body["message"]) == (
        400,
        'admission webhook "v.example.com" does not support dry run',
    )
    assert server.reviews == []
