"""The generated kinds and the data beside a real API server."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

import rig
from k8s.examples import NAMESPACE, objects
from k8s.samples import KINDS, class_of
from kubernetes_api import files
from kubernetes_api.fetch import fetch
from kubernetes_api.server import Server
from navarch.api import Object, decode, encode, full_wire, to_builtins
from navarch.k8s.apps.v1 import StatefulSet
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.authorization.v1 import (
    ResourceAttributes,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
)
from navarch.k8s.autoscaling.v1 import Scale
from navarch.k8s.core.v1 import ConfigMap, Namespace, Secret
from navarch.k8s.networking.v1 import Ingress
from navarch.k8s.policy.v1 import Eviction
from navarch.k8s.published import DATA, published
from navarch.k8s.rbac.v1 import Role
from navarch.k8s.storage.v1 import StorageClass

pytestmark = pytest.mark.real


class Raw:
    """Bytes to and from the API server, with nothing in between that might mend them."""

    def __init__(self, cluster: rig.Cluster) -> None:
        context = ssl.create_default_context(cafile=str(cluster.ca_file))
        self._connection = HTTPSConnection(urlsplit(cluster.url).netloc, context=context, timeout=60)
        self.created: dict[str, bytes] = {}
        """What the server answered when an object was made, by its path."""
        self._headers = {"Authorization": f"Bearer {cluster.token}"}

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer's body; anything but success fails the test. PATCH is a forced server-side apply."""
        query = "?fieldValidation=Strict" if body else ""
        form = "application/json"
        if method == "PATCH":
            query, form = f"{query}&fieldManager=tests&force=true", "application/apply-patch+yaml"
        headers = {**self._headers, "Content-Type": form}
        self._connection.request(method, path + query, body=body, headers=headers)
        answer = self._connection.getresponse()
        found = answer.read()
        assert answer.status in {200, 201}, found.decode()
        return found

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()


@pytest.fixture(scope="module")
def raw(rig_cluster: rig.Cluster) -> Iterator[Raw]:
    """The API server with one object of each kind, each made under strict validation."""
    server = Raw(rig_cluster)
    server.ask("POST", Namespace.__kind__.path(), encode(Namespace(name=NAMESPACE)))
    for example in objects():
        server.created[_path(example, named=True)] = server.ask("POST", _path(example), encode(example))
    yield server
    for example in objects():
        if not type(example).__kind__.namespaced:
            server.ask("DELETE", _path(example, named=True))
    server.ask("DELETE", Namespace.__kind__.path(name=NAMESPACE))
    server.close()


def _path(example: Object, *, named: bool = False) -> str:
    kind = type(example).__kind__
    namespace = NAMESPACE if kind.namespaced else None
    return kind.path(namespace=namespace, name=example.name if named else None)


def _unknown(wire: Any, view: Any, path: str = "$") -> list[str]:
    """What the server sent and the class does not hold; null is nothing."""
    if isinstance(wire, dict) and isinstance(view, dict):
        lost = [f"{path}.{key}" for key, value in wire.items() if value is not None and key not in view]
        return lost + [
            place for key in wire.keys() & view.keys() for place in _unknown(wire[key], view[key], f"{path}.{key}")
        ]
    if isinstance(wire, list) and isinstance(view, list) and len(wire) == len(view):
        return [
            place for i, pair in enumerate(zip(wire, view, strict=True)) for place in _unknown(*pair, f"{path}[{i}]")
        ]
    return [] if wire == view or wire is None else [f"{path}: {wire!r} became {view!r}"]


@pytest.mark.parametrize("example", objects(), ids=lambda example: f"{example.kind}-{example.name}")
def test_object_is_taken_and_read_back_whole(raw: Raw, example: Object) -> None:
    """What comes back, new and a moment later, has no field that the class lacks."""
    path = _path(example, named=True)
    for wire in (raw.created[path], raw.ask("GET", path)):
        found = type(example).from_json(wire)
        assert _unknown(json.loads(wire), to_builtins(found)) == []
        assert full_wire(found) == json.loads(wire)
        assert found.name == example.name


