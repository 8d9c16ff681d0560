"""The cluster as it is seen from the network."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import navarch.cluster.embedded.http_server
import navarch.cluster.embedded.responses
from navarch._base.clock import SystemClock
from navarch.certificates import KeyPair
from navarch.cluster.embedded.credentials import ClusterAccess, ClusterAuthority
from navarch.cluster.embedded.https_front import ThreadedCluster
from navarch.cluster.server.wire.bodies import LIMIT_BYTES
from navarch.cluster.server.wire.request import User
from wire import Wire

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECONDS = 60.0


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def message(self) -> str:
        return str(json.loads(self.body)["message"])


class Caller:
    """Sends requests as they are, one connection each; looks at certificates as strictly as Python does from 3.13 on."""

    def __init__(self, access: ClusterAccess, *, context: ssl.SSLContext | None = None) -> None:
        self.access = access
        self.context = context or ssl.create_default_context(cadata=access.authority.decode())
        self.context.verify_flags |= ssl.VERIFY_X509_STRICT

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self.access.url.removeprefix("https://"), context=self.context, timeout=SECONDS
        )

    def ask(
        self, method: str, path: str, body: bytes | None = None, token: str | None = None, **headers: str
    ) -> Answer:
        connection = self.connect()
        given = {"Authorization": f"Bearer {self.access.token if token is None else token}"} if token != "" else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, given | ({"Content-Type": "application/json"} if body else {}))
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def threaded() -> Iterator[ThreadedCluster]:
    with ThreadedCluster() as threaded:
        yield threaded


@pytest.fixture
def caller(threaded: ThreadedCluster) -> Caller:
    return Caller(threaded.access)


def config_map(name: str, **data: str) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}).encode()


def test_object_is_made_and_read(caller: Caller) -> None:
    """With the headers that Kubernetes sends."""
    assert caller.ask("POST", CONFIG_MAPS, config_map("plain", k="v")).status == 201
    answer = caller.ask("GET", f"{CONFIG_MAPS}/plain")
    assert json.loads(answer.body)["data"] == {"k": "v"}
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-cache, private"


def test_warning_is_a_header(caller: Caller) -> None:
    """With its quotes escaped."""
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "warned"}, "sizes": 1}).encode()
    answer = caller.ask("POST", CONFIG_MAPS, body)
    assert answer.headers.get_all("Warning") == ['299 - "unknown field \\"sizes\\""']


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/nope", 404, "404 page not found\n"),
        ("GET", "//api/v1/namespaces/default", 404, "404 page not found\n"),
        ("GET", "/apis/nope.example.com/v1/things", 404, "404 page not found\n"),
        ("GET", "/healthz/", 404, "404 page not found\n"),
        ("GET", "/api//v1/namespaces/default", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces/../namespaces/default", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces/default/nodes", 404, "the server could not find the requested resource"),
        (
            "GET",
            "/api/v1/namespaces/default/namespaces/default",
            404,
            "the server could not find the requested resource",
        ),
        ("GET", "/api/v1/pods/x", 404, "the server could not find the requested resource"),
        ("GET", "/apis/apps/v1/nope", 404, "the server could not find the requested resource"),
        ("POST", "/api/v1/pods", 405, "the server does not allow this method on the requested resource"),
        ("PUT", CONFIG_MAPS, 405, "the server does not allow this method on the requested resource"),
        ("POST", f"{CONFIG_MAPS}/x", 405, "the server does not allow this method on the requested resource"),
        ("OPTIONS", CONFIG_MAPS, 405, "the server does not allow this method on the requested resource"),
        ("GET", f"{CONFIG_MAPS}/%2e%2e%2fx", 404, "the server could not find the requested resource"),
    ],
)
def test_path_that_leads_nowhere_is_told(caller: Caller, method: str, path: str, status: int, said: str) -> None:
    """In the words of kube-apiserver 1.36, which was asked the same."""
    answer = caller.ask(method, path)
    shown = answer.body.decode() if answer.headers["Content-Type"].startswith("text/") else answer.message
    assert (answer.status, shown) == (status, said)


def test_head_has_no_body(caller: Caller) -> None:
    """Where it is allowed at all."""
    assert caller.ask("HEAD", "/healthz")[0::2] == (200, b"")
    assert caller.ask("HEAD", "/api/v1/namespaces/default")[0::2] == (405, b"")


def test_query_is_read_as_go_reads_it(caller: Caller) -> None:
    """What is no parameter is passed over."""
    assert caller.ask("GET", f"{CONFIG_MAPS}?%zz&a;b=1&limit=1").status == 200


def test_body_over_the_limit_is_refused(caller: Caller) -> None:
    """Whether its length is told before or not."""
    answer = caller.ask("POST", CONFIG_MAPS, b" " * (LIMIT_BYTES + 1))
    assert (answer.status, answer.message) == (413, "Request entity too large: limit is 3145728")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'"x"', b"[" * 100_000, b"{}", b'{"kind":1}'])
def test_rubbish_is_a_bad_request(caller: Caller, body: bytes) -> None:
    """Never a fault of the server, and never a hang."""
    assert caller.ask("POST", CONFIG_MAPS, body or b" ").status in {400, 422}


def test_long_answers_are_compressed_for_who_wants_it(caller: Caller) -> None:
    """But lists are not, as with Kubernetes."""
    assert caller.ask("POST", CONFIG_MAPS, config_map("long", k="v" * 200_000)).status == 201
    answer = caller.ask("GET", f"{CONFIG_MAPS}/long", Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(answer.body))["metadata"]["name"] == "long"
    assert caller.ask("GET", f"{CONFIG_MAPS}/long").headers["Content-Encoding"] is None
    assert caller.ask("GET", CONFIG_MAPS, Accept_Encoding="gzip").headers["Content-Encoding"] is None


def test_nobody_gets_in_without_a_credential(caller: Caller) -> None:
    """A wrong token is 401, none at all is the anonymous user, who may next to nothing."""
    assert caller.ask("GET", CONFIG_MAPS, token="wrong").status == 401
    answer = caller.ask("GET", CONFIG_MAPS, token="")
    assert answer.status == 403
    assert 'User "system:anonymous" cannot list resource "configmaps"' in answer.message
    assert caller.ask("GET", "/version", token="").status == 200


def test_cluster_listens_on_loopback_alone(threaded: ThreadedCluster) -> None:
    """Nobody else reaches it, whatever they know."""
    port = threaded.access.url.rpartition(":")[2]
    files, own = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")], _own_sockets()
    rows = [line.split() for file in files for line in file.read_text().splitlines()[1:]]
    places = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{int(port):04X}") and row[9] in own}
    assert places == {f"0100007F:{int(port):04X}"}  # 127.0.0.1, and no other


def _own_sockets() -> set[str]:
    """The numbers of this process's sockets: others may listen on the same port of another address."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            found.add(os.readlink(link).removeprefix("socket:[").rstrip("]"))  # noqa: PTH115 - a number, no path
    return found


