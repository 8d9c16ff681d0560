"""Rights that were not granted: what a user with one right tries to make of it."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rig.waiting import wait_for
from security.asking import APPLY, MERGE, RBAC, Asker, Json, asked_cluster

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
CREATED_BY_UPDATES: dict[str, Json] = {
    "/api/v1/namespaces/default/endpoints": {},
    "/api/v1/namespaces/default/limitranges": {"spec": {"limits": []}},
    "/api/v1/namespaces/default/services": {"spec": {"ports": [{"port": 80}]}},
    "/api/v1/namespaces/default/events": {"involvedObject": {"namespace": "default"}},
    LEASES: {"spec": {"holderIdentity": "eve"}},
    "/apis/node.k8s.io/v1/runtimeclasses": {"handler": "h"},
    f"{RBAC}/namespaces/default/roles": {"rules": []},
    f"{RBAC}/clusterroles": {"rules": []},
}
"""Where an update of what is not there creates it, and an object for each."""


@pytest.fixture
async def asker() -> AsyncIterator[Asker]:
    async with asked_cluster() as asker:
        yield asker


def _group(path: str) -> str:
    return path.split("/")[2] if path.startswith("/apis/") else ""


def _pem(organization: str) -> str:
    """A request for a certificate of a member of a group, as an object has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [(NameOID.COMMON_NAME, "eve"), (NameOID.ORGANIZATION_NAME, organization)]
    names = x509.Name([x509.NameAttribute(kind, text) for kind, text in subject])
    made = x509.CertificateSigningRequestBuilder().subject_name(names).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def _signing_request(organization: str = "developers", signer: str = CLIENT_SIGNER) -> Json:
    spec = {"request": _pem(organization), "signerName": signer, "usages": ["client auth"]}
    return {"metadata": {"name": "eve"}, "spec": spec}


@pytest.mark.parametrize("path", CREATED_BY_UPDATES)
async def test_an_update_alone_creates_nothing(asker: Asker, path: str) -> None:
    """Of the kinds that an update may create, too."""
    plural = path.rpartition("/")[2]
    asker.grant("eve", (_group(path), plural, "get,update,patch"))
    asker.grant("adam", (_group(path), plural, "get,update,create"))
    body = {"metadata": {"name": "made"}, **CREATED_BY_UPDATES[path]}
    refused = asker.ask("PUT", f"{path}/made", body, user="eve")
    assert refused.code == 403
    assert f'cannot create resource "{plural}"' in refused.message
    assert asker.ask("GET", f"{path}/made").code == 404
    assert asker.ask("PUT", f"{path}/made", body, user="adam").code == 201


async def test_an_apply_alone_creates_nothing(asker: Asker) -> None:
    """Neither built-in objects nor custom ones, and not in a dry run either."""
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    assert asker.ask("POST", CRDS, definition).code == 201
    things = "/apis/example.com/v1/namespaces/default/things"
    wait_for("the new kind", lambda: asker.ask("GET", things).code == 200, seconds=30)
    asker.grant("eve", (",example.com,rbac.authorization.k8s.io", "*", "get,patch,update"))
    bodies: dict[str, Json] = {
        f"{MAPS}/made": {"apiVersion": "v1", "kind": "ConfigMap"},
        f"{things}/made": {"apiVersion": "example.com/v1", "kind": "Thing"},
        f"{RBAC}/clusterroles/made": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []},
    }
    for path, body in bodies.items():
        for more in ("", "&dryRun=All", "&force=true"):
            asked = {**body, "metadata": {"name": "made"}}
            assert asker.ask("PATCH", f"{path}?fieldManager=m{more}", asked, APPLY, user="eve").code == 403, path
        assert asker.ask("GET", path).code == 404