COLUMNS = published().columns()
LISTED = [
    schema
    for schema in KINDS
    if f"{class_of(schema).__kind__.api_version}/{class_of(schema).__kind__.plural}" in COLUMNS
]


@pytest.mark.parametrize("schema", LISTED, ids=lambda schema: schema.removeprefix("io.k8s.api."))
def test_every_object_of_the_cluster_can_be_read(raw: Raw, schema: str) -> None:
    """Whatever the control plane keeps, its own objects and ours, fits its class."""
    for item in json.loads(raw.ask("GET", class_of(schema).__kind__.path()))["items"]:
        found = decode(class_of(schema), encode(item))
        assert _unknown(item, to_builtins(found)) == []


@pytest.mark.parametrize("example", objects(), ids=lambda example: f"{example.kind}-{example.name}")
def test_apply_never_claims_the_status(raw: Raw, example: Object) -> None:
    """A typed object carries an empty status; applying it makes nobody the manager of one."""
    applied = type(example).from_json(raw.ask("PATCH", _path(example, named=True), encode(example)))
    claims = [to_builtins(fields) for fields in applied.metadata.managed_fields if fields.operation == "Apply"]
    assert not any("f:status" in claim["fieldsV1"] for claim in claims)


@pytest.mark.parametrize("kind", [StatefulSet, ConfigMap, Secret, Role, Ingress, StorageClass])
def test_typed_write_of_a_read_object_changes_nothing(raw: Raw, kind: type[Object]) -> None:
    """What the class alone sends is the same object to the server, a StatefulSet's claims included."""
    for path in (_path(example, named=True) for example in objects() if isinstance(example, kind)):
        before = kind.from_json(raw.ask("GET", path))
        after = kind.from_json(raw.ask("PUT", path, encode(before)))
        assert after.metadata.generation == before.metadata.generation
        assert _without_managers(after) == _without_managers(before)


def _without_managers(found: Object) -> Any:
    wire = to_builtins(found)
    wire["metadata"] = {"name": wire["metadata"]["name"], "labels": wire["metadata"].get("labels")}
    wire.pop("status", None)
    return wire


def test_reviews_are_answered(raw: Raw) -> None:
    """A review is sent with an empty status and comes back with the answer."""
    question = SelfSubjectAccessReviewSpec(resource_attributes=ResourceAttributes(verb="get", resource="pods"))
    access = SelfSubjectAccessReview(spec=question)
    answer = raw.ask("POST", SelfSubjectAccessReview.__kind__.path(), encode(access))
    assert SelfSubjectAccessReview.from_json(answer).status.allowed
    rules = SelfSubjectRulesReview(spec=SelfSubjectRulesReviewSpec(namespace=NAMESPACE))
    answer = raw.ask("POST", SelfSubjectRulesReview.__kind__.path(), encode(rules))
    assert SelfSubjectRulesReview.from_json(answer).status.resource_rules


def test_subresources_have_their_own_kinds(raw: Raw) -> None:
    """A scale is read and written, a token is given, a pod is evicted."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/deployment/scale"
    scale = Scale.from_json(raw.ask("GET", path))
    scale.spec.replicas = 2
    assert Scale.from_json(raw.ask("PUT", path, encode(scale))).spec.replicas == 2
    wanted = TokenRequest(spec=TokenRequestSpec(audiences=["tests"]))
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/account/token"
    assert TokenRequest.from_json(raw.ask("POST", account, encode(wanted))).status.token
    eviction = Eviction(name="pod", namespace=NAMESPACE)
    raw.ask("POST", f"/api/v1/namespaces/{NAMESPACE}/pods/pod/eviction", encode(eviction))


def test_data_are_what_the_server_publishes(rig_cluster: rig.Cluster) -> None:
    """The data files are not stale."""
    with Server(rig_cluster.kubeconfig) as server:
        now = fetch(server)
    stored = files.read(DATA)
    assert sorted(now) == sorted(stored)
    assert [name for name in now if now[name] != stored[name]] == []
