"""Conversion by webhook, with the faults and the words of a real API server."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cluster.admission.hooks import HookServer
from cluster.admission.hooks import serving as hooks
from cluster.custom.serving import CRDS, Asking, serving
from navarch._base.clock import SystemClock
from navarch.cluster.server.kinds.custom import Conversion, ConversionWebhooks
from navarch.cluster.server.wire.webhook_client import ServiceEndpoint, WebhookCallError, WebhookClient

Json = dict[str, Any]
OLD, NEW = (f"/apis/ex.dev/{version}/namespaces/default/hooks" for version in ("v1", "v2"))
FAILED = "conversion webhook for ex.dev/v1, Kind=Hook"


def _each(change: Callable[[Json], object]) -> Callable[[Json], web.Response]:
    def answer(review: Json) -> web.Response:
        asked = review["request"]
        objects = [dict(each, apiVersion=asked["desiredAPIVersion"]) for each in asked["objects"]]
        for each in objects:
            each["metadata"] = dict(each["metadata"])
            change(each)
        return _answered(review, result={"status": "Success"}, convertedObjects=objects)

    return answer


def _answered(review: Json, **response: Any) -> web.Response:
    body = {"uid": review["request"]["uid"], **response}
    return web.json_response({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": body})


def _named(value: Json) -> None:
    """Version 2 has another field than the one that is stored."""
    value["colour"] = value.pop("color", "")


def _upgrade(value: Json) -> None:
    value["spec"] = {"up": value["spec"]}
    value["metadata"] |= {"labels": {"from": "webhook"}, "finalizers": ["not.taken/over"]}


ANSWERS: dict[str, Callable[[Json], web.Response]] = {
    "upgrade": _each(_upgrade),
    "rename": _each(_named),
    "fail": lambda review: _answered(review, result={"status": "Failure", "message": "no way"}),
    "silent": lambda review: _answered(review, result={"status": "Failure"}),
    "count": lambda review: _answered(review, result={"status": "Success"}, convertedObjects=[]),
    "version": _each(lambda value: value.update(apiVersion="ex.dev/v9")),
    "kind": _each(lambda value: value.update(kind="Zonk")),
    "name": _each(lambda value: value["metadata"].update(name="zz")),
    "nothing": lambda _: web.json_response({"kind": "ConversionReview"}),
    "broken": lambda _: web.Response(status=500),
}
FAULTS = {
    "fail": f"{FAILED} failed: no way",
    "silent": f"{FAILED} failed: response.result.status was 'Failure', not 'Success'",
    "count": f"{FAILED} returned 0 objects, expected 1",
    "version": f"{FAILED} returned invalid object at index 0: invalid groupVersion "
    "(expected ex.dev/v2, received ex.dev/v9)",
    "kind": f"{FAILED} returned invalid object at index 0: invalid kind (expected Hook, received Zonk)",
    "name": f"{FAILED} returned invalid object: must have the same name: a != zz",
    "nothing": f"{FAILED} failed: no response provided",
    "broken": f'{FAILED} failed: an error on the server ("unknown") has prevented the request from succeeding',
}


async def _no_service(_namespace: str, name: str, _port: int) -> ServiceEndpoint:
    raise WebhookCallError(f'service "{name}" not found')


def _definition(client: Json) -> Json:
    schema: Json = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    schema["openAPIV3Schema"]["properties"] = {name: {"type": "string"} for name in ("color", "colour")}
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": schema,
            "selectableFields": [{"jsonPath": field}],
        }
        for name, field in (("v1", ".color"), ("v2", ".colour"))
    ]
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "hooks.ex.dev"},
        "spec": {
            "group": "ex.dev",
            "scope": "Namespaced",
            "names": {"plural": "hooks", "kind": "Hook"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


@asynccontextmanager
async def _converting(client: Json) -> AsyncIterator[Asking]:
    """A server with a CRD whose webhook is at `client`, and one object of it."""
    clock = SystemClock()
    caller = WebhookClient(clock, _no_service)
    try:
        async with serving(conversion=Conversion(ConversionWebhooks(caller, random.Random(1)))) as ask:
            assert (await ask("POST", CRDS, _definition(client)))[0] == 201
            for _ in range(30_000):
                if (await ask("GET", OLD))[0] == 200:
                    break
                await clock.sleep(0.002)
            made = {"apiVersion": "ex.dev/v1", "kind": "Hook", "metadata": {"name": "a"}, "spec": 1}
            assert (await ask("POST", OLD, made))[0] == 201
            yield ask
    finally:
        await caller.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[HookServer]:
    """A webhook that answers by path."""
    async with hooks(tmp_path, dict(ANSWERS)) as running:
        yield running


def _at(server: HookServer, path: str) -> Json:
    return {"url": f"{server.url}/{path}", "caBundle": server.bundle}


async def test_webhook_converts_what_is_not_in_the_version_asked_for(server: HookServer) -> None:
    """Only objects in another version are sent; of the metadata, labels and annotations alone are taken over."""
    async with _converting(_at(server, "upgrade")) as ask:
        assert (await ask("GET", f"{OLD}/a"))[1]["spec"] == 1
        assert not server.reviews
        code, value = await ask("GET", f"{NEW}/a")
        assert (code, value["apiVersion"], value["spec"]) == (200, "ex.dev/v2", {"up": 1})
        assert value["metadata"]["labels"] == {"from": "webhook"}
        assert "finalizers" not in value["metadata"]
        assert value["metadata"]["resourceVersion"]
    ((url, review),) = server.reviews
    assert url.endswith("/upgrade?timeout=30s")
    assert review["request"]["desiredAPIVersion"] == "ex.dev/v2"
    assert "resourceVersion" not in review["request"]["objects"][0]["metadata"]


@pytest.mark.parametrize("path", FAULTS)
async def test_answer_that_is_none_is_a_clear_failure(server: HookServer, path: str) -> None:
    """What a webhook may do wrong is said in Kubernetes' words, and other versions can still be read."""
    async with _converting(_at(server, path)) as ask:
        code, status = await ask("GET", f"{NEW}/a")
        assert (code, status["message"]) == (500, FAULTS[path])
        assert (await ask("GET", f"{OLD}/a"))[0] == 200


async def test_service_that_is_not_there_is_named() -> None:
    """A service reference is resolved by the embedder; its failure is part of the message."""
    async with _converting({"service": {"name": "s", "namespace": "default"}}) as ask:
        _, status = await ask("GET", f"{NEW}/a")
        assert status["message"] == (
            f'{FAILED} failed: Post "https://s.default.svc:443/?timeout=30s": service "s" not found'
        )


async def test_objects_are_selected_by_the_fields_of_the_version_asked_for(server: HookServer) -> None:
    """Field selectors see the requested version, not the stored one."""
    async with _converting(_at(server, "rename")) as ask:
        red = {"apiVersion": "ex.dev/v1", "kind": "Hook", "metadata": {"name": "red"}, "color": "red"}
        assert (await ask("POST", OLD, red))[0] == 201
        code, found = await ask("GET", f"{NEW}?fieldSelector=colour%3Dred")
        assert (code, [each["metadata"]["name"] for each in found["items"]]) == (200, ["red"])
        assert (await ask("GET", f"{NEW}?fieldSelector=colour%3Dblue"))[1]["items"] == []
