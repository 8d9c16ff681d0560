"""One request does not stop the server: what each attack costs is bounded, and others are answered meanwhile."""

from __future__ import annotations

import base64
import gzip
import json
import math
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from certificates import sign
from security.attacked_cluster import AttackedCluster, attacked_cluster
from wire import Answer, answer_in, everything

SECONDS = 10.0
"""What another client may wait at most on a machine that has much else to do; alone it is far below one."""
MEBIBYTE = 2**20
MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
PODS = "/api/v1/namespaces/default/pods"
JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Attack(NamedTuple):
    """A request."""

    line: str
    body: bytes = b""
    media_type: str = JSON
    headers: tuple[str, ...] = ()


@pytest.fixture(scope="module")
def target() -> Iterator[AttackedCluster]:
    with attacked_cluster() as cluster:
        yield cluster


def sent(target: AttackedCluster, attack: Attack, connection: ssl.SSLSocket) -> None:
    """Sends it; a server that has seen enough may close before all has come."""
    headers = [*attack.headers, "Connection: close"]
    if attack.body:
        headers += [f"Content-Type: {attack.media_type}", f"Content-Length: {len(attack.body)}"]
    with suppress(ConnectionError, ssl.SSLEOFError):
        connection.sendall(target.wire.head(attack.line, headers) + attack.body)


def asked(target: AttackedCluster, attack: Attack) -> Answer:
    """The answer to an attack, while which another client got one, too."""
    with target.wire.connected() as connection:
        sent(target, attack, connection)
        assert_answers(target)
        return answer_in(everything(connection))


def assert_answers(target: AttackedCluster) -> None:
    """Another client is answered soon."""
    with target.wire.connected() as other:
        other.settimeout(SECONDS)
        other.sendall(target.wire.head("GET /version", ["Connection: close"]))
        assert answer_in(everything(other)).status == 200


def assert_grows_evenly(least: Callable[[], float], most: Callable[[], float], what: str) -> None:
    """The cost of the large request is at most eight times that of the small one; in the best of three tries, since a
    machine that does much else spoils some.
    """
    small = large = math.inf
    for _ in range(3):
        small, large = min(small, least()), min(large, most())
        if large <= MOST_GROWTH * max(small, SHORTEST):
            return
    pytest.fail(f"expected at most {MOST_GROWTH} times the processor time, got {small} s and {large} s {what}")


def spent(target: AttackedCluster, attack: Attack) -> float:
    """The processor time of the cluster for a request, in seconds."""
    before = target.cpu_seconds()
    with target.wire.connected() as connection:
        sent(target, attack, connection)
        everything(connection)
    return target.cpu_seconds() - before


