"""OpenAPI documents: found by their digests, and kept by clients as long as those stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPMessage, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from navarch.client import Config

NAME = "apis/apps/v1"
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
    connection = HTTPSConnection(urlsplit(config.server).netloc, timeout=30, context=config.ssl_context())

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
    """304 for the tag that it has."""
    first = get(path, Accept=accept)
    second = get(path, Accept=accept, If_None_Match=first.headers["ETag"])
    assert (first.code, second.code, second.body) == (200, 304, b"")


async def test_version_2_is_there_in_protobuf(get: Get) -> None:
    """kubectl reads no other form of it."""
    answer = get("/openapi/v2", Accept=VERSION_2)
    assert (answer.code, answer.headers["Content-Type"]) == (200, VERSION_2)
    assert answer.body.startswith(b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.36")
