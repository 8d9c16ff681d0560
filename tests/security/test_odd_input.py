"""What the network sends that nobody expects, and what stored objects hold: each gets its answer, and breaks nothing for others."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from navarch.testing.cluster import over_https
from rig.waiting import wait_for
from security.asking import APPLY, MERGE, Asker, Json
from wire import Wire

MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
FORMS = (
    "application/json",
    TABLE,
    PROTOBUF,
    "application/yaml",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
)
NOT_UTF8 = (b"\xff", b"J\xfcrgen", b"\xed\xa0\x80", b"\xc0\x80", b"\x80" * 40)
UNICODE = tuple(text.encode() for text in ("Jürgen", "\u2028", "\U0001f600", "\ufeff", "\u0661"))
HEADERS = (
    "Impersonate-User",
    "Impersonate-Group",
    "Impersonate-Uid",
    "Impersonate-Extra-Scopes",
    "Authorization",
    "Accept",
    "Accept-Encoding",
    "Audit-Id",
    "Content-Encoding",
    "Content-Type",
    "User-Agent",
    "X-Remote-User",
    "X-Remote-Group",
    "X-Forwarded-For",
    "Sec-WebSocket-Protocol",
    "Upgrade",
    "Origin",
    "If-None-Match",
)
EXTREMES = ("0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "0000-12-31T23:59:59+00:01")


@pytest.fixture
async def cluster() -> AsyncIterator[tuple[Asker, Wire]]:
    async with over_https() as cluster:
        assert cluster.access is not None
        config = cluster.access.config(cluster.access.token)
        asker = Asker(config)
        yield asker, Wire(config)
        asker.close()


@pytest.fixture
def asker(cluster: tuple[Asker, Wire]) -> Asker:
    return cluster[0]


@pytest.fixture
def wire(cluster: tuple[Asker, Wire]) -> Wire:
    return cluster[1]


@pytest.fixture(autouse=True)
def no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever comes in, the server was prepared for it."""
    with caplog.at_level(logging.WARNING):
        yield
    told = [record for record in caplog.get_records("call") if record.exc_info or record.levelno >= logging.ERROR]
    assert not told, [record.getMessage() for record in told]


def _sent(wire: Wire, line: str, headers: list[bytes], body: bytes = b"", *, authorized: bool = True) -> int:
    """The code of the answer to a request of these bytes."""
    own = [wire.authorization.encode()] if authorized else []
    length = [b"Content-Length: %d" % len(body)] if body else []
    head = b"\r\n".join(
        [f"{line} HTTP/1.1".encode(), b"Host: c", *own, *headers, *length, b"Connection: close", b"", b""]
    )
    with wire.connected() as connection:
        connection.sendall(head + body)
        received = b""
        while b"\r\n" not in received and (piece := connection.recv(65536)):
            received += piece
    return int(received.split(b" ")[1])


def _token(head: Any, claims: Any) -> bytes:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (head, claims)]
    return b"Authorization: Bearer " + b".".join([*parts, b"c2ln"])


ODD: tuple[Any, ...] = ([], {}, None, "", 0, -1, 1.5, True, "x", [[]], {"a": []}, 10**30)


@pytest.mark.parametrize("field", ["kid", "alg", "typ", "crit", "jwk", "b64"])
async def test_a_token_with_an_odd_head_proves_nobody(wire: Wire, field: str) -> None:
    """Whatever JSON it has there."""
    for value in ODD:
        head = _token({"alg": "ES256", field: value}, {"iss": "https://kubernetes.default.svc"})
        assert _sent(wire, "GET /api", [head], authorized=False) == 401, value


@pytest.mark.parametrize("field", ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "kubernetes.io"])
async def test_a_token_with_odd_claims_proves_nobody(wire: Wire, field: str) -> None:
    """The same for what it claims."""
    for value in ODD:
        claims = _token({"alg": "ES256"}, {"iss": "https://kubernetes.default.svc", field: value})
        assert _sent(wire, "GET /api", [claims], authorized=False) == 401, value


