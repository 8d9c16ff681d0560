"""Requests that no client would send: an answer, the same from both, and the cluster goes on."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from navarch.client import Client, Config
from navarch.k8s.core.v1 import ConfigMap
from wire import SECONDS, Answer, Wire, answer_in, everything

MAPS = "/api/v1/namespaces/default/configmaps"
NOWHERE = Answer(404, "404 page not found")
UNKNOWN = Answer(404, "the server could not find the requested resource")
NOT_ALLOWED = Answer(405, "the server does not allow this method on the requested resource")
NO_REQUEST = Answer(400, "400 Bad Request")
LIST = Answer(200, "ConfigMapList")


@pytest.fixture
def wire(config: Config) -> Wire:
    return Wire(config)


def compared(wire: Wire, expected: dict[str, Answer]) -> None:
    """All of them, so that a failure shows every difference."""
    assert {line: wire.ask(line) for line in expected} == expected


async def test_paths_lead_where_they_lead_in_kubernetes(client: Client, wire: Wire) -> None:
    """Doubled and missing slashes, dots, escapes, other letters, and very long ones."""
    expected = {
        "GET //": NOWHERE,
        "GET //api": NOWHERE,
        "GET /../../etc/passwd": NOWHERE,
        "GET /%2e%2e/etc/passwd": NOWHERE,
        "GET /healthz/..": NOWHERE,
        f"GET /{'x/' * 20_000}": NOWHERE,
        "GET /api//v1": UNKNOWN,
        "GET /api/../api/v1": UNKNOWN,
        "GET /api/v1//namespaces": UNKNOWN,
        f"GET {MAPS};x": UNKNOWN,
        f"GET {MAPS}#x": UNKNOWN,
        f"GET {MAPS}%3fwatch=1": UNKNOWN,
        f"GET {MAPS}/..%2f..%2fx": UNKNOWN,
        f"GET {MAPS}/x/y/z": UNKNOWN,
        f"GET {MAPS}/": LIST,
        f"GET {MAPS}??": LIST,
        f"GET {MAPS}?a=%": LIST,
        f"GET {MAPS}/%": NO_REQUEST,
        f"GET {MAPS}/%zz": NO_REQUEST,
        f"GET {MAPS}/{'x' * 5000}": Answer(404, f'configmaps "{"x" * 5000}" not found'),
        "GET /api/v1/namespaces/NOT_A_NAME/configmaps": LIST,
        "GET /api/v1/namespaces/..": Answer(400, "Name parameter invalid: \"..\": may not be '..'"),
        f"GET {MAPS}/%2e": Answer(400, "Name parameter invalid: \".\": may not be '.'"),
        f"DELETE {MAPS}/%2e%2e": Answer(400, "Name parameter invalid: \"..\": may not be '..'"),
        f"GET {MAPS}/a%25b": Answer(400, "Name parameter invalid: \"a%b\": may not contain '%'"),
    }
    compared(wire, expected)


async def test_numbers_are_read_as_go_reads_them(client: Client, wire: Wire) -> None:
    """What is none, and what is too large for one, is a bad request; a revision that is far off never comes."""
    huge = "9" * 5000
    unreadable = (
        'invalid resource version: resourceVersion: Invalid value: "{0}": strconv.ParseUint: parsing "{0}": {1}'
    )
    expected = {
        f"GET {MAPS}?limit=": Answer(400, 'strconv.ParseInt: parsing "": invalid syntax'),
        f"GET {MAPS}?limit=1_0": Answer(400, 'strconv.ParseInt: parsing "1_0": invalid syntax'),
        f"GET {MAPS}?limit={huge}": Answer(400, f'strconv.ParseInt: parsing "{huge}": value out of range'),
        f"GET {MAPS}?limit=-5": LIST,
        f"GET {MAPS}?timeoutSeconds=x": Answer(400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        f"GET {MAPS}?resourceVersion=x": Answer(400, unreadable.format("x", "invalid syntax")),
        f"GET {MAPS}?resourceVersion={huge}": Answer(400, unreadable.format(huge, "value out of range")),
        f"GET {MAPS}?resourceVersion={2**64}": Answer(400, unreadable.format(2**64, "value out of range")),
        f"DELETE {MAPS}?resourceVersion={huge}": Answer(400, unreadable.format(huge, "value out of range")),
    }
    compared(wire, expected)
    for match in ("", "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan"):
        answer = wire.ask(f"GET {MAPS}?resourceVersion={2**63}{match}")
        assert answer.status == 504
        assert answer.said.startswith(f"Timeout: Too large resource version: {2**63}, current: ")


async def test_continue_tokens_that_nobody_gave_are_refused(client: Client, wire: Wire) -> None:
    """With a bad request, or as what never comes."""
    tokens = {
        '{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}': 400,
        '{"v":"meta.k8s.io/v1","rv":1,"start":""}': 400,
        '{"v":"x","rv":1,"start":"a"}': 400,
        '{"v":"meta.k8s.io/v1","rv":99999999999999999999,"start":"a"}': 400,
        '{"v":"meta.k8s.io/v1","rv":1.5,"start":"a"}': 400,
        '{"v":"meta.k8s.io/v1","rv":999999999,"start":"a"}': 504,
        "[]": 400,
        "rubbish": 400,
    }
    for token, status in tokens.items():
        written = base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()
        assert wire.ask(f"GET {MAPS}?limit=1&continue={written}").status == status, token
    assert wire.ask(f"GET {MAPS}?limit=1&continue=!!!").status == 400


async def test_what_is_no_request_is_told(client: Client, wire: Wire) -> None:
    """In a line of text, and the connection is closed."""
    expected = {
        "GET x": NO_REQUEST,
        "GET ?": NO_REQUEST,
        "GET ": NO_REQUEST,
        "GET http://[::1": NO_REQUEST,
        "GET /api v1": NO_REQUEST,
        '" /version': NO_REQUEST,
        "G\xe9T /version": NO_REQUEST,
        "GET /version HTTP/1": NO_REQUEST,
        "GET /version HTTP/x": NO_REQUEST,
        "GET /version HTTP/2.0": Answer(505, "505 HTTP Version Not Supported: unsupported protocol version"),
    }
    compared(wire, expected)


async def test_methods_are_taken_or_not(client: Client, wire: Wire) -> None:
    """Those of HTTP that mean nothing here are not allowed; health and OpenAPI do not look at them."""
    expected = {f"{method} {MAPS}": NOT_ALLOWED for method in ("OPTIONS", "TRACE", "PROPFIND", "PUT", "PATCH")}
    expected |= {f"{method} /version": NOT_ALLOWED for method in ("POST", "OPTIONS", "DELETE")}
    expected |= {"HEAD /version": Answer(405, ""), "HEAD /healthz": Answer(200, ""), "POST /healthz": Answer(200, "ok")}
    expected |= {"GET http://elsewhere/api": Answer(200, "APIVersions"), "POST /nope": NOWHERE}
    compared(wire, expected)
    assert wire.ask("POST /openapi/v2").status == 200


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (f"X: {'y' * 900_000}", 200),
        (f"X: {'y' * 1_100_000}", 431),
        ("X y: z", 400),
        ("no colon", 400),
        (": nothing", 400),
        ("X\x00: y", 400),
        ("X: \x01", 400),
        ("Host: twice", 400),
        ("Expect: the unexpected", 417),
        ("Upgrade: websocket", 200),
        ("Range: bytes=0-1", 200),
        ("Accept: ;;;", 406),
        ("Accept: text/html", 406),
        ("Impersonate-Group: g", 400),
        ("X-Remote-User: eve", 200),
        ("User-Agent: \xff", 200),
        ("\r\n".join(f"X-{number}: y" for number in range(5000)), 200),
    ],
    ids=lambda value: str(value)[:20].encode("unicode_escape").decode(),
)
async def test_headers_are_taken_or_refused(client: Client, wire: Wire, header: str, status: int) -> None:
    """Large ones, many, and what is none."""
    assert wire.ask(f"GET {MAPS}", [header]).status == status


async def test_body_over_the_limit_is_refused(client: Client, wire: Wire) -> None:
    """With every verb that has one, and whether its length is told before or not."""
    refused = Answer(413, "Request entity too large: limit is 3145728")
    too_large = b" " * (3 * 1024 * 1024 + 1)
    for line in (f"POST {MAPS}", f"PUT {MAPS}/x", f"DELETE {MAPS}/x"):
        assert wire.ask(line, body=too_large) == refused, line
    with wire.connected() as connection:
        connection.sendall(wire.head(f"POST {MAPS}", ["Transfer-Encoding: chunked", "Connection: close"]))
        connection.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (len(too_large), too_large))
        assert answer_in(everything(connection)) == refused


async def test_head_over_a_megabyte_is_refused(client: Client, wire: Wire) -> None:
    """Also if each of its headers is short."""
    headers = [f"X-{number}: {'y' * 50_000}" for number in range(30)]
    assert wire.ask("GET /version", headers).status == 431


async def test_bodies_that_stand_for_more_than_they_are_are_refused(client: Client, wire: Wire) -> None:
    """Aliases and merge keys of YAML, and patches that copy an object into itself."""
    made = await client.create(ConfigMap(name="copied", data={"a": "b"}))
    name = f"/api/v1/namespaces/{made.namespace}/configmaps/copied"
    doubling: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 100}}]
    copy: dict[str, Any] = {"op": "copy", "from": "/metadata/annotations"}
    doubling += [{**copy, "path": f"/metadata/annotations/k{number}"} for number in range(40)]
    rejected = Answer(422, "the server rejected our request due to an error in our request")
    patch, apply = "application/json-patch+json", "application/apply-patch+yaml"
    assert wire.ask(f"PATCH {name}", body=json.dumps(doubling).encode(), media_type=patch) == rejected
    for form in ("[{0}, {0}]", "{{a: {0}, b: {0}}}", "{{<<: [{0}, {0}], a: b}}"):
        lines = ["a0: &a0 {k: v}"] + [f"a{n}: &a{n} {form.format(f'*a{n - 1}')}" for n in range(1, 40)]
        answer = wire.ask(f"PATCH {name}?fieldManager=m", body="\n".join(lines).encode(), media_type=apply)
        assert (answer.status, answer.said.rpartition("yaml: ")[2]) == (400, "document contains excessive aliasing")


async def test_warnings_are_cut_if_they_are_many(client: Client, wire: Wire) -> None:
    """And so are strict decoding errors: a hundred of them are told."""
    head = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{%b}}'
    body = head % b",".join(b'"%0100d":"a","%0100d":"b"' % (number, number) for number in range(300))
    with wire.connected() as connection:
        length = ["Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close"]
        connection.sendall(wire.head(f"POST {MAPS}?dryRun=All", length) + body)
        received = everything(connection)
    assert received.count(b"Warning: 299") == received.count(b"duplicate field") < 50
    answer = wire.ask(f"POST {MAPS}?dryRun=All&fieldValidation=Strict", body=body)
    assert (answer.status, answer.said.count("duplicate field")) == (400, 100)


async def test_data_over_a_megabyte_is_refused(client: Client, wire: Wire) -> None:
    """Of a ConfigMap and of a Secret, counted in bytes and over all keys."""
    full, half = "v" * 2**20, base64.b64encode(b"v" * 2**19 + b"v").decode()
    head = '{"apiVersion":"v1","kind":"%s","metadata":{"name":"large"},%s}'
    too_long = "Too long: may not be more than 1048576 bytes"
    secrets = MAPS.replace("configmaps", "secrets")
    expected = {
        (MAPS, f'"data":{{"k":"{full}"}}'): Answer(201, "ConfigMap"),
        (MAPS, f'"data":{{"k":"{full}v"}}'): Answer(422, f'ConfigMap "large" is invalid: []: {too_long}'),
        (MAPS, f'"binaryData":{{"k":"{half}","l":"{half}"}}'): Answer(
            422, f'ConfigMap "large" is invalid: []: {too_long}'
        ),
        (secrets, f'"data":{{"k":"{half}"}}'): Answer(201, "Secret"),
        (secrets, f'"data":{{"k":"{half}","l":"{half}"}}'): Answer(422, f'Secret "large" is invalid: data: {too_long}'),
    }
    for (path, data), answer in expected.items():
        kind = "Secret" if path == secrets else "ConfigMap"
        assert wire.ask(f"POST {path}?dryRun=All", body=(head % (kind, data)).encode()) == answer


async def test_old_http_is_answered(client: Client, wire: Wire) -> None:
    """And the connection closed after it."""
    with wire.connected() as connection:
        connection.sendall(wire.head(f"GET {MAPS} HTTP/1.0"))
        assert answer_in(everything(connection)) == LIST


async def test_requests_one_after_the_other_without_waiting_are_answered_in_order(client: Client, wire: Wire) -> None:
    """All of them, also when the client sends no more after the last."""
    with wire.connected() as connection:
        asked = [wire.head(f"GET {MAPS}/x{number}") for number in range(50)]
        connection.sendall(b"".join(asked) + wire.head("GET /version", ["Connection: close"]))
        received = everything(connection).decode()
    places = [received.index(f'configmaps \\"x{number}\\" not found') for number in range(50)]
    assert places == sorted(places)


async def test_half_a_request_harms_nobody(client: Client, wire: Wire) -> None:
    """The head or the body that does not come is one connection's affair; a body that is cut off is not carried out."""
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"half"}}'
    with wire.connected() as head, wire.connected() as slow:
        head.sendall(wire.head(f"GET {MAPS}")[:-4])
        slow.sendall(wire.head(f"POST {MAPS}", ["Content-Type: application/json", "Content-Length: 1000"]) + body)
        assert wire.ask(f"GET {MAPS}") == LIST
    with wire.connected() as patient:
        patient.sendall(wire.head("GET /version", ["Expect: 100-continue", "Connection: close"]))
        assert answer_in(everything(patient)).status == 200
    assert "half" not in {each.name for each in await client.list(ConfigMap, namespace="default")}


async def test_client_that_waits_to_be_asked_for_its_body_is(client: Client, wire: Wire) -> None:
    """As curl does before it sends much."""
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"asked"}}'
    with wire.connected() as connection:
        length = ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        headers = [*length, "Expect: 100-continue", "Connection: close"]
        connection.sendall(wire.head(f"POST {MAPS}?dryRun=All", headers))
        connection.settimeout(SECONDS)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue\r\n")
        connection.sendall(body)
        assert answer_in(everything(connection)) == Answer(201, "ConfigMap")