def config_map(data: bytes) -> bytes:
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},%b}' % data


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def repeated_keys(size: int) -> Attack:
    pairs = b",".join(b'"%d":"a","%d":"a"' % (number, number) for number in range(size // 20))
    return Attack(f"POST {MAPS}?dryRun=All", config_map(b'"data":{%b}' % pairs))


def repeated_objects(size: int) -> Attack:
    objects = b",".join(b'"data":{"k%d":"a"}' % number for number in range(size // 20))
    return Attack(f"POST {MAPS}?dryRun=All", config_map(objects))


def repeated_below_a_long_name(size: int) -> Attack:
    pairs = b",".join(b'"%d":1,"%d":1' % (number, number) for number in range(size // 28))
    return Attack(f"POST {MAPS}?dryRun=All", config_map(b'"%b":{%b}' % (b"x" * (size // 3), pairs)))


def unknown_below_a_long_name(size: int) -> Attack:
    pairs = b",".join(b'"%d":1' % number for number in range(size // 14))
    return Attack(f"POST {MAPS}?dryRun=All", config_map(b'"metadata":{"%b":{%b}}' % (b"x" * (size // 3), pairs)))


def yaml_list(size: int) -> Attack:
    return Attack(f"PATCH {MAPS}/x?fieldManager=m", b"a: [" + b"a," * (size // 2) + b"a]", APPLY)


def yaml_pairs(size: int) -> Attack:
    pairs = b"".join(b" k%d: v\n" % number for number in range(size // 9))
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n" + pairs
    return Attack(f"PATCH {MAPS}/x?fieldManager=m&dryRun=All", text, APPLY)


def yaml_repeated(size: int) -> Attack:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n" + b" k: v\n" * (size // 6)
    return Attack(f"POST {MAPS}?dryRun=All", text, YAML)


def yaml_merges(size: int) -> Attack:
    base = b"a: &a {" + b",".join(b"k%d: v" % number for number in range(100)) + b"}\n"
    return Attack(
        f"PATCH {MAPS}/x?fieldManager=m",
        base + b"".join(b"m%d: {<<: *a}\n" % number for number in range(size // 16)),
        APPLY,
    )


def yaml_tag_directives(size: int) -> Attack:
    return Attack(
        f"PATCH {MAPS}/x?fieldManager=m",
        b"".join(b"%%TAG !a%d! x\n" % number for number in range(size // 14)) + b"---\na: 1\n",
        APPLY,
    )


def strategic_finalizers(size: int) -> Attack:
    names = [f"example.com/{number}" for number in range(size // 18)]
    return Attack(f"PATCH {MAPS}/seed?dryRun=All", written({"metadata": {"finalizers": names}}), STRATEGIC)


def strategic_order(size: int) -> Attack:
    names = [f"example.com/{number}" for number in range(size // 36)]
    metadata = {"$setElementOrder/finalizers": names, "finalizers": names}
    return Attack(f"PATCH {MAPS}/seed?dryRun=All", written({"metadata": metadata}), STRATEGIC)


def strategic_items(size: int) -> Attack:
    ports = [{"port": number % 65000 + 1, "name": f"p{number}"} for number in range(size // 25)]
    return Attack(f"PATCH {SERVICES}/seed?dryRun=All", written({"spec": {"ports": ports}}), STRATEGIC)


def strategic_deletions(size: int) -> Attack:
    ports = [{"$patch": "delete", "port": number} for number in range(size // 27)]
    return Attack(f"PATCH {SERVICES}/seed?dryRun=All", written({"spec": {"ports": ports}}), STRATEGIC)


def strategic_retained(size: int) -> Attack:
    labels: dict[str, Any] = {f"k{number}": "v" for number in range(size // 20)}
    patch = {"metadata": {"labels": {**labels, "$retainKeys": list(labels)}}}
    return Attack(f"PATCH {MAPS}/seed?dryRun=All", written(patch), STRATEGIC)


def removed_finalizers(_: int) -> Attack:
    return Attack(f"PATCH {MAPS}/seed?dryRun=All", written({"metadata": {"finalizers": None}}), STRATEGIC)


def managers(size: int) -> Attack:
    entries = [
        {
            "manager": f"m{number}",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {f"f:k{number}": {}}},
        }
        for number in range(size // 120)
    ]
    metadata = {"name": "x", "managedFields": entries}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return Attack(f"POST {MAPS}?dryRun=All", written(body))


def bad_labels(size: int) -> Attack:
    metadata = {"name": "x", "labels": {f"!{number}": "!" for number in range(size // 12)}}
    return Attack(f"POST {MAPS}?dryRun=All", written({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))


def inserted_in_front(size: int) -> Attack:
    first = {"op": "add", "path": "/metadata/finalizers", "value": ["a/b"] * (size // 12)}
    rest = [{"op": "add", "path": "/metadata/finalizers/0", "value": "a"}] * (size // 100)
    return Attack(f"PATCH {MAPS}/seed?dryRun=All", written([first, *rest]), JSON_PATCH)


def broken_json(size: int) -> Attack:
    return Attack(f"POST {MAPS}?dryRun=All", b'{"a":[' + b"1," * (size // 2) + b"!")


def protobuf_parts(size: int) -> Attack:
    return Attack(f"POST {MAPS}?dryRun=All", b"k8s\0" + b"\x12\x00" * (size // 2), PROTOBUF)


def accepted(size: int) -> Attack:
    return Attack(f"GET {MAPS}/none", headers=(f"Accept: {'a/b,' * (size // 4)}",))


def groups(size: int) -> Attack:
    named = tuple(f"Impersonate-Group: {number:060}" for number in range(min(9000, size // 80)))
    return Attack(f"GET {MAPS}/none", headers=("Impersonate-User: a", *named))


def label_selector(size: int) -> Attack:
    return Attack(f"GET {MAPS}?labelSelector={','.join(['a%20in%20(b,c)'] * (min(size, 120_000) // 15))}")


def timeout(size: int) -> Attack:
    return Attack(f"GET {MAPS}/none?timeout={'1h' * (min(size, 120_000) // 2)}")


LINEAR = [
    repeated_keys,
    repeated_objects,
    repeated_below_a_long_name,
    unknown_below_a_long_name,
    yaml_list,
    yaml_pairs,
    yaml_repeated,
    yaml_merges,
    yaml_tag_directives,
    strategic_finalizers,
    strategic_order,
    strategic_items,
    strategic_deletions,
    strategic_retained,
    removed_finalizers,
    managers,
    bad_labels,
    inserted_in_front,
    broken_json,
    protobuf_parts,
    accepted,
    groups,
    label_selector,
    timeout,
]
QUICK = frozenset(
    {repeated_keys, yaml_pairs, yaml_merges, strategic_items, managers, inserted_in_front, protobuf_parts, groups}
)
"""One of each sort; `make e2e` tries all of them."""
ATTACKS = [pytest.param(make, marks=[] if make in QUICK else [pytest.mark.long], id=make.__name__) for make in LINEAR]
SMALL = 50_000
TIMES = 4
MOST_GROWTH = 8
SHORTEST = 0.05
"""Processor time below which growth says nothing: the system counts it in hundredths."""


@pytest.fixture(scope="module", autouse=True)
def seeds(target: AttackedCluster) -> None:
    """What patches are for."""
    finalizers = [f"example.com/{number}" for number in range(3000)]
    metadata = {"name": "seed", "finalizers": finalizers}
    body = written({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
    assert target.wire.ask(f"POST {MAPS}", body=body).status == 201
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "seed"}, "spec": {"ports": [{"port": 80}]}}
    assert target.wire.ask(f"POST {SERVICES}", body=written(service)).status == 201


@pytest.mark.parametrize("make", ATTACKS)
def test_cost_grows_as_the_request_does(target: AttackedCluster, make: Callable[[int], Attack]) -> None:
    """Four times the bytes cost at most eight times the processor time, and others are answered meanwhile."""
    small, large = make(SMALL), make(TIMES * SMALL)
    assert asked(target, large).status < 500
    what = f"for {SMALL} bytes and {TIMES} times as many"
    assert_grows_evenly(lambda: spent(target, small), lambda: spent(target, large), what)


@pytest.mark.parametrize("make", ATTACKS)
def test_largest_request_leaves_others_their_turn(target: AttackedCluster, make: Callable[[int], Attack]) -> None:
    """At the limit of a body, or beyond: it is served or refused, never with a fault of the server."""
    assert asked(target, make(2_500_000)).status in {200, 201, 400, 403, 404, 406, 413, 422, 431}


def test_merge_keys_do_not_multiply(target: AttackedCluster) -> None:
    """A few hundred bytes of YAML that stand for gigabytes are a bad request, and cost no memory."""
    lines = ["a0: &a0 {k: v}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], b: c}}" for n in range(1, 22)]
    attack = Attack(f"PATCH {MAPS}/x?fieldManager=m", "\n".join(lines).encode(), APPLY)
    before = target.begin_peak()
    answer = asked(target, attack)
    assert answer.status == 400
    assert answer.said.endswith("yaml: document contains excessive aliasing")
    assert target.peak() - before < 20 * MEBIBYTE


@pytest.mark.parametrize("media_type", [APPLY, YAML])
@pytest.mark.parametrize("form", ["[{0}, {0}]", "{{a: {0}, b: {0}}}", "{{<<: {0}, a: {0}}}", "[[{0}], {0}]"])
def test_aliases_do_not_multiply(target: AttackedCluster, form: str, media_type: str) -> None:
    """In lists, in objects and in both, in every body that may be YAML."""
    lines = ["a0: &a0 {k: v}"] + [f"a{n}: &a{n} {form.format(f'*a{n - 1}')}" for n in range(1, 60)]
    line = f"PATCH {MAPS}/x?fieldManager=m" if media_type == APPLY else f"POST {MAPS}"
    before = target.begin_peak()
    answer = asked(target, Attack(line, "\n".join(lines).encode(), media_type))
    assert answer.status == 400
    assert "excessive aliasing" in answer.said
    assert target.peak() - before < 20 * MEBIBYTE


@pytest.mark.parametrize("copied", ["/data", "/metadata", "/metadata/annotations"])
def test_patch_that_copies_an_object_into_itself_is_refused(target: AttackedCluster, copied: str) -> None:
    """Forty operations would make it a trillion times as large."""
    operations = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 100}}]
    operations += [{"op": "copy", "from": copied, "path": f"{copied}/k{number}"} for number in range(40)]
    before = target.begin_peak()
    answer = asked(target, Attack(f"PATCH {MAPS}/seed", written(operations), JSON_PATCH))
    assert answer == Answer(422, "the server rejected our request due to an error in our request")
    assert target.peak() - before < 100 * MEBIBYTE


def test_patch_that_moves_an_object_into_itself_ends_at_a_depth(target: AttackedCluster) -> None:
    """Two operations nest it once more; what cannot be written is refused."""
    nest = [{"op": "add", "path": "/t", "value": {}}, {"op": "move", "from": "/data", "path": "/t/x"}]
    nest += [{"op": "move", "from": "/t", "path": "/data"}]
    answer = asked(target, Attack(f"PATCH {MAPS}/seed", written(nest * 3000), JSON_PATCH))
    assert answer == Answer(400, "exceeded max depth")


@pytest.mark.parametrize("unit", [b"0", b"{}", b"[]", b'"a"', b"null", b'{"a":[{}]}'])
def test_body_of_very_many_values_is_refused(target: AttackedCluster, unit: bytes) -> None:
    """A megabyte of them would be a hundred in memory, and be walked over time and again."""
    count = MEBIBYTE // (len(unit) + 1)
    answer = asked(target, Attack(f"POST {MAPS}?dryRun=All", config_map(b'"x":[%b]' % b",".join([unit] * count))))
    assert answer.status == 413
    assert answer.said.startswith("Request entity too large: ")


@pytest.mark.parametrize(
    ("line", "media_type"),
    [
        (f"POST {MAPS}?dryRun=All", JSON),
        (f"POST {MAPS}?dryRun=All", YAML),
        (f"PATCH {MAPS}/seed", "application/merge-patch+json"),
        (f"PATCH {MAPS}/seed", STRATEGIC),
        (f"PATCH {MAPS}/x?fieldManager=m", APPLY),
        (f"DELETE {MAPS}/none", JSON),
    ],
)
@pytest.mark.parametrize("depth", [300, 900, 1100, 100_000])
def test_depth_is_refused(target: AttackedCluster, line: str, media_type: str, depth: int) -> None:
    """Whatever reads the body, a stack has an end."""
    body = config_map(b'"data":%b1%b' % (b'{"a":' * depth, b"}" * depth))
    assert asked(target, Attack(line, body, media_type)).status == 400


def test_faults_are_not_longer_than_what_has_them(target: AttackedCluster) -> None:
    """Of very many, the first are told: a label of three bytes has three hundred of faults."""
    with target.wire.connected() as connection:
        sent(target, bad_labels(1_000_000), connection)
        assert len(everything(connection)) < MEBIBYTE


class Page(BaseHTTPRequestHandler):
    """Answers with what its server has."""

    server: Backend

    def do_GET(self) -> None:
        self.send_response(200)
        for name, value in self.server.headers:
            self.send_header(name, value)
        self.end_headers()
        with suppress(ConnectionError):
            for piece in self.server.pieces():
                self.wfile.write(piece)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, *_: object) -> None: ...


class Backend(ThreadingHTTPServer):
    """A program at 127.0.0.1 that answers every request in the same way."""

    daemon_threads = True

    def __init__(self, pieces: Callable[[], Iterator[bytes]], *headers: tuple[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.pieces = pieces
        self.headers = headers


@contextmanager
def running(backend: Backend, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serves in a thread; the port."""
    if tls is not None:
        backend.socket = tls.wrap_socket(backend.socket, server_side=True)
    thread = threading.Thread(target=backend.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield backend.server_address[1]
    finally:
        backend.shutdown()
        backend.server_close()
        thread.join()


def page(text: bytes, *headers: tuple[str, str]) -> Backend:
    return Backend(lambda: iter([text]), ("Content-Type", "text/html"), *headers)


PAGES = {
    "tags": lambda size: b"<a " * (size // 3),
    "quotes": lambda size: b'<a "' * (size // 4),
    "tags that end": lambda size: b"<a>" * (size // 3),
    "comments": lambda size: b"<!--" * (size // 4),
    "declarations": lambda size: b"<!" * (size // 2),
    "scripts": lambda size: b"<script></scrip" * (size // 15),
    "entities": lambda size: b'<a href="' + b"&" * size + b'">',
    "a number": lambda size: b'<a href="&#' + b"9" * size + b';">',
    "attributes": lambda size: b"<a " + b"b=c " * (size // 4) + b">",
    "spaces": lambda size: b"<a b" + b" " * size + b"c>",
    "quotes in names": lambda size: b"<a " + b"b'\"=' " * (size // 6) + b">",
}


@pytest.mark.parametrize("name", PAGES)
def test_page_is_rewritten_in_time_that_its_size_is_worth(target: AttackedCluster, name: str) -> None:
    """Whatever a pod takes for a page."""

    def cost(size: int) -> float:
        with running(page(PAGES[name](size))) as port:
            attack = Attack(f"GET {PODS}/web:{port}/proxy/")
            assert asked(target, attack).status == 200
            return spent(target, attack)

    assert_grows_evenly(lambda: cost(60_000), lambda: cost(240_000), "for 60,000 bytes and four times as many")


@pytest.mark.parametrize(("size", "is_rewritten"), [(100, True), (300 * MEBIBYTE, False)])
def test_packed_page_is_unpacked_only_if_it_is_short(target: AttackedCluster, size: int, is_rewritten: bool) -> None:
    """Another one goes on as it came."""
    packed = gzip.compress(b"<a href=/x>" + b" " * size, compresslevel=9)
    before = target.begin_peak()
    with running(page(packed, ("Content-Encoding", "gzip"))) as port, target.wire.connected() as connection:
        sent(target, Attack(f"GET {PODS}/web:{port}/proxy/"), connection)
        assert_answers(target)
        received = everything(connection)
    assert (packed in received) is not is_rewritten
    assert target.peak() - before < 50 * MEBIBYTE


def test_endless_page_is_not_kept(target: AttackedCluster) -> None:
    """It goes on as it comes, for as long as the client reads."""
    endless = Backend(lambda: iter(lambda: b"<a>" * 20_000, b""), ("Content-Type", "text/html"))
    before = target.begin_peak()
    with running(endless) as port, target.wire.connected() as connection:
        sent(target, Attack(f"GET {PODS}/web:{port}/proxy/"), connection)
        for _ in range(1000):
            assert connection.recv(65536)
        assert_answers(target)
    assert target.peak() - before < 50 * MEBIBYTE


@pytest.mark.parametrize("packed", [False, True])
def test_answer_of_a_webhook_is_bounded(target: AttackedCluster, tmp_path: Path, packed: bool) -> None:
    """Whoever may register one, or stands in its place, cannot fill the memory."""
    authority = sign("ca")
    signed = sign("hook", authority)
    (tmp_path / "both.pem").write_bytes(signed.pem + signed.key)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "both.pem")
    body = gzip.compress(b" " * (300 * MEBIBYTE)) if packed else b" " * (64 * MEBIBYTE)
    kind = [("Content-Type", JSON), *([("Content-Encoding", "gzip")] if packed else [])]
    with running(Backend(lambda: iter([body]), *kind), tls) as port:
        hook = {
            "name": "bomb.example.com",
            "clientConfig": {
                "url": f"https://127.0.0.1:{port}/",
                "caBundle": base64.b64encode(authority.pem).decode(),
            },
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "operations": ["CREATE"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        made = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "bomb"},
            "webhooks": [hook],
        }
        assert target.wire.ask(f"POST {path}", body=written(made)).status == 201
        try:
            before = target.begin_peak()
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}
            answer = asked(target, Attack("POST /api/v1/namespaces/default/secrets?dryRun=All", written(secret)))
            assert answer.status == 500
            assert "expected an answer of at most" in answer.said
            assert target.peak() - before < 50 * MEBIBYTE
        finally:
            target.wire.ask(f"DELETE {path}/bomb")


HEAD = b"GET /version HTTP/1.1\r\nHost: cluster\r\n"


def streamed(target: AttackedCluster, first: bytes, pieces: Iterator[bytes]) -> bytes:
    """Sends pieces, with no credential, until the server has had enough; returns what it says."""
    with target.wire.connected() as connection:
        connection.settimeout(SECONDS)
        with suppress(ConnectionError, ssl.SSLError, TimeoutError):
            connection.sendall(first)
            for piece in pieces:
                connection.sendall(piece)
        with suppress(OSError):
            return everything(connection)
    return b""


@pytest.mark.parametrize(
    "header",
    [
        lambda number: b"X-%d: %b\r\n" % (number, b"y" * 60_000),
        lambda number: b"X-%d: y\r\n" % number * 2000,
        lambda number: b"y" * 60_000,
        lambda number: b"X: y\r\n y" * 2000,
    ],
    ids=["many large", "many small", "one without end", "folded"],
)
def test_head_is_bounded_and_nothing_of_it_kept(target: AttackedCluster, header: Callable[[int], bytes]) -> None:
    """Whoever sends headers without end, and without a credential, is told after a megabyte."""
    before = target.begin_peak()
    received = streamed(target, HEAD + b"X: ", (header(number) for number in range(1000)))
    assert received[9:12] in {b"", b"431", b"400"}
    assert target.peak() - before < 30 * MEBIBYTE
    assert_answers(target)


def test_many_headers_that_are_too_much_together_are_told_so(target: AttackedCluster) -> None:
    """431, in a line of text, as the real server does it."""
    headers = [f"X-{number}: {'y' * 50_000}" for number in range(30)]
    assert target.wire.ask("GET /version", headers) == Answer(431, "431 Request Header Fields Too Large")


@pytest.mark.parametrize(
    "piece",
    [b"X: %b\r\n" % (b"y" * 60_000), b"X: y\r\n" * 5000],
    ids=["large trailers", "small trailers"],
)
def test_trailers_are_bounded(target: AttackedCluster, piece: bytes) -> None:
    """What follows the last chunk counts as a head does."""
    first = b"POST %b HTTP/1.1\r\nHost: cluster\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" % MAPS.encode()
    before = target.begin_peak()
    streamed(target, first, iter([piece] * 1000))
    assert target.peak() - before < 30 * MEBIBYTE
    assert_answers(target)


@pytest.mark.parametrize("chunk", [b"1\r\nx\r\n" * 8000, b"1;" + b"e" * 60_000 + b"\r\nx\r\n"])
def test_chunks_that_are_more_than_their_data_are_bounded(target: AttackedCluster, chunk: bytes) -> None:
    """Tiny ones, and such with long extensions."""
    first = target.wire.head(f"POST {MAPS}", ["Transfer-Encoding: chunked"])
    before = target.begin_peak()
    streamed(target, first, iter([chunk] * 500))
    assert target.peak() - before < 50 * MEBIBYTE
    assert_answers(target)


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Transfer-Encoding: chunked, identity"],
        ["Content-Length: +5"],
    ],
    ids=str,
)
def test_request_that_could_be_read_in_two_ways_is_refused(target: AttackedCluster, headers: Sequence[str]) -> None:
    """Nobody behind or before the server may read another request out of it."""
    smuggled = b"0\r\n\r\nGET /version HTTP/1.1\r\nHost: x\r\n\r\n"
    with target.wire.connected() as connection:
        connection.sendall(target.wire.head(f"POST {MAPS}", headers) + smuggled)
        assert answer_in(everything(connection)).status in {400, 501}


def is_closed(connection: ssl.SSLSocket) -> bool:
    """Whether the server has closed it, and sent nothing."""
    connection.settimeout(0.0)
    try:
        return connection.recv(1) == b""
    except (ssl.SSLWantReadError, BlockingIOError):
        return False
    except OSError:
        return True


def test_heads_that_do_not_end_take_no_room_from_others(target: AttackedCluster) -> None:
    """Of five hundred half-sent heads the oldest are closed while new ones come, and everybody else is served."""
    with ExitStack() as opened:
        slow = []
        for _ in range(500):
            connection = opened.enter_context(target.wire.connected())
            connection.sendall(HEAD)
            slow.append(connection)
        assert_answers(target)
        assert sum(not is_closed(each) for each in slow) <= 256


def test_head_has_to_come_in_time(target: AttackedCluster) -> None:
    """A connection that sends half a head, one that sends nothing, and one that begins a second request are closed."""
    with ExitStack() as opened:
        silent, half, second = (opened.enter_context(target.wire.connected()) for _ in range(3))
        half.sendall(HEAD)
        second.sendall(HEAD + b"\r\n")
        second.recv(65536)
        second.sendall(HEAD)
        for each in (silent, half, second):
            each.settimeout(30.0)
            with suppress(ConnectionError, ssl.SSLError):
                assert each.recv(65536) == b"", "expected the server to close within 30 s"


def test_handshake_that_does_not_end_holds_up_nobody(target: AttackedCluster) -> None:
    """Connections that never speak TLS are one client's affair."""
    host, port = target.config.server.removeprefix("https://").split(":")
    with ExitStack() as opened:
        for _ in range(200):
            opened.enter_context(socket.create_connection((host, int(port)), timeout=SECONDS))
        assert_answers(target)