@pytest.mark.parametrize("header", HEADERS)
async def test_a_header_of_any_bytes_is_answered(wire: Wire, header: str) -> None:
    """With whatever the request deserves, which is never that the server failed."""
    body = b'{"metadata":{"name":"a"}}'
    for value in (*NOT_UTF8, *UNICODE):
        odd = [f"{header}: ".encode() + value]
        is_own = header == "Authorization"
        assert _sent(wire, f"GET {MAPS}", odd, authorized=not is_own) < 500, value
        kind = [] if header == "Content-Type" else [b"Content-Type: application/json"]
        assert _sent(wire, f"POST {MAPS}?dryRun=All", [*odd, *kind], body, authorized=not is_own) < 500, value


async def test_an_impersonated_name_of_any_bytes_is_somebody_without_rights(wire: Wire) -> None:
    """As on Kubernetes, where names are bytes: who is told their own name is told it as far as it is text."""
    review = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"
    kind = b"Content-Type: application/json"
    for name in (*NOT_UTF8, *UNICODE):
        assert _sent(wire, f"GET {MAPS}", [b"Impersonate-User: " + name]) == 403, name
        assert _sent(wire, review, [b"Impersonate-User: " + name, kind], b"{}") == 201, name
        for header in (b"Impersonate-Group: ", b"Impersonate-Uid: ", b"Impersonate-Extra-Scopes: "):
            assert _sent(wire, review, [b"Impersonate-User: eve", header + name, kind], b"{}") == 201, (header, name)


YAML = (
    b'!!int ""',
    b"!!int []",
    b"!!int -",
    b'!!float ""',
    b"!!float {}",
    b"!!bool []",
    b'!!timestamp ""',
    b"!!timestamp 2001-99-99",
    b"!!binary []",
    b"!!binary \xe2\x82\xac",
    b"!!set [a]",
    b"!!omap {a: b}",
    b"!!pairs [a]",
    b"!!python/object/apply:os.getcwd []",
    b"!!python/name:os.system",
    b"!!merge x",
    b"!!value =",
    b"<\xe2\x80\xb9",
    b"<\x8b",
    b"*nobody",
    b"&a [*a]",
    b".nan",
    b"-.inf",
    b"1e400",
    b"0x" + b"f" * 5000,
    b"9" * 5000,
    b"\xff",
    b"\x00",
    b"\xe2\x80\xa8\x0c*x",
    b'"\\ud800"',
)


@pytest.mark.parametrize("media_type", [APPLY, "application/yaml"])
async def test_yaml_that_is_no_object_is_a_bad_request(asker: Asker, media_type: str) -> None:
    """As a whole, as a value, and as a key; nothing is run, and nothing fails."""
    path = f"{MAPS}/a?fieldManager=m&dryRun=All" if media_type == APPLY else f"{MAPS}?dryRun=All"
    method = "PATCH" if media_type == APPLY else "POST"
    for text in YAML:
        for body in (text, b"data:\n  a: " + text, b"? " + text + b"\n: b\n", b"- " + text):
            answer = asker.ask(method, path, body, media_type)
            assert 400 <= answer.code < 500 or "failed to convert new object" in answer.message, (body[-60:], answer)


QUERIES = (
    "%ff",
    "%00",
    "-1",
    "9" * 5000,
    "%D9%A1",
    "1e9",
    "NaN",
    "%ED%A0%80",
    "(",
    "a%0Ab",
    "%F0%9F%98%80",
    "1_0",
    "%2B1",
)
PARAMETERS = (
    *(
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "fieldSelector",
        "labelSelector",
    ),
    *(
        "sendInitialEvents",
        "fieldManager",
        "fieldValidation",
        "dryRun",
        "gracePeriodSeconds",
        "propagationPolicy",
        "pretty",
    ),
)


