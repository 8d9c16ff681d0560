"""Which requests a right allows, found out by asking: one verb on one resource at a time, tried with every request there is.

`make judge NAME=rights-table` asks a real API server; its answers are in `data/rights_table.json`. All that is asked for is a dry run, or makes no sense once it is let in: nothing changes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPSConnection
from pathlib import Path
from typing import NamedTuple

import msgspec

import rig
from conformance.write_samples import SAMPLES, Json, Sample
from conformance.write_table import SECONDS, Server, prepared
from gadgets import installed
from judge import KUBE_APISERVER, Recording, Verdicts
from navarch.client import Config, connect, load
from rig.waiting import wait_for

DATA = Path(__file__).parent / "data"
FILE = "rights_table.json"
THERE, NEW = "there", "new"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
PART_VERBS = ("get", "create", "update", "patch")
_RBAC = "rbac.authorization.k8s.io"
_NAMESPACE = "test-rights"
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_FORBIDDEN = 403
_GADGET = Sample(
    "Gadget", "gadgets", {"spec": {"replicas": 1}}, {}, {}, {"status": {}, "scale": {}}, group="test.example.com"
)
_KINDS = (
    "ConfigMap",
    "Secret",
    "Lease",
    "Service",
    "Endpoints",
    "LimitRange",
    "Node",
    "Namespace",
    "Pod",
    "Deployment",
    "ServiceAccount",
    "PersistentVolume",
    "CertificateSigningRequest",
    "RuntimeClass",
    "PodDisruptionBudget",
)
_PARTS: Mapping[str, Sequence[str]] = {
    "Namespace": ("status", "finalize"),
    "Node": ("status", "proxy"),
    "Pod": (
        *("status", "binding", "eviction", "ephemeralcontainers", "resize"),
        *("log", "exec", "attach", "portforward", "proxy"),
    ),
    "Service": ("status", "proxy"),
    "ServiceAccount": ("token",),
    "Deployment": ("status", "scale"),
    "CertificateSigningRequest": ("status", "approval"),
    "Gadget": ("status", "scale"),
}
THINGS = (*(sample for sample in SAMPLES if sample.kind in _KINDS), _GADGET)


class Form(NamedTuple):
    """A way to ask for something."""

    title: str
    method: str
    path: str
    body: Json | list[Json] | None = None
    media_type: str = "application/json"


class Grant(NamedTuple):
    """One right: verbs on a resource, or with a slash on its subresource. A verb may be for one name: `create:new`."""

    resource: str
    verbs: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{'+'.join(self.verbs)} {self.resource}"

    def rules(self, group: str) -> Iterator[Json]:
        for verb, _, name in (each.partition(":") for each in self.verbs):
            rule = {"apiGroups": [group], "resources": [self.resource], "verbs": [verb]}
            yield {**rule, "resourceNames": [name]} if name else rule


def parts_of(sample: Sample) -> Sequence[str]:
    return _PARTS.get(sample.kind, ())


def grants(sample: Sample) -> list[Grant]:
    """Each verb alone, on the resource and on each of its parts; and what it takes to create by a write."""
    alone = [Grant(sample.plural, (verb,)) for verb in VERBS]
    of_parts = [Grant(f"{sample.plural}/{part}", (verb,)) for part in parts_of(sample) for verb in PART_VERBS]
    both = [
        Grant(sample.plural, pair)
        for pair in (("update", "create"), ("patch", "create"), ("update", f"create:{NEW}"), ("patch", f"create:{NEW}"))
    ]
    return [*alone, *both, *of_parts, *([Grant(f"{sample.plural}/*", ("update",))] if of_parts else ())]


def forms(sample: Sample, namespace: str) -> list[Form]:
    """Every way to ask for objects of the kind."""
    collection, dry = sample.collection(namespace), "dryRun=All"
    made = sample.object(namespace, NEW)
    there, new = f"{collection}/{THERE}", f"{collection}/{NEW}"
    named = {"metadata": {"name": NEW}}
    known = {**made, "metadata": {"name": THERE}}
    label, operations = {"metadata": {"labels": {"a": "b"}}}, [{"op": "test", "path": "/kind", "value": sample.kind}]
    found = [
        Form("get", "GET", there),
        Form("list", "GET", collection),
        Form("list one", "GET", f"{collection}?fieldSelector=metadata.name%3D{THERE}"),
        Form("watch", "GET", f"{collection}?watch=1&resourceVersion=rubbish"),
        Form("create", "POST", f"{collection}?{dry}", {**made, **named}),
        Form("update", "PUT", f"{there}?{dry}", known),
        Form("update a new one", "PUT", f"{new}?{dry}", {**made, **named}),
        Form("merge patch", "PATCH", f"{there}?{dry}", label, _MERGE),
        Form("merge patch a new one", "PATCH", f"{new}?{dry}", label, _MERGE),
        Form("JSON patch", "PATCH", f"{there}?{dry}", operations, _JSON_PATCH),
        Form("apply", "PATCH", f"{there}?{dry}&fieldManager=m&force=true", known, _APPLY),
        Form("apply a new one", "PATCH", f"{new}?{dry}&fieldManager=m&force=true", {**made, **named}, _APPLY),
        Form("delete", "DELETE", f"{there}?{dry}"),
        Form("delete all", "DELETE", f"{collection}?{dry}&labelSelector=no%3Dbody"),
    ]
    return [*found, *(form for part in parts_of(sample) for form in _part_forms(sample, part, collection))]


def _part_forms(sample: Sample, part: str, collection: str) -> Iterator[Form]:
    for name in (THERE, NEW):
        path = f"{collection}/{name}/{part}"
        body = {"apiVersion": sample.api_version, "kind": sample.kind, "metadata": {"name": name}}
        yield Form(f"get {part} of {name}", "GET", path)
        yield Form(f"create {part} of {name}", "POST", f"{path}?dryRun=All", {"kind": "Nothing"})
        yield Form(f"update {part} of {name}", "PUT", f"{path}?dryRun=All", body)
        yield Form(f"patch {part} of {name}", "PATCH", f"{path}?dryRun=All", {"metadata": {}}, _MERGE)
        yield Form(f"apply {part} of {name}", "PATCH", f"{path}?dryRun=All&fieldManager=m", body, _APPLY)


class Asker:
    """Requests on one connection, as somebody else."""

    def __init__(self, config: Config) -> None:
        address = config.server.removeprefix("https://")
        self._connection = HTTPSConnection(address, context=config.ssl_context(), timeout=SECONDS)
        self._token = config.token

    def is_let_in(self, user: str, form: Form) -> bool:
        """Whether the request gets any other answer than 403."""
        headers = {"Authorization": f"Bearer {self._token}", "Impersonate-User": user, "Content-Type": form.media_type}
        data = None if form.body is None else msgspec.json.encode(form.body)
        self._connection.request(form.method, form.path, data, headers)
        with self._connection.getresponse() as answer:
            answer.read()
        return answer.status != _FORBIDDEN

    def close(self) -> None:
        self._connection.close()


def allowed(server: Server, asker: Asker, sample: Sample, namespace: str) -> dict[str, list[str]]:
    """What each right lets in, by its title."""
    _make(server, sample, namespace)
    asked = forms(sample, namespace)
    users = {grant: f"{namespace}-{sample.plural}-{index}" for index, grant in enumerate(grants(sample))}
    for grant, user in users.items():
        _give(server, sample, grant, user, namespace)
    found = {}
    for grant, user in users.items():
        _await_known(server, sample, grant, user, namespace)
        found[grant.title] = [form.title for form in asked if asker.is_let_in(user, form)]
    _forget(server, sample, users, namespace)
    return found


def _make(server: Server, sample: Sample, namespace: str) -> None:
    value = sample.object(namespace, THERE)
    answer = server.ask("POST", sample.collection(namespace), {**value, "metadata": {"name": THERE}})
    assert answer.code in {201, 409}, f"expected a {sample.kind}, got {answer.code}: {answer.body.get('message')}"


def _give(server: Server, sample: Sample, grant: Grant, user: str, namespace: str) -> None:
    kind = "Role" if sample.namespaced else "ClusterRole"
    root = _roles(sample, namespace)
    role = {"metadata": {"name": user}, "rules": [*grant.rules(sample.group)]}
    subjects = [{"kind": "User", "name": user, "apiGroup": _RBAC}]
    reference = {"kind": kind, "name": user, "apiGroup": _RBAC}
    binding = {"metadata": {"name": user}, "subjects": subjects, "roleRef": reference}
    for plural, body in ((f"{kind.lower()}s", role), (f"{kind.lower()}bindings", binding)):
        answer = server.ask("POST", f"{root}/{plural}", body)
        assert answer.code == 201, f"expected a new role or binding, got {answer.code}: {answer.body.get('message')}"


def _roles(sample: Sample, namespace: str) -> str:
    return f"/apis/{_RBAC}/v1" + (f"/namespaces/{namespace}" if sample.namespaced else "")


def _await_known(server: Server, sample: Sample, grant: Grant, user: str, namespace: str) -> None:
    """Until the server has taken note of the binding: a real one does so a moment later."""
    verb, _, name = grant.verbs[0].partition(":")
    plural, _, part = grant.resource.partition("/")
    about = {"group": sample.group, "resource": plural, "verb": verb, "name": name, "subresource": part}
    about |= {"namespace": namespace} if sample.namespaced else {}
    review = {"spec": {"user": user, "resourceAttributes": about}}

    def is_known() -> bool:
        return bool(
            server.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).body["status"]["allowed"]
        )

    wait_for(f"{user} may {grant.title}", is_known, seconds=SECONDS)


def _forget(server: Server, sample: Sample, users: Mapping[Grant, str], namespace: str) -> None:
    """Whatever is in no namespace, and would stay."""
    if sample.namespaced:
        return
    for user in users.values():
        for plural in ("clusterroles", "clusterrolebindings"):
            server.ask("DELETE", f"{_roles(sample, namespace)}/{plural}/{user}")
    server.ask("DELETE", f"{sample.collection(namespace)}/{THERE}")


def recorded() -> dict[str, dict[str, list[str]]]:
    """What the real server lets in, by kind and right."""
    found: dict[str, dict[str, list[str]]] = json.loads((DATA / FILE).read_text())
    return found


async def _install(config: Config) -> None:
    async with connect(config) as client:
        await installed(client)


def ask(cluster: rig.Cluster) -> Verdicts:
    """Tries every right."""
    config = load(cluster.kubeconfig)
    server, asker = Server(config), Asker(config)
    prepared(server, _NAMESPACE)
    asyncio.run(_install(config))
    found = {each.title: allowed(server, asker, each, _NAMESPACE) for each in THINGS}
    asker.close()
    server.close()
    return {FILE: found}


RECORDING = Recording("rights-table", KUBE_APISERVER, DATA, (FILE,), ask)
