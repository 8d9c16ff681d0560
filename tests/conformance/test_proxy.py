"""HTTP through the API server to pods, services and nodes: containers on the real one, processes on the embedded one."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from kubernetes import client as k8s
from kubernetes import watch as k8s_watch

import rig
from conformance.pod_sites import SECONDS, Served, served_site
from navarch.client import load
from rig.waiting import wait_for

MEBIBYTE = 2**20


@dataclass(frozen=True)
class Behind:
    """A pod `web` that serves HTTP on 8080, services before it, and the way to them."""

    served: Served
    node: str
    address: str
    token: str

    @property
    def place(self) -> str:
        return f"/api/v1/namespaces/{self.served.namespace}"

    def connect(self) -> HTTPSConnection:
        config = load(self.served.kubeconfig)
        parts = urlsplit(config.server)
        trusted = ssl.create_default_context(cadata=config.ca_data.decode() or Path(config.ca_file).read_text())
        return HTTPSConnection(parts.hostname or "", parts.port, context=trusted, timeout=SECONDS)

    def whole(self, path: str) -> str:
        """A path below the namespace, or that of a node."""
        return path.replace("$NODE", self.node) if path.startswith("/") else f"{self.place}/{path}"

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, token: str = ""
    ) -> tuple[HTTPResponse, bytes]:
        """The answer and its body, on a connection of its own."""
        credential = {"Authorization": f"Bearer {token or self.token}"}
        with closing(self.connect()) as connection:
            connection.request(method, self.whole(path), body, {**credential, **(headers or {})})
            answer = connection.getresponse()
            return answer, answer.read()

    def mirrored(self, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """What the pod was asked."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer, told = self.ask(method, path, body, named)
        assert answer.status == 200, told
        found: dict[str, Any] = json.loads(told)
        return found

    def text(self, path: str) -> str:
        answer, body = self.ask("GET", path)
        assert answer.status == 200, body
        return body.decode()

    def account(self, name: str, *bindings: tuple[str, str]) -> str:
        """A token of a new account; `bindings` are the kind and name of the roles that it has."""
        core, namespace = self.served.core, self.served.namespace
        rbac = k8s.RbacAuthorizationV1Api(core.api_client)
        core.create_namespaced_service_account(namespace, {"metadata": {"name": name}})
        for kind, role in bindings:
            body = {
                "metadata": {"name": f"{namespace}-{name}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }
            if kind == "Role":
                rbac.create_namespaced_role_binding(namespace, body)
            else:
                rbac.create_cluster_role_binding(body)
        return str(core.create_namespaced_service_account_token(name, namespace, {"spec": {}}).status.token)


def started(served: Served) -> Behind:
    """With everything that the tests ask for."""
    core, namespace = served.core, served.namespace
    ready = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    served.start("http", "8080", ports=[{"containerPort": 8080}], readinessProbe=ready)
    core.patch_namespaced_pod("web", namespace, {"metadata": {"labels": {"app": "web"}}})
    nowhere = {"nodeSelector": {"no": "node"}, "containers": [{"name": "x", "image": "x"}]}
    core.create_namespaced_pod(namespace, {"metadata": {"name": "nowhere"}, "spec": nowhere})
    two = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "dead", "port": 81, "targetPort": 9}]
    one = [{"port": 80, "targetPort": 8080}]
    for name, selector, ports in (("one", "web", one), ("two", "web", two), ("none", "nobody", one)):
        spec = {"selector": {"app": selector}, "ports": ports}
        core.create_namespaced_service(namespace, {"metadata": {"name": name}, "spec": spec})
    core.create_namespaced_service(namespace, {"metadata": {"name": "bare"}, "spec": {"ports": one}})
    _await_addresses(core, namespace, {"one": True, "two": True, "none": False})
    pod = core.read_namespaced_pod("web", namespace)
    behind = Behind(served, pod.spec.node_name, pod.status.pod_ip, "")
    token = behind.account("boss", ("ClusterRole", "cluster-admin"))
    _await_right(core, namespace, "boss")
    return Behind(served, behind.node, behind.address, token)


