"""What becomes of custom kinds over time: restarts, watches, schemas that change."""

from __future__ import annotations

import json

from cluster.custom.asking import Step, held
from cluster.custom.defining import definition, installed
from cluster.custom.serving import CRDS, Asking, serving
from navarch.cluster.storage.memory import MemoryStorage

PATH = "/apis/ex.dev/v1/namespaces/default/gadgets"
GADGETS = definition("gadgets", {"type": "object", "properties": {"size": {"type": "integer"}}})


async def _installed(ask: Asking) -> None:
    await held(ask, installed(GADGETS))


async def test_established_kinds_are_served_after_a_restart() -> None:
    """The first request to a server that was started again finds what was established before."""
    storage = MemoryStorage()
    async with serving(storage) as ask:
        await _installed(ask)
    async with serving(storage) as ask:
        assert (await ask("GET", PATH))[0] == 200


async def test_objects_lie_under_the_keys_of_kubernetes() -> None:
    """Group, plural, namespace and name make the key; the value is JSON without a resource version."""
    async with serving() as ask:
        await _installed(ask)
        await ask("POST", PATH, {"apiVersion": "ex.dev/v1", "kind": "Gadget", "metadata": {"name": "a"}})
        stored = await ask.storage.get("/registry/ex.dev/gadgets/default/a")
        assert stored is not None
        assert "resourceVersion" not in json.loads(stored.value)["metadata"]


async def test_watch_ends_with_its_kind() -> None:
    """A watch tells of the objects that go with their CRD, and ends when the kind is served no more."""
    async with serving() as ask:
        await _installed(ask)
        await ask("POST", PATH, {"apiVersion": "ex.dev/v1", "kind": "Gadget", "metadata": {"name": "a"}})
        reply = await ask.reply("GET", f"{PATH}?watch=true")
        assert reply.stream is not None
        assert b'"ADDED"' in await anext(reply.stream)
        await ask("DELETE", f"{CRDS}/gadgets.ex.dev")
        rest = b"".join([chunk async for chunk in reply.stream])
        assert rest.count(b'"DELETED"') == 1


async def test_published_documents_come_and_go() -> None:
    """OpenAPI has the schema of a kind while it is served, with its group, version and kind."""
    async with serving() as ask:
        assert (await ask("GET", "/openapi/v3/apis/ex.dev/v1"))[0] == 404
        await _installed(ask)
        code, document = await ask("GET", "/openapi/v3/apis/ex.dev/v1")
        schema = document["components"]["schemas"]["dev.ex.v1.Gadget"]
        assert code == 200
        assert schema["properties"]["spec"]["properties"] == {"size": {"type": "integer"}}
        assert schema["x-kubernetes-group-version-kind"] == [{"group": "ex.dev", "kind": "Gadget", "version": "v1"}]
        assert "/apis/ex.dev/v1/namespaces/{namespace}/gadgets/{name}" in document["paths"]
        await held(
            ask,
            [
                Step("delete", "DELETE", f"{CRDS}/gadgets.ex.dev"),
                Step("gone", "GET", "/openapi/v3/apis/ex.dev/v1", until=lambda code, _: code == 404),
            ],
        )


async def test_bad_definitions_are_refused() -> None:
    """A CRD that is none is 422 or 400, never served and never a failure of the server."""
    async with serving() as ask:
        for spec in ({}, {"group": "x"}, {**GADGETS["spec"], "versions": []}, {**GADGETS["spec"], "scope": 3}):
            code, status = await ask("POST", CRDS, {**GADGETS, "spec": spec})
            assert code in {400, 422}, status
