"""Bodies in protobuf, as Go clients send them: the same as in JSON, on both engines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from navarch.client import Client, Config
from navarch.cluster.server.wire.protobuf import opened
from protobufs import MARK, enveloped, field, named

PROTOBUF = "application/vnd.kubernetes.protobuf"
SECONDS = 60.0
SERVERS_OWN = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "name")
Json = dict[str, Any]


class Answer(NamedTuple):
    """What the server says."""

    code: int
    body: Json


Ask = Callable[..., Answer]


@pytest.fixture
def namespace(client: Client) -> str:
    """The name of a new namespace."""
    return str(client.options.namespace)


@pytest.fixture
def ask(config: Config) -> Iterator[Ask]:
    """Sends one request and reads JSON, whatever the body is."""
    connection = HTTPSConnection(urlsplit(config.server).netloc, timeout=SECONDS, context=config.ssl_context())

    def asked(method: str, path: str, body: bytes | Json, media_type: str = PROTOBUF) -> Answer:
        headers = {"Authorization": f"Bearer {config.token}", "Content-Type": media_type, "Accept": "application/json"}
        connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        return Answer(answer.status, json.loads(answer.read()))

    yield asked
    connection.close()


def entry(key: bytes, value: bytes) -> bytes:
    """One entry of a map."""
    return field(1, key) + field(2, value)


def deployment(name: str) -> bytes:
    """One with a quantity, a port that is a text, an annotation and a pointer to zero in it."""
    metadata = field(1, field(1, name.encode()) + field(12, entry(b"note", b"here")))
    probe = field(1, field(2, field(1, b"/") + field(2, field(1, 1) + field(2, 0) + field(3, b"http"))))
    ports = field(6, field(1, b"http") + field(3, 80))
    limits = field(8, field(1, field(1, b"cpu") + field(2, field(1, b"500m"))))
    container = field(1, b"web") + field(2, b"nginx:1") + ports + limits + field(10, probe)
    template = field(1, field(11, entry(b"app", b"web"))) + field(2, field(2, container))
    selector = field(1, entry(b"app", b"web"))
    return metadata + field(2, field(1, 0) + field(2, selector) + field(3, template) + field(5, 0)) + field(3, b"")


def plain_deployment(name: str) -> Json:
    """The same in JSON."""
    container = {
        "name": "web",
        "image": "nginx:1",
        "ports": [{"name": "http", "containerPort": 80}],
        "resources": {"limits": {"cpu": "500m"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": {"note": "here"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }


def content(answer: Answer) -> Json:
    """An object without what is different in each."""
    metadata = {name: value for name, value in answer.body["metadata"].items() if name not in SERVERS_OWN}
    return {**answer.body, "metadata": metadata}


def owned(answer: Answer) -> list[Json]:
    """Which fields belong to the writer."""
    return [entry["fieldsV1"] for entry in answer.body["metadata"]["managedFields"]]


async def test_an_object_in_protobuf_is_the_object_in_json(namespace: str, ask: Ask) -> None:
    """Created either way it is the same, and its writer owns the same fields."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    one = ask("POST", path, enveloped(deployment("one"), "apps/v1", "Deployment"))
    two = ask("POST", path, plain_deployment("two"), "application/json")
    assert (one.code, two.code) == (201, 201), one.body
    assert content(one) == content(two)
    assert owned(one) == owned(two)