def test_body_that_does_not_come_is_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Kubernetes says after a minute is said; nothing was carried out."""
    monkeypatch.setattr(navarch.cluster.embedded.http_server, "_BODY_SECONDS", 0.2)
    with ThreadedCluster() as threaded:
        wire = Wire(threaded.access.config(threaded.access.token))
        headers = ["Content-Type: application/json", "Content-Length: 1000"]
        with wire.connected() as connection:
            connection.sendall(wire.head(f"POST {CONFIG_MAPS}", headers) + config_map("half"))
            response = http.client.HTTPResponse(connection)
            response.begin()
            said = json.loads(response.read())["message"]
        assert (response.status, said) == (504, "Timeout: request did not complete within the allotted timeout")
        assert not threaded.cluster.audit.records(verb="create", resource="configmaps")


def test_client_certificate_proves_who_asks(threaded: ThreadedCluster, tmp_path: Any) -> None:
    """The administrator's is in the kubeconfig."""
    context = with_certificate(threaded.access, threaded.access.admin, tmp_path)
    assert Caller(threaded.access, context=context).ask("GET", CONFIG_MAPS, token="").status == 200


def test_certificate_of_another_authority_is_not_believed(threaded: ThreadedCluster, tmp_path: Any) -> None:
    """The connection is refused."""
    clock = SystemClock()
    foreign = ClusterAuthority.make(clock).client_pair(clock, User("eve", groups=("system:masters",)))
    context = with_certificate(threaded.access, foreign, tmp_path)
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        Caller(threaded.access, context=context).ask("GET", CONFIG_MAPS, token="")