def _await_addresses(core: k8s.CoreV1Api, namespace: str, missing: dict[str, bool]) -> None:
    """Until it is known of each service whether there are pods behind it."""
    watch = k8s_watch.Watch()
    for event in watch.stream(core.list_namespaced_endpoints, namespace, timeout_seconds=SECONDS):
        name, subsets = event["object"].metadata.name, event["object"].subsets or ()
        if missing.get(name) == any(subset.addresses for subset in subsets):
            del missing[name]
        if not missing:
            watch.stop()
            return
    pytest.fail(f"expected Endpoints of the services {sorted(missing)} within {SECONDS} s")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, rig.Cluster | None], Behind]]:
    """One place for each engine: to start a pod takes longer than all that is asked of it."""
    found: dict[str, Behind] = {}
    with ExitStack() as stack:

        def place(engine: str, cluster: rig.Cluster | None) -> Behind:
            if engine not in found:
                folder = tmp_path_factory.mktemp("proxy")
                found[engine] = started(stack.enter_context(served_site(cluster, folder)))
            return found[engine]

        yield place


@pytest.fixture
def behind(
    kept: Callable[[str, rig.Cluster | None], Behind], engine: str, rig_with_node_or_none: rig.Cluster | None
) -> Behind:
    """What is reached through the server."""
    return kept(engine, rig_with_node_or_none)