@pytest.mark.parametrize("parameter", PARAMETERS)
async def test_a_parameter_of_any_text_is_answered(wire: Wire, parameter: str) -> None:
    """Read as Kubernetes reads it, or refused."""
    for value in QUERIES:
        query = f"{parameter}={value}"
        assert _sent(wire, f"GET {MAPS}?{query}", []) < 500, value
        assert _sent(wire, f"GET {MAPS}?watch=1&timeoutSeconds=1&resourceVersion=1&{query}", []) < 500, value
        assert _sent(wire, f"DELETE {MAPS}/none?{query}", []) < 500, value
        body = b'{"metadata":{"name":"a"}}'
        kind = [b"Content-Type: application/json"]
        assert _sent(wire, f"POST {MAPS}?{query}&dryRun=All", kind, body) < 500, value


async def test_a_path_of_any_bytes_is_answered(wire: Wire) -> None:
    """With what is there: nothing."""
    for part in ("%ff", "%00", "%2e%2e", "a%2fb", "%ed%a0%80", "%F0%9F%98%80", "x" * 5000):
        for path in (f"/{part}", f"/api/v1/namespaces/{part}/pods/x", f"{MAPS}/{part}", f"/apis/{part}/v1/x"):
            for method in ("GET", "PUT", "DELETE"):
                body = b"{}" if method == "PUT" else b""
                assert _sent(wire, f"{method} {path}", [b"Content-Type: application/json"], body) < 500, path
    assert _sent(wire, "GET /api/v1/namespaces/default/pods/x/log?sinceTime=0000-01-01T00:00:00Z", []) == 404


async def test_a_warning_that_fits_into_no_header_is_left_out(asker: Asker) -> None:
    """A line break in the name of a field ends no header."""
    odd = {"metadata": {"name": "a"}, "a\r\nSet-Cookie: x": 1, "b\x00": 2, "\u2028": 3}
    assert asker.ask("POST", f"{MAPS}?dryRun=All", odd).code == 201


async def test_a_body_of_any_types_is_refused(asker: Asker) -> None:
    """In whatever place something else is expected."""
    assert asker.ask("POST", MAPS, {"metadata": {"name": "a"}}).code == 201
    path = f"{MAPS}/a?fieldManager=m&dryRun=All"
    named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    odd: tuple[Any, ...] = (None, [], {}, "", 5, [None], [[]], {"$patch": []}, {"$patch": "delete"}, "9" * 5000)
    patches = (MERGE, "application/strategic-merge-patch+json")
    for value in odd:
        for name in ("apiVersion", "kind", "metadata", "data", "$patch", "$setElementOrder/data"):
            bodies = {**named, name: value}
            answers = [asker.ask("PATCH", path, bodies, kind) for kind in (*patches, APPLY)]
            answers += [asker.ask("PUT", path, bodies), asker.ask("POST", f"{MAPS}?dryRun=All", bodies)]
            for answer in answers:
                assert "an error on the server has" not in answer.message, (name, value)
        for options in (
            {"dryRun": value},
            {"dryRun": [value]},
            {"preconditions": value},
            {"gracePeriodSeconds": value},
        ):
            assert "an error on the server has" not in asker.ask("DELETE", path, options).message, options
        operation = {"op": "add", "path": "/data", "value": value}
        for part in ("op", "path", "from"):
            answer = asker.ask("PATCH", path, [{**operation, part: value}], "application/json-patch+json")
            assert answer.code < 500, (part, value)
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    for selector in ({"requirements": [{"key": "a", "operator": "In", "values": [None]}]}, {"requirements": [None]}):
        about = {"resourceAttributes": {"verb": "get", "resource": "pods", "labelSelector": selector}}
        spec = {"user": "a", "groups": [None], "extra": {"a": None, "b": [None]}, **about}
        assert asker.ask("POST", reviews, {"spec": spec}).code < 500
    odd_key = {**named, "kind": "Service", "spec": {"ports": [{"port": {"a": 1}}, {"port": {"a": 1}}]}}
    applied = "/api/v1/namespaces/default/services/a?fieldManager=m"
    assert "an error on the server has" not in asker.ask("PATCH", applied, odd_key, APPLY).message


