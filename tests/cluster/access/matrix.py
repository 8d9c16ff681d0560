"""Users, roles and bindings of every sort, and every question about them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from cluster.access.asking import Json, Step
from cluster.access.wording import binding, person, role

GROUP = "rbac.authorization.k8s.io"
TEAM, OTHER = "team", "other"
ACCOUNT = "system:serviceaccount:team:robot"

USERS = {
    "viewer": ["system:authenticated"],
    "editor": [],
    "owner": [],
    "chief": ["chiefs", "system:authenticated"],
    "master": ["system:masters"],
    "namer": [],
    "scaler": [],
    "logger": [],
    "caller": [],
    "everywhere-viewer": [],
    "gatherer": [],
    "stranger": ["system:authenticated"],
    "system:anonymous": ["system:unauthenticated"],
    "system:kube-scheduler": [],
    ACCOUNT: ["system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"],
    "system:serviceaccount:other:robot": ["system:serviceaccounts", "system:serviceaccounts:other"],
}

VERBS = ("get", "list", "create", "update", "delete", "deletecollection", "escalate", "use", "*")
RESOURCES = (
    ("", "pods", ""),
    ("", "pods", "log"),
    ("", "pods", "exec"),
    ("", "pods", "status"),
    ("", "configmaps", ""),
    ("", "secrets", ""),
    ("", "serviceaccounts", "token"),
    ("", "namespaces", ""),
    ("", "nodes", ""),
    ("", "services", "proxy"),
    ("apps", "deployments", ""),
    ("apps", "deployments", "scale"),
    ("apps", "statefulsets", "scale"),
    ("extensions", "deployments", "scale"),
    ("batch", "jobs", ""),
    ("coordination.k8s.io", "leases", ""),
    ("example.com", "things", ""),
    ("example.com", "things", "status"),
    (GROUP, "clusterroles", ""),
    (GROUP, "roles", ""),
)
PLACES = ((TEAM, ""), (TEAM, "special"), (OTHER, "special"), ("", ""), ("", "special"))
PATHS = ("/healthz", "/healthz/etcd", "/api", "/api/v1", "/version/", "/metrics", "/logs/a", "/logs", "/", "/x*")


class Question(NamedTuple):
    """May this user do that?"""

    user: str
    attributes: Json

    def step(self) -> Step:
        """The question as a SubjectAccessReview."""
        spec = {"user": self.user, "groups": USERS[self.user], **self.attributes}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return Step(str(self), "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)


def questions(user: str) -> Iterator[Question]:
    """All questions about a user, in an order that does not change."""
    for verb, (group, resource, subresource), (namespace, name) in product(VERBS, RESOURCES, PLACES):
        what = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        yield Question(user, {"resourceAttributes": {**what, "namespace": namespace, "name": name}})
    for verb, path in product(("get", "post", "*"), PATHS):
        yield Question(user, {"nonResourceAttributes": {"verb": verb, "path": path}})


def _rule(groups: str, resources: str, verbs: str, *names: str) -> Json:
    rule = {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}
    return rule | ({"resourceNames": list(names)} if names else {})


def _here(name: str, role_name: str, subject: Json, of: str = "ClusterRole") -> Json:
    bound = binding(f"matrix-{name}", role_name, subject, "RoleBinding", of)
    return {**bound, "metadata": {**bound["metadata"], "namespace": TEAM}}


def objects() -> list[Json]:
    """The roles and bindings, beside Kubernetes' own."""
    labelled = role("matrix-part", [_rule("example.com", "things", "get,use")])
    labelled["metadata"]["labels"] = {"matrix": "yes"}
    selector = {
        "clusterRoleSelectors": [{"matchExpressions": [{"key": "matrix", "operator": "In", "values": ["yes"]}]}]
    }
    gathering = role("matrix-whole", [], aggregationRule=selector)
    local = role("matrix-local", [_rule(",apps", "configmaps,deployments/scale", "get,update")], "Role")
    local["metadata"]["namespace"] = TEAM
    chiefs = {"kind": "Group", "name": "chiefs", "apiGroup": GROUP}
    accounts = {"kind": "Group", "name": "system:serviceaccounts:team", "apiGroup": GROUP}
    nonresource = [{"nonResourceURLs": ["/logs/*", "/metrics", "/x*"], "verbs": ["get"]}]
    return [
        labelled,
        gathering,
        local,
        role("matrix-names", [_rule("", "configmaps,secrets", "get,update,delete,list", "special")]),
        role("matrix-scale", [_rule("apps", "*/scale", "*"), _rule("*", "*/status", "get")]),
        role("matrix-logs", [_rule("", "pods/*,pods/log", "get"), _rule("", "pods", "list")]),
        role("matrix-paths", nonresource),
        role("matrix-robot", [_rule("*", "*", "list")]),
        _here("viewer", "view", person("viewer")),
        _here("editor", "edit", person("editor")),
        _here("owner", "admin", person("owner")),
        _here("local", "matrix-local", accounts, "Role"),
        _here("robot", "matrix-robot", {"kind": "ServiceAccount", "name": "robot", "namespace": TEAM}),
        _here("names-local", "matrix-names", person("stranger")),
        binding("matrix-chiefs", "cluster-admin", chiefs),
        binding("matrix-namer", "matrix-names", person("namer")),
        binding("matrix-scaler", "matrix-scale", person("scaler")),
        binding("matrix-logger", "matrix-logs", person("logger")),
        binding("matrix-caller", "matrix-paths", person("caller")),
        binding("matrix-everywhere", "view", person("everywhere-viewer")),
        binding("matrix-gatherer", "matrix-whole", person("gatherer")),
        binding("matrix-nothing", "matrix-none", person("gatherer")),
    ]


def creation(value: Json) -> Step:
    """The step that makes one of `objects`."""
    namespace = value["metadata"].get("namespace")
    where = f"namespaces/{namespace}/" if namespace else ""
    plural = f"{value['kind'].lower()}s"
    return Step(value["metadata"]["name"], "POST", f"/apis/{GROUP}/v1/{where}{plural}", value)