async def test_who_takes_protobuf_alone_gets_it(namespace: str, ask: Ask, config: Config) -> None:
    """An object, a list, and the events of a watch, each framed by its length."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = ask("POST", path, enveloped(named("settings"))).body
    one = opened(taken(config, f"{path}/settings"))
    assert (one.api_version, one.kind) == ("v1", "ConfigMap")
    assert one.read("v1", "ConfigMap")["metadata"]["uid"] == made["metadata"]["uid"]
    listed = opened(taken(config, f"{path}?fieldSelector=metadata.name%3Dsettings"))
    assert (listed.kind, listed.raw.count(made["metadata"]["uid"].encode())) == ("ConfigMapList", 1)
    event = taken(config, f"{path}?watch=1&fieldSelector=metadata.name%3Dsettings", framed)
    assert event.startswith(field(1, b"ADDED"))
    assert opened(event[event.index(MARK) :]).kind == "ConfigMap"


def framed(answer: HTTPResponse) -> bytes:
    """The first event of a watch."""
    length = int.from_bytes(answer.read(4), "big")
    event = answer.read(length)
    assert len(event) == length
    return event


def taken(config: Config, path: str, read: Callable[[HTTPResponse], bytes] = HTTPResponse.read) -> bytes:
    """What is read of an answer to somebody who takes protobuf alone, usually the whole body."""
    connection = HTTPSConnection(urlsplit(config.server).netloc, timeout=SECONDS, context=config.ssl_context())
    connection.request("GET", path, headers={"Authorization": f"Bearer {config.token}", "Accept": PROTOBUF})
    with connection.getresponse() as answer:
        assert answer.status == 200, answer.read()
        assert answer.headers["Content-Type"].startswith(PROTOBUF)
        body = read(answer)
    connection.close()
    return body


async def test_an_object_is_replaced_in_protobuf(namespace: str, ask: Ask) -> None:
    """Text and bytes arrive."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    ask("POST", path, enveloped(named("settings")))
    data = field(2, entry(b"colour", "grün".encode())) + field(3, entry(b"raw", b"\x00\xff"))
    answer = ask("PUT", f"{path}/settings", enveloped(named("settings") + data))
    assert (answer.code, answer.body["data"], answer.body["binaryData"]) == (200, {"colour": "grün"}, {"raw": "AP8="})


async def test_a_body_without_a_kind_is_of_the_kind_of_the_path(namespace: str, ask: Ask) -> None:
    """In protobuf, and in JSON too."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    one = ask("POST", path, MARK + field(2, named("one")))
    two = ask("POST", path, {"metadata": {"name": "two"}}, "application/json")
    assert [(each.code, each.body["kind"], each.body["apiVersion"]) for each in (one, two)] == [
        (201, "ConfigMap", "v1")
    ] * 2


UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap)"
UNFIT = "cannot be handled as a ConfigMap"
PREFIX = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
REFUSED = {
    "nothing": (b"", f"{UNRECOGNIZED}: empty data (<empty>)"),
    "JSON": (b"{}", f"{UNRECOGNIZED}: {PREFIX} ({{}})"),
    "cut off": (MARK + b"\x0a\x7f", f"{UNRECOGNIZED}: unexpected EOF (6b3873000a7f)"),
    "an integer for an object": (
        enveloped(field(1, 7)),
        f'ConfigMap in version "v1" {UNFIT}: proto: wrong wireType = 0 for field ObjectMeta',
    ),
    "another kind": (
        enveloped(named("x"), kind="Secret"),
        f'Secret in version "v1" {UNFIT}: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_such_object_is_refused(namespace: str, ask: Ask, case: str) -> None:
    """400, in the same words."""
    body, why = REFUSED[case]
    answer = ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)
    assert (answer.code, answer.body["message"]) == (400, why)


async def test_options_of_a_deletion_are_read(namespace: str, ask: Ask) -> None:
    """A precondition that does not hold, and then the deletion."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    ask("POST", path, enveloped(named("settings")))
    options = field(2, field(1, b"another-uid"))
    refused = ask("DELETE", f"{path}/settings", enveloped(options, "v1", "DeleteOptions"))
    deleted = ask("DELETE", f"{path}/settings", enveloped(field(1, 0), "v1", "DeleteOptions"))
    assert (refused.code, deleted.code) == (409, 200)


async def test_options_of_another_kind_are_refused(namespace: str, ask: Ask) -> None:
    """400, and nothing is deleted."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    ask("POST", path, enveloped(named("settings")))
    refused = ask("DELETE", f"{path}/settings", enveloped(b"", kind="ConfigMap"))
    alike = ask("DELETE", f"{path}/settings", {"apiVersion": "v1", "kind": "ConfigMap"}, "application/json")
    why = 'no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'
    assert [(each.code, each.body["message"]) for each in (refused, alike)] == [(400, why)] * 2


async def test_reviews_are_read(ask: Ask) -> None:
    """`kubectl auth can-i` asks in protobuf."""
    spec = field(2, field(1, field(2, b"get") + field(5, b"pods")))
    review = enveloped(spec, "authorization.k8s.io/v1", "SelfSubjectAccessReview")
    answer = ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert (answer.code, answer.body["status"]["allowed"]) == (201, True)
