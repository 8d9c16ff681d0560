"""Nobody comes by more than they were given: through roles, bindings, other people's names and certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from conformance.rights_table import Asker, Form
from conformance.write_samples import SAMPLES, Json
from conformance.write_table import SECONDS, Server, prepared
from navarch.client import Client, Config
from rig.waiting import wait_for

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
GATHERS = {"clusterRoleSelectors": [{"matchLabels": {"none": "such"}}]}


def rule(groups: str, resources: str, verbs: str, *names: str) -> Json:
    found = {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}
    return {**found, "resourceNames": [*names]} if names else found


WRITES_ROLES = rule(GROUP, "roles,clusterroles", "create,update,patch")
WRITES_BINDINGS = rule(GROUP, "rolebindings,clusterrolebindings", "create,update,patch")


class Case(NamedTuple):
    """What somebody with these rules tries, and whether Kubernetes lets them."""

    title: str
    rules: Sequence[Json]
    method: str
    path: str
    body: Any
    may: bool
    media_type: str = "application/json"


def _named(name: str, kind: str = "", **more: Any) -> Json:
    identity = {"apiVersion": f"{GROUP}/v1", "kind": kind} if kind else {}
    return {**identity, "metadata": {"name": name}, **more}


def _binding(name: str, role: str, user: str = "eve", kind: str = "ClusterRole") -> Json:
    reference = {"kind": kind, "name": role, "apiGroup": GROUP}
    return _named(name, subjects=[{"kind": "User", "name": user, "apiGroup": GROUP}], roleRef=reference)


def _rules(*rules: Json) -> Json:
    return {"rules": [*rules]}


ROLES = f"{RBAC}/namespaces/{{ns}}/roles"
BINDINGS = f"{RBAC}/namespaces/{{ns}}/rolebindings"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
APPROVAL = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]}}
FAILURE = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "r"}]}}
APPROVES = rule("certificates.k8s.io", "certificatesigningrequests/approval", "patch")
SIGNS = rule("certificates.k8s.io", "certificatesigningrequests/status", "patch")
ADDED = [{"op": "add", "path": "/rules", "value": [SECRETS]}]
WEAK, STRONG = "{ns}-weak", "{ns}-strong"
CASES = (
    Case("a role with what one has", [WRITES_ROLES, PODS], "POST", ROLES, _named("r", **_rules(PODS)), True),
    Case("a role with more", [WRITES_ROLES, PODS], "POST", ROLES, _named("r", **_rules(PODS, SECRETS)), False),
    Case("more by PUT", [WRITES_ROLES], "PUT", f"{ROLES}/weak", _named("weak", **_rules(SECRETS)), False),
    Case("more by a new PUT", [WRITES_ROLES], "PUT", f"{ROLES}/new", _named("new", **_rules(SECRETS)), False),
    Case("more by merge patch", [WRITES_ROLES], "PATCH", f"{ROLES}/weak", _rules(SECRETS), False, MERGE),
    Case("more by JSON patch", [WRITES_ROLES], "PATCH", f"{ROLES}/weak", ADDED, False, JSON_PATCH),
    Case("more by apply", [WRITES_ROLES], "PATCH", f"{ROLES}/weak", _named("weak", "Role", **_rules(SECRETS)), False, APPLY),
    Case("more by a new apply", [WRITES_ROLES], "PATCH", f"{ROLES}/n", _named("n", "Role", **_rules(SECRETS)), False, APPLY),
    Case("a label of a strong role", [WRITES_ROLES], "PATCH", f"{CLUSTER_ROLES}/{STRONG}", {"metadata": {"labels": {"a": "b"}}}, False, MERGE),
    Case("an owner of a strong role", [WRITES_ROLES], "PATCH", f"{CLUSTER_ROLES}/{STRONG}", {"metadata": {"ownerReferences": []}}, True, MERGE),
    Case("less of a role", [WRITES_ROLES], "PATCH", f"{CLUSTER_ROLES}/{STRONG}", {"rules": []}, True, MERGE),
    Case("everything", [WRITES_ROLES, PODS, SECRETS], "POST", CLUSTER_ROLES, _named("{ns}-c", **_rules(EVERYTHING)), False),
    Case("paths", [WRITES_ROLES], "POST", CLUSTER_ROLES, _named("{ns}-c", rules=[{"nonResourceURLs": ["/*"], "verbs": ["get"]}]), False),
    Case("a role that gathers others", [WRITES_ROLES], "POST", CLUSTER_ROLES, _named("{ns}-c", aggregationRule=GATHERS), False),
    Case("one that gathers by patch", [WRITES_ROLES], "PATCH", f"{CLUSTER_ROLES}/{WEAK}", {"aggregationRule": GATHERS}, False, MERGE),
    Case("escalate", [WRITES_ROLES, rule(GROUP, "roles", "escalate")], "POST", ROLES, _named("r", **_rules(SECRETS)), True),
    Case("escalate another", [WRITES_ROLES, rule(GROUP, "roles", "escalate", "x")], "PATCH", f"{ROLES}/weak", _rules(SECRETS), False, MERGE),
    Case("escalate this one", [WRITES_ROLES, rule(GROUP, "roles", "escalate", "weak")], "PATCH", f"{ROLES}/weak", _rules(SECRETS), True, MERGE),
    Case("escalate elsewhere", [WRITES_ROLES, rule(GROUP, "clusterroles", "escalate")], "POST", ROLES, _named("r", **_rules(SECRETS)), False),
    Case("bind oneself", [WRITES_BINDINGS], "POST", BINDINGS, _binding("b", STRONG), False),
    Case("bind oneself everywhere", [WRITES_BINDINGS], "POST", CLUSTER_BINDINGS, _binding("{ns}-b", "cluster-admin"), False),
    Case("bind by a new PUT", [WRITES_BINDINGS], "PUT", f"{BINDINGS}/b", _binding("b", STRONG), False),
    Case("bind by apply", [WRITES_BINDINGS], "PATCH", f"{BINDINGS}/b", {**_named("b", "RoleBinding"), **_binding("b", STRONG)}, False, APPLY),
    Case("join a strong binding", [WRITES_BINDINGS], "PATCH", f"{BINDINGS}/strong", {"subjects": [{"kind": "User", "name": "eve", "apiGroup": GROUP}]}, False, MERGE),
    Case("bind what one has", [WRITES_BINDINGS, PODS], "POST", BINDINGS, _binding("b", WEAK), True),
    Case("bind", [WRITES_BINDINGS, rule(GROUP, "clusterroles", "bind", STRONG)], "POST", BINDINGS, _binding("b", STRONG), True),
    Case("bind another", [WRITES_BINDINGS, rule(GROUP, "clusterroles", "bind", WEAK)], "POST", BINDINGS, _binding("b", STRONG), False),
    Case("bind a role that is not there", [WRITES_BINDINGS], "POST", BINDINGS, _binding("b", "none"), True),
    Case("approve", [APPROVES], "PATCH", f"{REQUESTS}/{{ns}}/approval", APPROVAL, False, MERGE),
    Case("approve for a signer", [APPROVES, rule("certificates.k8s.io", "signers", "approve", "example.com/signer")], "PATCH", f"{REQUESTS}/{{ns}}/approval", APPROVAL, True, MERGE),
    Case("approve for a domain", [APPROVES, rule("certificates.k8s.io", "signers", "approve", "example.com/*")], "PATCH", f"{REQUESTS}/{{ns}}/approval", APPROVAL, True, MERGE),
    Case("approve for another signer", [APPROVES, rule("certificates.k8s.io", "signers", "approve", "example.com/other")], "PATCH", f"{REQUESTS}/{{ns}}/approval", APPROVAL, False, MERGE),
    Case("approve with the right to sign", [APPROVES, rule("certificates.k8s.io", "signers", "sign")], "PATCH", f"{REQUESTS}/{{ns}}/approval", APPROVAL, False, MERGE),
    Case("sign", [SIGNS], "PATCH", f"{REQUESTS}/{{ns}}/status", FAILURE, False, MERGE),
    Case("sign with the right to approve", [SIGNS, rule("certificates.k8s.io", "signers", "approve")], "PATCH", f"{REQUESTS}/{{ns}}/status", FAILURE, False, MERGE),
    Case("sign with the right to sign", [SIGNS, rule("certificates.k8s.io", "signers", "sign")], "PATCH", f"{REQUESTS}/{{ns}}/status", FAILURE, True, MERGE),
    Case("approve by status", [SIGNS, rule("certificates.k8s.io", "signers", "sign,approve")], "PATCH", f"{REQUESTS}/{{ns}}/status", APPROVAL, True, MERGE),
    Case("another account's token", [rule("", "serviceaccounts/token", "create")], "POST", "/api/v1/namespaces/{ns}/serviceaccounts/default/token", {"spec": {}}, True),
    Case("a token without the right", [rule("", "serviceaccounts", "*")], "POST", "/api/v1/namespaces/{ns}/serviceaccounts/default/token", {"spec": {}}, False),
    Case("a Secret for a token", [rule("", "secrets", "create")], "POST", "/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}}, "type": "kubernetes.io/service-account-token"}, True),
)  # fmt: skip
"""`{ns}` is the namespace of the test. Let in means any other answer than 403: approving by status, for one, is a 422."""


@pytest.fixture
def server(config: Config) -> Iterator[Server]:
    server = Server(config)
    yield server
    server.close()


@pytest.fixture
def asker(config: Config) -> Iterator[Asker]:
    asker = Asker(config)
    yield asker
    asker.close()


def _filled(value: Any, namespace: str) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value).replace(b"{ns}", namespace.encode()))


def _prepare(server: Server, namespace: str) -> None:
    """Roles and a binding with which things are tried, and a request for a certificate."""
    prepared(server, namespace)
    sample = next(each for each in SAMPLES if each.kind == "CertificateSigningRequest")
    made: Mapping[str, Json] = {
        CLUSTER_ROLES: _named(WEAK, **_rules(PODS)),
        f"{CLUSTER_ROLES}?": _named(STRONG, **_rules(SECRETS)),
        ROLES: _named("weak", rules=[]),
        BINDINGS: _binding("strong", STRONG, "adam"),
        REQUESTS: sample.object(namespace),
    }
    for path, body in made.items():
        answer = server.ask("POST", _filled(path, namespace), _filled(body, namespace))
        assert answer.code == 201, answer.body


def _give(server: Server, user: str, rules: Sequence[Json], namespace: str) -> None:
    role = _filled(_named(user, rules=[*rules, rule("", "configmaps", "list")]), namespace)
    for path, body in ((CLUSTER_ROLES, role), (CLUSTER_BINDINGS, _binding(user, user, user))):
        assert server.ask("POST", path, body).code == 201


async def test_nobody_gets_more_than_they_were_given(client: Client, server: Server, asker: Asker) -> None:
    """In none of these ways."""
    namespace = str(client.options.namespace)
    _prepare(server, namespace)
    users = {case.title: f"{namespace}-{number}" for number, case in enumerate(CASES)}
    for case in CASES:
        _give(server, users[case.title], case.rules, namespace)
    probe = Form("", "GET", f"/api/v1/namespaces/{namespace}/configmaps")
    found = {}
    for case in CASES:
        user, query = (
            users[case.title],
            "dryRun=All" + ("&fieldManager=m&force=true" if case.media_type == APPLY else ""),
        )
        wait_for(f"{user} is known", lambda: asker.is_let_in(user, probe), seconds=SECONDS)  # noqa: B023 - at once
        path = f"{_filled(case.path, namespace)}?{query}"
        form = Form(case.title, case.method, path, _filled(case.body, namespace), case.media_type)
        found[case.title] = asker.is_let_in(user, form)
    for user in users.values():
        server.ask("DELETE", f"{CLUSTER_BINDINGS}/{user}")
        server.ask("DELETE", f"{CLUSTER_ROLES}/{user}")
    assert found == {case.title: case.may for case in CASES}