def with_certificate(access: ClusterAccess, pair: KeyPair, folder: Any) -> ssl.SSLContext:
    chain = folder / "chain.pem"
    chain.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=access.authority.decode())
    context.load_cert_chain(chain)
    return context


def test_records_say_where_a_request_came_from(threaded: ThreadedCluster, caller: Caller) -> None:
    """And have the id that its answer has."""
    answer = caller.ask("GET", f"{CONFIG_MAPS}/on-record", Audit_Id="mine")
    assert answer.headers["Audit-Id"] == "mine"
    (record,) = threaded.cluster.audit.records(name="on-record")
    event = record.to_json()
    assert (event["auditID"], event["sourceIPs"]) == ("mine", ["127.0.0.1"])


def test_watch_streams_and_ends_when_its_reader_leaves(threaded: ThreadedCluster, caller: Caller) -> None:
    """Each change is a line; whoever hangs up is noticed though nothing happens."""
    connection = caller.connect()
    connection.request("GET", f"{CONFIG_MAPS}?watch=1", headers={"Authorization": f"Bearer {caller.access.token}"})
    response = connection.getresponse()
    caller.ask("POST", CONFIG_MAPS, config_map("streamed"))
    lines = iter(response.readline, b"")
    assert any(json.loads(line)["object"]["metadata"]["name"] == "streamed" for line in lines)
    response.close()
    connection.close()
    wait_until(threaded, lambda: bool(threaded.cluster.audit.records(verb="watch", code=200)), "the watch to end")


def test_reader_that_reads_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the connection holds no more and nothing moves; whoever reads beside it misses nothing."""
    monkeypatch.setattr(navarch.cluster.embedded.responses, "_WRITE_SECONDS", 0.3)
    with ThreadedCluster() as threaded:
        caller = Caller(threaded.access)
        connection = caller.connect()
        connection.request("GET", f"{CONFIG_MAPS}?watch=1", headers={"Authorization": f"Bearer {caller.access.token}"})
        response = connection.getresponse()
        for number in range(60):
            assert caller.ask("POST", CONFIG_MAPS, config_map(f"big-{number}", k="v" * 500_000)).status == 201
        wait_until(threaded, lambda: bool(threaded.cluster.audit.records(verb="watch")), "the watch to be cut off")
        assert caller.ask("GET", "/healthz").status == 200
        response.close()
        connection.close()


def test_watch_ends_at_its_time(caller: Caller) -> None:
    """With a whole answer, not a broken connection."""
    caller.ask("POST", CONFIG_MAPS, config_map("seen"))
    answer = caller.ask("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1")
    assert answer.status == 200
    assert answer.body.endswith(b"\n")


def test_connection_is_used_again(caller: Caller) -> None:
    """Also after a refusal."""
    connection = caller.connect()
    for path, status in ((CONFIG_MAPS, 200), ("/nope", 404), (f"{CONFIG_MAPS}/nothing", 404), ("/healthz", 200)):
        connection.request("GET", path, headers={"Authorization": f"Bearer {caller.access.token}"})
        response = connection.getresponse()
        response.read()
        assert response.status == status
    connection.close()


def test_cluster_ends_though_somebody_watches() -> None:
    """The stream breaks off, and no thread is left."""
    before = set(threading.enumerate())
    with ThreadedCluster() as threaded:
        caller = Caller(threaded.access)
        connection = caller.connect()
        connection.request("GET", f"{CONFIG_MAPS}?watch=1", headers={"Authorization": f"Bearer {caller.access.token}"})
        response = connection.getresponse()
    with pytest.raises((http.client.IncompleteRead, ssl.SSLError, ConnectionError)):
        response.read()
    connection.close()
    assert set(threading.enumerate()) <= before


def test_what_keeps_a_cluster_from_starting_is_raised() -> None:
    """In the thread that wanted it."""

    def broken() -> Any:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"), ThreadedCluster(broken):
        pass


def wait_until(threaded: ThreadedCluster, holds: Callable[[], bool], what: str) -> None:
    """Asks in the cluster's own loop, where something happens between two questions."""
    clock = SystemClock()
    end = clock.monotonic() + SECONDS
    while not threaded.submit(_asked(holds)).result(SECONDS):
        assert clock.monotonic() < end, f"expected {what} within {SECONDS:g} s"


async def _asked(holds: Callable[[], bool]) -> bool:
    await asyncio.get_running_loop().run_in_executor(None, partial(bool, 1))
    return holds()