async def test_a_right_to_create_one_name_is_enough_for_an_apply_of_it(asker: Asker) -> None:
    """Since the name is known, unlike that of a POST."""
    asker.grant("adam", ("", "configmaps", "patch"))
    role = {"metadata": {"name": "one"}, "rules": [_rule("configmaps", "create", "made")]}
    assert asker.ask("POST", f"{RBAC}/clusterroles", role).code == 201
    binding = {
        "metadata": {"name": "one"},
        "subjects": [{"kind": "User", "name": "adam", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "ClusterRole", "name": "one", "apiGroup": "rbac.authorization.k8s.io"},
    }
    assert asker.ask("POST", f"{RBAC}/clusterrolebindings", binding).code == 201
    for name, code in (("made", 201), ("other", 403)):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        assert asker.ask("PATCH", f"{MAPS}/{name}?fieldManager=m", body, APPLY, user="adam").code == code


def _rule(resource: str, verb: str, name: str) -> Json:
    return {"apiGroups": [""], "resources": [resource], "verbs": [verb], "resourceNames": [name]}


async def test_a_quota_counts_what_an_apply_creates(asker: Asker) -> None:
    """As it counts what a create does."""
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "0"}}}
    quotas = "/api/v1/namespaces/default/resourcequotas"
    assert asker.ask("POST", quotas, quota).code == 201
    used = {"status": {"hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "0"}}}
    assert asker.ask("PATCH", f"{quotas}/q/status", used, MERGE).code == 200
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
    refused = asker.ask("PATCH", f"{MAPS}/made?fieldManager=m", body, APPLY)
    assert refused.code == 403
    assert "exceeded quota" in refused.message


@pytest.mark.parametrize("media_type", [MERGE, APPLY, "application/json"])
@pytest.mark.parametrize("part", ["", "/status", "/approval"])
async def test_no_write_changes_what_a_certificate_is_asked_for(asker: Asker, media_type: str, part: str) -> None:
    """Neither the request itself nor who asked: both are fixed when it is created."""
    made = asker.ask("POST", REQUESTS, _signing_request())
    assert made.code == 201
    spec = {**made.body["spec"], "request": _pem("system:masters"), "username": "admin", "groups": ["system:masters"]}
    changed = {**made.body, "spec": spec}
    method = "PUT" if media_type == "application/json" else "PATCH"
    if media_type == APPLY:
        changed["metadata"] = {"name": "eve"}
    asker.ask(
        method,
        f"{REQUESTS}/eve{part}?fieldManager=m&force=true" if media_type == APPLY else f"{REQUESTS}/eve{part}",
        changed,
        media_type,
    )
    assert asker.ask("GET", f"{REQUESTS}/eve").body["spec"] == made.body["spec"]


@pytest.mark.parametrize("kind", ["Approved", "Denied"])
async def test_only_approval_decides_about_a_certificate(asker: Asker, kind: str) -> None:
    """Whoever may write the object or its status decides nothing, and undoes no decision."""
    asker.grant("eve", ("certificates.k8s.io", "*", "get,create,update,patch"))
    assert asker.ask("POST", REQUESTS, _signing_request(), user="eve").code == 201
    decision = {"type": kind, "status": "True", "reason": "mine"}
    for part, code in (("", 200), ("/status", 422), ("/approval", 403)):
        for method, media_type in (("PUT", "application/json"), ("PATCH", MERGE)):
            live = asker.ask("GET", f"{REQUESTS}/eve").body
            body = {**live, "status": {"conditions": [decision]}}
            answer = asker.ask(method, f"{REQUESTS}/eve{part}", body, media_type, user="eve")
            assert answer.code == code, (part, method, answer.message)
            assert not asker.ask("GET", f"{REQUESTS}/eve").body["status"].get("conditions")


async def test_a_certificate_is_set_once_by_whoever_may_sign(asker: Asker) -> None:
    """Not through the object, not by approval, and not twice."""
    assert asker.ask("POST", REQUESTS, _signing_request(signer="example.com/mine")).code == 201
    asker.grant("eve", ("certificates.k8s.io", "*", "get,update,patch"))
    certificates = [_certificate(), _certificate()]
    for part, user, code in (("", "", 200), ("/approval", "", 200), ("/status", "eve", 403), ("/status", "", 200)):
        body = {"status": {"certificate": certificates[0]}}
        assert asker.ask("PATCH", f"{REQUESTS}/eve{part}", body, MERGE, user=user).code == code
        stored = asker.ask("GET", f"{REQUESTS}/eve").body["status"].get("certificate")
        assert (stored is None) == (code != 200 or part != "/status")
    again = {"status": {"certificate": certificates[1]}}
    assert asker.ask("PATCH", f"{REQUESTS}/eve/status", again, MERGE).code == 422


def _certificate() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "eve")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2036, 1, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


async def test_nobody_asks_for_a_certificate_of_the_masters(asker: Asker) -> None:
    """Whoever asks, and in whatever way the request is created."""
    assert asker.ask("POST", REQUESTS, _signing_request("system:masters")).code == 403
    body = {**_signing_request("system:masters"), "apiVersion": "certificates.k8s.io/v1"}
    body["kind"] = "CertificateSigningRequest"
    assert asker.ask("PATCH", f"{REQUESTS}/eve?fieldManager=m", body, APPLY).code == 403


@pytest.mark.parametrize(("method", "media_type"), [("PUT", "application/json"), ("PATCH", MERGE), ("PATCH", APPLY)])
async def test_a_write_of_a_node_leaves_its_status_alone(asker: Asker, method: str, media_type: str) -> None:
    """And one of its status leaves the rest alone, whoever writes."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    assert asker.ask("POST", "/api/v1/nodes", {**node, "status": {"capacity": {"cpu": "1"}}}).code == 201
    asker.grant("eve", ("", "nodes", "patch,update"))
    asker.grant("adam", ("", "nodes/status", "patch,update"))
    manager = "?fieldManager=m&force=true" if media_type == APPLY else ""
    lie = {**node, "spec": {"unschedulable": False}, "status": {"capacity": {"cpu": "1000"}}}
    assert asker.ask(method, f"/api/v1/nodes/n{manager}", lie, media_type, user="eve").code == 200
    stored = asker.ask("GET", "/api/v1/nodes/n").body
    assert (stored["status"]["capacity"], stored["spec"].get("unschedulable")) == ({"cpu": "1"}, None)
    truth = {**node, "spec": {"unschedulable": True, "taints": [{"key": "a", "effect": "NoExecute"}]}}
    truth["status"] = {"capacity": {"cpu": "2"}}
    assert asker.ask(method, f"/api/v1/nodes/n/status{manager}", truth, media_type, user="adam").code == 200
    before, stored = stored, asker.ask("GET", "/api/v1/nodes/n").body
    assert stored["status"]["capacity"] == {"cpu": "2"}
    assert stored["spec"] == before["spec"]
    assert asker.ask(method, f"/api/v1/nodes/n/status{manager}", truth, media_type, user="eve").code == 403
