"""OpenAPI documents: found by their digests, and kept by clients as long as those stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPMessage, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from conformance.controllers.watching import until
from navarch.api import Dynamic
from navarch.client import Client, Config
from navarch.k8s.apiextensions.v1 import CustomResourceDefinition

CRDS = "apiextensions.k8s.io/v1"
NAME = "apis/apps/v1"
OWN = {"apiVersion", "kind", "metadata"}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION_2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class Answer(NamedTuple):
    """What the server says."""

    code: int
    headers: HTTPMessage
    body: bytes


Get = Callable[..., Answer]


@pytest.fixture
def get(config: Config) -> Iterator[Get]:
    """Reads one path, and follows no redirection."""
    connection = HTTPSConnection(urlsplit(config.server).netloc, timeout=60, context=config.ssl_context())

    def got(path: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", path, headers={"Authorization": f"Bearer {config.token}", **named})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())

    yield got
    connection.close()


def address(get: Get) -> str:
    """Where the document is, with its digest."""
    return str(json.loads(get("/openapi/v3").body)["paths"][NAME]["serverRelativeURL"])


async def test_a_document_may_be_kept_if_its_digest_was_asked_for(get: Get) -> None:
    """It never changes: another one has another digest."""
    hashed, plain = get(address(get)), get(f"/openapi/v3/{NAME}")
    assert (hashed.code, hashed.headers["Cache-Control"]) == (200, "public, immutable")
    assert (plain.code, plain.headers["Cache-Control"]) == (200, "no-cache, private")
    assert hashed.headers["ETag"] == plain.headers["ETag"] == f'"{address(get).partition("hash=")[2]}"'


async def test_an_old_digest_leads_to_the_new_one(get: Get) -> None:
    """By a redirection."""
    answer = get(f"/openapi/v3/{NAME}?hash=OLD")
    assert (answer.code, answer.headers["Location"]) == (301, address(get))


@pytest.mark.parametrize(("path", "accept"), [(f"/openapi/v3/{NAME}", "application/json"), ("/apis", AGGREGATED)])
async def test_what_a_client_has_is_not_sent_again(get: Get, path: str, accept: str) -> None:
    """304 for the tag that it has; kinds of tests before may be going meanwhile, and then there is another."""

    async def again() -> tuple[int, int, bytes]:
        first = get(path, Accept=accept)
        second = get(path, Accept=accept, If_None_Match=first.headers["ETag"])
        return first.code, second.code, second.body if second.code != 200 else b"..."

    await until(again, lambda found: found == (200, 304, b""), "nothing for a tag that is known")


async def test_version_2_is_there_in_protobuf(get: Get) -> None:
    """kubectl reads no other form of it."""
    answer = get("/openapi/v2", Accept=VERSION_2)
    assert (answer.code, answer.headers["Content-Type"]) == (200, VERSION_2)
    assert answer.body.startswith(b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.36")


OPEN = {
    "type": "object",
    "description": "any fields",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"spec": {"type": "object"}},
}
PARTLY = {
    "type": "object",
    "required": ["maybe", "free"],
    "properties": {
        "maybe": {"type": "array", "nullable": True, "items": {"type": "string"}},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"a": {"type": "string"}},
        },
    },
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (OPEN, {"type": "object"}),
        (
            PARTLY,
            {
                "type": "object",
                "required": ["free"],
                "properties": {"maybe": {}, "free": {"x-kubernetes-preserve-unknown-fields": True}},
            },
        ),
    ],
    ids=["any fields", "parts that are null or have any fields"],
)
async def test_version_2_says_of_open_objects_what_its_readers_bear(
    client: Client, get: Get, schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Nothing of their fields: kubectl would take those for all that there may be."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    group = f"{client.options.namespace}.example.com"
    names = {"plural": "opens", "singular": "open", "kind": "Open", "listKind": "OpenList"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    kind = "CustomResourceDefinition"
    made = Dynamic({"apiVersion": CRDS, "kind": kind, "metadata": {"name": f"opens.{group}"}, "spec": spec})
    name = ".".join([*reversed(group.split(".")), "v1", "Open"])

    async def definition() -> Any:
        return json.loads(get("/openapi/v2").body)["definitions"].get(name)

    await client.create(made)
    try:
        found = await until(definition, lambda each: each is not None, f"a definition of {name}")
    finally:
        await client.delete(CustomResourceDefinition, made.name)
    properties = {each: part for each, part in found.get("properties", {}).items() if each not in OWN}
    left = {
        key: value for key, value in found.items() if not key.startswith("x-kubernetes-group") and key != "properties"
    }
    assert {**left, **({"properties": properties} if properties else {})} == expected