NAMES = (
    "pods/web",
    "pods/http:web:8080",
    "services/one",
    "services/one:80",
    "services/two:http",
    "services/http:two:80",
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.mark.parametrize("name", NAMES)
def test_request_reaches_the_pod_as_it_is(behind: Behind, name: str) -> None:
    """With its method, its path, its query and its body, by every way that leads there."""
    for method in METHODS:
        told = behind.mirrored(method, f"{name}/proxy/a%20b/(c)/?x=1&y=%20&x=2", "body", Content_Type="text/plain")
        assert (told["method"], told["target"], told["body"]) == (method, "/a%20b/%28c%29/?x=1&y=%20&x=2", "body")
        assert told["headers"]["content-type"] == "text/plain"
        assert told["headers"]["x-forwarded-uri"] == f"{behind.place}/{name}/proxy/a%20b/%28c%29/"


def test_pod_is_told_who_asks_but_no_credential(behind: Behind) -> None:
    """Everything else of the head goes on, but for what is between neighbours."""
    told = behind.mirrored(
        "GET",
        "pods/web/proxy/",
        X_Forwarded_For="192.0.2.1",
        X_Own="kept",
        Cookie="k=v",
        Connection="X-Gone",
        X_Gone="1",
        X_Remote_User="admin",
        Accept_Encoding="identity",
        Host="cluster.example",
    )
    headers = told["headers"]
    before, _, asker = headers.pop("x-forwarded-for").partition(", ")
    assert (told["host"], before) == ("cluster.example", "192.0.2.1")
    assert socket.inet_pton(socket.AF_INET, asker)
    assert headers == {
        "x-own": "kept",
        "cookie": "k=v",
        "accept-encoding": "identity",
        "x-forwarded-uri": f"{behind.place}/pods/web/proxy/",
    }


def test_impersonation_ends_at_the_server(behind: Behind) -> None:
    """The pod does not learn of it."""
    told = behind.mirrored("GET", "pods/web/proxy/", Impersonate_User="root", Impersonate_Group="system:masters")
    assert not [name for name in told["headers"] if name.startswith(("impersonate", "authorization"))]


def test_answer_comes_back_as_it_is(behind: Behind) -> None:
    """Its code, its head but for what lets other sites in, and what is said twice."""
    answer, _ = behind.ask("GET", "pods/web/proxy/")
    assert answer.headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert answer.headers.get_all("Cache-Control") == ["no-cache, private", "max-age=60"]
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert answer.headers["Audit-Id"]
    answer, body = behind.ask("GET", "pods/web/proxy/refuse")
    assert (answer.status, body) == (418, b"no\n")
    answer, body = behind.ask("HEAD", "pods/web/proxy/x")
    assert (answer.status, body, answer.headers["Content-Type"]) == (200, b"", "application/json")


def test_links_of_pages_lead_through_the_server(behind: Behind) -> None:
    """Those of tags, not what only looks like one; relative ones and other hosts stay."""
    through = f"{behind.place}/services/one/proxy"
    assert behind.text("services/one/proxy/page") == (
        f'<!DOCTYPE html>\n<html><head><link rel="stylesheet" href="{through}/style.css"><title><a href="/title"></title>'
        f'</head>\n<!-- <a href="/comment"> --><body background="{through}/back.png">\n'
        f'<a href="{through}/rewriteme?x=1&amp;y=2#z">one</a><a href="relative">two</a>'
        f'<a href="https://example.com/">three</a><img src="{through}/a.png"/>\n'
        f'<script src="{through}/code.js">"<a href=\'/script\'>"</script></body></HTML>\n'
    )


def test_redirects_lead_through_the_server(behind: Behind) -> None:
    """And the place itself is a folder, for links that are relative."""
    through = f"{behind.place}/pods/web/proxy"
    moves = {
        "pods/web/proxy?a=b": (301, f"{through}/?a=b"),
        "pods/web/proxy/redirect?to=/there/": (302, f"{through}/there/"),
        "pods/web/proxy/redirect?to=there": (302, "there"),
        "pods/web/proxy/redirect?to=https://example.com/x": (302, "https://example.com/x"),
        "/api/v1/nodes/$NODE/proxy": (301, f"/api/v1/nodes/{behind.node}/proxy/"),
    }
    for path, expected in moves.items():
        answer, _ = behind.ask("GET", path)
        assert (answer.status, answer.headers["Location"]) == expected


def test_bodies_stream_both_ways(behind: Behind) -> None:
    """An answer is read while it is written, and a body arrives while it is sent, however long it is."""
    credential = {"Authorization": f"Bearer {behind.token}"}
    with closing(behind.connect()) as connection:
        connection.request("GET", behind.whole("pods/web/proxy/drip"), headers=credential)
        answer = connection.getresponse()
        assert answer.readline() == b"one\n"
        behind.text("services/one/proxy/release")
        assert answer.read() == b"two\n"

    def pieces() -> Iterator[bytes]:
        yield bytes(MEBIBYTE)
        arrived = (behind.text("pods/web/proxy/seen") == str(MEBIBYTE) for _ in range(10_000))
        assert any(arrived), "expected the first mebibyte to arrive before the rest was sent"
        yield bytes(5 * MEBIBYTE)

    answer, body = behind.ask("PUT", "pods/web/proxy/upload", pieces())
    assert (answer.status, body) == (200, str(6 * MEBIBYTE).encode())


def test_answer_that_breaks_off_is_not_taken_for_a_whole_one(behind: Behind) -> None:
    """The connection ends as it did behind the server."""
    with pytest.raises(HTTPException):
        behind.ask("GET", "pods/web/proxy/break")


def test_connection_may_become_something_else(behind: Behind) -> None:
    """As for WebSockets: bytes in both directions, until either side has had enough."""
    head = [
        f"GET {behind.place}/services/one/proxy/switch?lost=1 HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {behind.token}",
    ]
    with closing(behind.connect()) as connection, ExitStack() as stack:
        connection.connect()
        wire, answered = connection.sock, stack.enter_context(connection.sock.makefile("rb"))
        wire.sendall("\r\n".join([*head, "Connection: Upgrade", "Upgrade: echo", "", ""]).encode())
        switched = [*iter(answered.readline, b"\r\n")]
        assert switched[0] == b"HTTP/1.1 101 Switching Protocols\r\n"
        assert {b"Connection: Upgrade\r\n", b"Upgrade: echo\r\n"} <= {*switched}
        target, _, secret = answered.readline().decode().strip().split("|")
        assert (target, secret) == ("/switch", "")
        for said in (b"hello", bytes(range(256)) * 1024):
            wire.sendall(said)
            assert answered.read(len(said)) == said


REFUSALS: Sequence[tuple[str, int, str]] = (
    ("services/two/proxy/", 503, 'no endpoints available for service "two"'),
    ("services/two:99/proxy/", 503, 'no service port 99 found for service "two"'),
    ("services/two:nope/proxy/", 503, 'no endpoints available for service "two:nope"'),
    ("services/none/proxy/", 503, 'no endpoints available for service "none"'),
    ("services/bare/proxy/", 404, 'services "bare" not found'),
    ("services/ghost:80/proxy/", 404, 'services "ghost" not found'),
    ("services/two:dead/proxy/", 503, "error trying to reach service: dial tcp $IP:9: connect: connection refused"),
    ("services/a:b:c:d/proxy/", 400, 'invalid service request "a:b:c:d"'),
    ("pods/web:9/proxy/", 503, "error trying to reach service: dial tcp $IP:9: connect: connection refused"),
    ("pods/web:99999/proxy/", 503, "error trying to reach service: dial tcp: address 99999: invalid port"),
    (
        "pods/https:web:8080/proxy/",
        503,
        "error trying to reach service: tls: first record does not look like a TLS handshake",
    ),
    ("pods/ghost/proxy/", 404, 'pods "ghost" not found'),
    ("pods/nowhere/proxy/", 400, "address not allowed"),
    ("pods/ftp:web:80/proxy/", 400, 'invalid pod request "ftp:web:80"'),
    ("pods/web/proxy/?dryRun=All", 400, "dryRun is not supported"),
    ("pods/web//proxy/", 404, "the server could not find the requested resource"),
    ("configmaps/web/proxy/", 404, "the server could not find the requested resource"),
    ("/api/v1/nodes/ghost/proxy/healthz", 404, 'nodes "ghost" not found'),
    ("/api/v1/nodes/a:b:c:d/proxy/healthz", 400, 'invalid node request "a:b:c:d"'),
)
"""What is asked for, the code, and what is said."""


def test_what_cannot_be_reached_is_refused(behind: Behind) -> None:
    """In Kubernetes' words."""
    for path, code, message in REFUSALS:
        answer, body = behind.ask("GET", path)
        said = json.loads(body)["message"]
        assert (path, answer.status, said) == (path, code, message.replace("$IP", behind.address))


def test_upgrade_that_is_refused_is_told(behind: Behind) -> None:
    """By the pod, or by the server if there is nobody, or if the pod goes on with HTTP."""
    upgrade = {"Connection": "Upgrade", "Upgrade": "echo"}
    answer, body = behind.ask("GET", "pods/web/proxy/refuse", headers=upgrade)
    assert (answer.status, body) == (418, b"no\n")
    answer, body = behind.ask("GET", "pods/web/proxy/x", headers=upgrade)
    assert (answer.status, json.loads(body)["message"]) == (500, "invalid upgrade response: status code 200")
    answer, body = behind.ask("GET", "pods/web:9/proxy/x", headers=upgrade)
    assert (
        json.loads(body)["message"]
        == f"error dialing backend: dial tcp {behind.address}:9: connect: connection refused"
    )


def test_rights_are_by_method_and_by_the_name_that_is_asked_for(behind: Behind) -> None:
    """Who may get pods/proxy of `web:8080` may neither post to it nor get it by another name."""
    core, namespace = behind.served.core, behind.served.namespace
    rule = {"apiGroups": [""], "resources": ["pods/proxy"], "resourceNames": ["web:8080"], "verbs": ["get"]}
    role = {"metadata": {"name": "reader"}, "rules": [rule]}
    k8s.RbacAuthorizationV1Api(core.api_client).create_namespaced_role(namespace, role)
    token = behind.account("reader", ("Role", "reader"))
    _await_right(core, namespace, "reader")
    verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "OPTIONS": ""}
    assert behind.ask("GET", "pods/web:8080/proxy/a/b", token=token)[0].status == 200
    assert behind.ask("HEAD", "pods/web:8080/proxy/a/b", token=token)[0].status == 200
    for method, verb in verbs.items():
        answer, body = behind.ask(method, "pods/web:8080/proxy/a/b", token=token)
        assert answer.status == 403
        assert f'cannot {verb} resource "pods/proxy" in API group ""' in json.loads(body)["message"]
    for path in ("pods/web/proxy/", "services/one/proxy/", "/api/v1/nodes/$NODE/proxy/healthz"):
        assert behind.ask("GET", path, token=token)[0].status == 403


