"""Our schemas and a real API server say the same.

CRDs made from classes are taken, what our inspection refuses is refused there too, and generated objects get the same
verdict with the same causes.
"""

from __future__ import annotations

import copy
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import rig
from navarch.api import Object, decode, encode
from navarch.errors import Cause
from navarch.schema import Schema, Webhook, crd, definition_faults
from rig.waiting import wait_for
from schema import kinds
from schema.cel.cases import CASES, SCHEMA, TRANSITIONS
from schema.definitions import BAD, BAD_BUT_TAKEN, GOOD, manifest
from schema.shapes import SHAPES
from schema.strategies import values

pytestmark = pytest.mark.real

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRICT = "?dryRun=All&fieldValidation=Strict"
EXAMPLES = settings(
    max_examples=100,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
DOES_NOT_COMPILE = ("compilation failed", "must evaluate to a bool", "program instantiation failed")
Answer = tuple[int, dict[str, Any]]


@dataclass
class Server:
    """A real API server, asked over one connection."""

    cluster: rig.Cluster
    connection: http.client.HTTPSConnection = field(init=False)

    def __post_init__(self) -> None:
        address = urlsplit(self.cluster.url)
        trust = ssl.create_default_context(cafile=str(self.cluster.ca_file))
        self.connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=trust)

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """The status code and the answer; an answer that is no JSON is empty."""
        headers = {"Authorization": f"Bearer {self.cluster.token}", "Content-Type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text.startswith(b"{") else {}

    @contextmanager
    def serving(self, definition: dict[str, Any]) -> Iterator[str]:
        """Installs a CRD and gives the path of its objects; the CRD goes again at the end."""
        name = definition["metadata"]["name"]
        code, answer = self.ask("POST", CRDS, definition)
        assert code == 201, answer["message"]
        try:
            spec = definition["spec"]
            version = next(version["name"] for version in spec["versions"] if version["storage"])
            home = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
            path = f"/apis/{spec['group']}/{version}{home}/{spec['names']['plural']}"
            wait_for(f"{path} to be served", lambda: self.ask("GET", path)[0] == 200, seconds=60)
            yield path
        finally:
            self.ask("DELETE", f"{CRDS}/{name}")
            wait_for(f"{name} to be gone", lambda: self.ask("GET", f"{CRDS}/{name}")[0] == 404, seconds=60)


@pytest.fixture(scope="module")
def server(rig_cluster: rig.Cluster) -> Iterator[Server]:
    """The API server of the session's cluster."""
    asked = Server(rig_cluster)
    yield asked
    asked.connection.close()


def causes_of(answer: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The server's causes; for some it knows no field."""
    causes = answer.get("details", {}).get("causes") or []
    return sorted((cause["reason"], cause["message"], cause.get("field", "")) for cause in causes)


def as_go_reads(value: Any) -> Any:
    """Integers beyond 64 bits are floats to the server."""
    return json.loads(json.dumps(value), parse_int=lambda text: int(text) if abs(int(text)) < 1 << 63 else float(text))


def same_causes(theirs: list[tuple[str, str, str]], ours: list[Cause]) -> bool:
    """Whether reasons and messages are the same, and the fields where the server names one."""
    unplaced = {message for _, message, place in theirs if place == "<nil>"}
    return theirs == sorted(
        (cause.reason, cause.message, "<nil>" if cause.message in unplaced else cause.field) for cause in ours
    )


@pytest.mark.parametrize(
    "versions",
    [(kinds.Everything,), (kinds.Plain,), (kinds.OldGauge, kinds.Gauge)],
    ids=lambda versions: versions[-1].__name__,
)
def test_crds_of_classes_are_taken(server: Server, versions: tuple[type[Object], ...]) -> None:
    """A class that uses every marker, a plain one, and one with two versions become kinds that are served."""
    definition = crd(*versions)
    with server.serving(definition):
        _, found = server.ask("GET", f"{CRDS}/{definition['metadata']['name']}")
    conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_conversion_by_webhook_is_taken(server: Server) -> None:
    """The webhook is not called before there is something to convert."""
    webhook = Webhook(service="convert", namespace="gauges", path="/convert")
    code, answer = server.ask("POST", CRDS + STRICT, crd(kinds.OldGauge, kinds.Gauge, conversion=webhook))
    assert code == 201, answer


@pytest.mark.parametrize("case", BAD)
def test_what_we_refuse_is_refused(server: Server, case: str) -> None:
    """Nobody is kept from a CRD that the API server would take."""
    assert definition_faults(BAD[case])
    assert server.ask("POST", CRDS + STRICT, BAD[case])[0] in {400, 422}


@pytest.mark.parametrize("case", [*GOOD, *BAD_BUT_TAKEN])
def test_what_we_take_is_taken(server: Server, case: str) -> None:
    """Nobody learns only from the API server that a CRD is wrong."""
    definition = (GOOD | BAD_BUT_TAKEN)[case]
    assert definition_faults(definition) == []
    code, answer = server.ask("POST", CRDS + STRICT, definition)
    assert code == 201, answer


@pytest.mark.parametrize("shape", SHAPES)
def test_generated_objects_get_the_same_verdict(server: Server, shape: str) -> None:
    """Good and bad objects are taken or refused alike, for the same causes, and what is taken looks the same."""
    definition = manifest(SHAPES[shape], plural=f"{shape.removesuffix('s')}s")
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    compiled = Schema(schema)
    head = {"apiVersion": f"{definition['spec']['group']}/v1", "kind": definition["spec"]["names"]["kind"]}
    verdicts = set()

    with server.serving(definition) as path:

        @EXAMPLES
        @given(values(SHAPES[shape], 1))
        def compare(spec: Any) -> None:
            value = head | {"metadata": {"name": "x"}, "spec": copy.deepcopy(spec)}
            code, answer = server.ask("POST", path + STRICT, value)
            unknown = compiled.admit(value)
            causes = compiled.validate(value)
            verdicts.add(code)
            assert code == (400 if unknown else 422 if causes else 201), (spec, answer, unknown, causes)
            if code == 422:
                assert same_causes(causes_of(answer), causes), (spec, answer, causes)
            if code == 201:
                assert as_go_reads(answer["spec"]) == as_go_reads(value["spec"])

        compare()
    assert {201, 422} <= verdicts


def test_updates_get_the_same_verdict(server: Server) -> None:
    """Transition rules see the old object, and faults that were there before are forgiven where they still are."""
    lax = copy.deepcopy(SHAPES["rules"])
    lax.pop("x-kubernetes-validations")
    for child in lax["properties"].values():
        child.pop("x-kubernetes-validations", None)
    lax["properties"]["items"]["items"].pop("x-kubernetes-validations")
    strict = copy.deepcopy(SHAPES["rules"])
    strict["properties"]["low"]["maximum"] = 3
    strict["properties"]["high"]["x-kubernetes-validations"] = [{"rule": "self >= oldSelf", "message": "only up"}]
    compiled = Schema(manifest(strict)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    definition = manifest(lax, plural="updates")
    bad = {"low": 9, "high": 5, "name": "bcd", "items": [1, 3], "port": 1, "quotas": {"a": 1}}

    with server.serving(definition) as path:
        head = {"apiVersion": f"{definition['spec']['group']}/v1", "kind": "Update"}
        code, stored = server.ask("POST", path, head | {"metadata": {"name": "x"}, "spec": bad})
        assert code == 201, stored
        tighten(server, definition, strict, f"{path}/x", stored)

        @EXAMPLES
        @given(values(strict, 1))
        def compare(spec: Any) -> None:
            changed = bad | spec if isinstance(spec, dict) else spec
            value = stored | {"spec": copy.deepcopy(changed)}
            code, answer = server.ask("PUT", f"{path}/x{STRICT}", value)
            unknown = compiled.admit(value)
            causes = compiled.validate(value, stored)
            assert code == (400 if unknown else 422 if causes else 200), (spec, answer, unknown, causes)
            if code == 422:
                assert same_causes(causes_of(answer), causes), (spec, answer, causes)

        compare()


def tighten(
    server: Server, definition: dict[str, Any], spec: dict[str, Any], path: str, stored: dict[str, Any]
) -> None:
    """Replaces the schema of a CRD, and waits until the server uses it."""
    name = f"{CRDS}/{definition['metadata']['name']}"

    def replaced() -> bool:
        """The server writes the status of a new CRD itself, and may come in between."""
        _, current = server.ask("GET", name)
        current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
        code, answer = server.ask("PUT", name, current)
        assert code in {200, 409}, answer
        return code == 200

    wait_for("the schema to be replaced", replaced, seconds=60)
    probe = stored | {"spec": stored["spec"] | {"low": 10}}
    wait_for("the new schema", lambda: server.ask("PUT", path + STRICT, probe)[0] == 422, seconds=60)


def as_definition(rule: str, default: Any) -> dict[str, Any]:
    """A CRD whose default the server can only take if the rule compiles and accepts it."""
    ruled = SCHEMA | {"x-kubernetes-validations": [{"rule": rule, "message": "broken rule"}], "default": default}
    return manifest(ruled)


@pytest.mark.parametrize(("rule", "compiles", "spec", "accepted"), CASES)
def test_rules_of_the_table_get_the_same_verdict(
    server: Server, rule: str, compiles: bool, spec: dict[str, Any], accepted: bool
) -> None:
    """Every rule compiles on the server if the table says so, and accepts what the table says."""
    definition = as_definition(rule, spec)
    code, answer = server.ask("POST", CRDS + STRICT, definition)
    message = answer.get("message", "")
    assert any(sign in message for sign in DOES_NOT_COMPILE) is not compiles, message
    assert (code == 201) is (compiles and accepted), message
    assert bool(definition_faults(definition)) is (code != 201)


@pytest.mark.parametrize(("rule", "old", "new", "accepted"), TRANSITIONS)
def test_transition_rules_of_the_table_get_the_same_verdict(
    server: Server, rule: str, old: dict[str, Any], new: dict[str, Any], accepted: bool
) -> None:
    """A rule that compares with the old object is asked on updates."""
    definition = manifest(SCHEMA | {"x-kubernetes-validations": [{"rule": rule}]}, plural="transitions")
    schema = Schema(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    with server.serving(definition) as path:
        head = {"apiVersion": f"{definition['spec']['group']}/v1", "kind": "Transition", "metadata": {"name": "x"}}
        code, stored = server.ask("POST", path, head | {"spec": old})
        assert code == 201, stored
        changed = stored | {"spec": new}
        code, answer = server.ask("PUT", f"{path}/x{STRICT}", changed)
        assert (code == 200) is accepted, answer
        assert (schema.validate(changed, stored) == []) is accepted


def test_typed_objects_survive_the_server(server: Server) -> None:
    """What a class sends comes back as the same object, and its own check agrees with the server."""
    sent = kinds.Everything(
        name="one", spec=kinds.EverythingSpec(title="Typed", zones={"a"}, origin=kinds.File(path="/x"))
    )
    with server.serving(crd(kinds.Everything)) as path:
        code, answer = server.ask("POST", path + STRICT, json.loads(encode(sent)))
    assert code == 201, answer
    assert decode(kinds.Everything, json.dumps(answer).encode()).spec == sent.spec