async def test_a_version_of_any_length_is_refused(asker: Asker) -> None:
    """Though no number is that long."""
    assert asker.ask("POST", MAPS, {"metadata": {"name": "a"}}).code == 201
    for version in ("9" * 5000, "9" * 21, "18446744073709551616"):
        body = {"metadata": {"name": "a", "resourceVersion": version}}
        answer = asker.ask("PUT", f"{MAPS}/a", body)
        assert answer.code in {400, 409, 500}, answer
        assert "an error on the server" not in answer.message
        assert "an error on the server" not in asker.ask("POST", MAPS, body).message


def _job(name: str) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "spec": {"suspend": True, "template": {"spec": pod}}}


async def test_no_time_in_a_status_breaks_a_list(asker: Asker) -> None:
    """Neither as a table nor in any other form: the years 0000 to 9999 are times."""
    for number, moment in enumerate(EXTREMES):
        for other, end in enumerate(EXTREMES):
            name = f"j{number}{other}"
            assert asker.ask("POST", JOBS, _job(name)).code == 201
            asker.ask("PATCH", f"{JOBS}/{name}/status", {"status": {"startTime": moment, "completionTime": end}}, MERGE)
    for form in FORMS:
        assert asker.ask("GET", JOBS, accept=form).code == 200, form
    rows = asker.ask("GET", JOBS, accept=TABLE).body["rows"]
    assert len(rows) == len(EXTREMES) ** 2
    assert {row["cells"][3] for row in rows} >= {"292y"}


async def test_what_is_no_time_is_refused(asker: Asker) -> None:
    """Since nobody could read it again."""
    assert asker.ask("POST", JOBS, _job("j")).code == 201
    for text in (
        "2023-02-29T00:00:00Z",
        "0000-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2026-01-01T00:00:00+99:00",
    ):
        answer = asker.ask("PATCH", f"{JOBS}/j/status", {"status": {"startTime": text}}, MERGE)
        assert 400 <= answer.code < 500, text


async def test_no_number_in_a_custom_object_breaks_a_table(asker: Asker) -> None:
    """Of any size, in a column of any type."""
    types = ("integer", "number", "boolean", "date", "string")
    columns = [{"name": f"as {each}", "type": each, "jsonPath": ".v"} for each in types]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "metadata": {"name": "odds.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "odds", "kind": "Odd"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "additionalPrinterColumns": columns,
                }
            ],
        },
    }
    assert asker.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).code == 201
    path = "/apis/example.com/v1/namespaces/default/odds"
    wait_for("the new kind", lambda: asker.ask("GET", path).code == 200, seconds=30)
    values: tuple[Any, ...] = (
        1e300,
        -1e300,
        2**63,
        2**64 - 1,
        -(2**63),
        1.5,
        True,
        None,
        "",
        "0000-01-01T00:00:00Z",
        [],
        {},
        [[]],
    )
    made = [
        asker.ask(
            "POST", path, {"apiVersion": "example.com/v1", "kind": "Odd", "metadata": {"name": f"o{n}"}, "v": value}
        ).code
        for n, value in enumerate(values)
    ]
    assert made.count(201) >= len(values) - 2
    table = asker.ask("GET", path, accept=TABLE)
    assert table.code == 200
    assert len(table.body["rows"]) == made.count(201)


async def test_a_grace_period_of_any_length_is_a_grace_period(asker: Asker) -> None:
    """An end that has no date is far away."""
    pods = "/api/v1/namespaces/default/pods"
    asker.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    assert asker.ask("POST", pods, pod).code == 201
    for seconds in (2**63 - 1, 2**40):
        assert asker.ask("DELETE", f"{pods}/p?gracePeriodSeconds={seconds}").code == 200
        assert asker.ask("GET", pods, accept=TABLE).code == 200