def _await_right(core: k8s.CoreV1Api, namespace: str, name: str) -> None:
    """The server learns of a binding a little after it was written."""
    access, user = k8s.AuthorizationV1Api(core.api_client), f"system:serviceaccount:{namespace}:{name}"
    wanted = {"namespace": namespace, "verb": "get", "resource": "pods", "subresource": "proxy", "name": "web:8080"}
    body = {"spec": {"user": user, "resourceAttributes": wanted}}
    wait_for(
        f"the role of {name}",
        lambda: access.create_subject_access_review(body).status.allowed,
        seconds=SECONDS,
    )


def test_node_tells_its_health_its_pods_and_numbers(behind: Behind) -> None:
    """At its own port, whether it is named or not; what it does not have is not found."""
    assert behind.text("/api/v1/nodes/$NODE/proxy/healthz") == "ok"
    assert behind.text("/api/v1/nodes/https:$NODE:10250/proxy/healthz/ping") == "ok"
    listed = json.loads(behind.text("/api/v1/nodes/$NODE/proxy/pods"))
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    here = [pod for pod in listed["items"] if pod["metadata"]["namespace"] == behind.served.namespace]
    assert [(pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in here] == [("web", behind.node)]
    numbers = behind.text("/api/v1/nodes/$NODE/proxy/metrics")
    assert f'kubelet_node_name{{node="{behind.node}"}} 1' in numbers
    assert "kubelet_running_pods " in numbers
    answer, body = behind.ask("GET", "/api/v1/nodes/$NODE/proxy/nothing")
    assert (answer.status, body) == (404, b"404 page not found\n")
    answer, body = behind.ask("GET", "/api/v1/nodes/$NODE:9/proxy/")
    assert answer.status == 503
    assert json.loads(body)["message"].endswith(":9: connect: connection refused")
