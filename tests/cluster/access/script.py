"""What is asked: who am I, what may I, whose token is this, may I act as, may I grant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.access.asking import Headers, Json, Step

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_RBAC_GROUP = "rbac.authorization.k8s.io"
_ACCESS = "/apis/authorization.k8s.io/v1"
_WHO = "/apis/authentication.k8s.io/v1"
_ACCOUNTS = "/api/v1/namespaces/acc/serviceaccounts"
_PODS = "/api/v1/namespaces/acc/pods"
_POD = {"resource": "pods", "verb": "get", "namespace": "acc"}


def steps() -> list[Step]:
    """All of them, in order: the later ones need what the earlier ones made."""
    parts = (_beginning, _requests, _access_reviews, _local_reviews, _own_reviews, _token_requests, _token_reviews)
    return [step for part in (*parts, _forged_tokens, _granting, _acting, _acting_within_limits) for step in part()]


def _as(user: str, *groups: str, uid: str = "", **extra: str) -> Headers:
    headers = [("Impersonate-User", user)] if user else []
    headers += [("Impersonate-Group", group) for group in groups]
    headers += [("Impersonate-Uid", uid)] if uid else []
    return tuple(headers) + tuple((f"Impersonate-Extra-{key}", value) for key, value in extra.items())


def role(name: str, rules: list[Json], kind: str = "ClusterRole", **more: Any) -> Json:
    """A role without labels."""
    return {"apiVersion": f"{_RBAC_GROUP}/v1", "kind": kind, "metadata": {"name": name}, "rules": rules, **more}


def binding(
    name: str, role_name: str, subject: Json, kind: str = "ClusterRoleBinding", of: str = "ClusterRole"
) -> Json:
    """A binding to one subject."""
    reference = {"apiGroup": _RBAC_GROUP, "kind": of, "name": role_name}
    head = {"apiVersion": f"{_RBAC_GROUP}/v1", "kind": kind, "metadata": {"name": name}}
    return {**head, "roleRef": reference, "subjects": [subject]}


def person(name: str) -> Json:
    """A user as a subject."""
    return {"kind": "User", "name": name, "apiGroup": _RBAC_GROUP}


def _beginning() -> Iterator[Step]:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acc"}}
    yield Step("a namespace", "POST", "/api/v1/namespaces", namespace)
    for name in ("robot", "imp"):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        yield Step(f"the ServiceAccount {name}", "POST", _ACCOUNTS, account)
    yield Step(
        "a binding to no ClusterRole",
        "POST",
        f"{_RBAC}/clusterrolebindings",
        binding("broken", "nope", person("carl")),
    )
    yield Step(
        "a binding to no Role",
        "POST",
        f"{_RBAC}/namespaces/acc/rolebindings",
        binding("broken", "nope2", person("carl"), "RoleBinding", "Role"),
    )


def _requests() -> Iterator[Step]:
    yield Step("a path", "GET", "/foo", headers=_as("bob"))
    yield Step("a list", "GET", _PODS, headers=_as("bob"))
    yield Step("a subresource and a name to escape", "GET", f"{_PODS}/x/log", headers=_as('bo"b<&'))
    yield Step("a cluster-wide list", "GET", "/api/v1/nodes", headers=_as("bob"))
    yield Step("an object of a group", "GET", "/apis/apps/v1/namespaces/acc/deployments/x", headers=_as("bob"))
    yield Step("a namespace by name", "GET", "/api/v1/namespaces/acc", headers=_as("bob"))
    yield Step("an unknown token", "GET", _PODS, token="rubbish")
    yield Step("an unknown token for what anybody may", "GET", "/healthz", token="rubbish")
    yield Step("nobody", "GET", _PODS, token="")
    yield Step("nobody, of what anybody may", "GET", "/healthz", token="")
    yield Step("nobody, of the version", "GET", "/version", token="")
    yield Step("nobody, of discovery", "GET", "/api", token="")
    yield Step("nobody, of a part of health", "GET", "/healthz/ping", token="")
    yield Step("another scheme", "GET", "/healthz", headers=(("Authorization", "Basic abc"),), token="")
    yield Step("a scheme without a token", "GET", "/healthz", headers=(("Authorization", "Bearer"),), token="")
    for what, query in {
        "one object": "metadata.name%3Dxx",
        "one object, watched": "metadata.name%3D%3Dxx,spec.nodeName%3Da&watch=true",
        "all objects but one": "metadata.name!%3Dxx",
        "an odd name": "metadata.name%3Da/b",
        "a selector of nonsense": "%3D%3D",
    }.items():
        yield Step(f"a list of {what}", "GET", f"{_PODS}?fieldSelector={query}", headers=_as("bob"))
    yield Step("a path behind a subresource", "GET", f"{_PODS}/x/proxy/a/b", headers=_as("bob"))
    yield Step("a namespace with a slash", "GET", "/api/v1/namespaces/acc/", headers=_as("bob"))
    yield Step("a collection to delete", "DELETE", f"{_PODS}?fieldSelector=metadata.name%3Dxx", headers=_as("bob"))
    yield Step("another path", "POST", "/foo", headers=_as("bob"))
    yield Step("missing roles", "GET", _PODS, headers=_as("carl"))
    yield Step("a missing ClusterRole", "GET", "/api/v1/nodes", headers=_as("carl"))


def _review(kind: str, spec: Json | None, **more: Any) -> Json:
    group = "authentication" if kind in {"TokenReview", "SelfSubjectReview"} else "authorization"
    body: Json = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind, **more}
    return body if spec is None else {**body, "spec": spec}


def _subject_review(name: str, spec: Json | None, **more: Any) -> Step:
    return Step(name, "POST", f"{_ACCESS}/subjectaccessreviews", _review("SubjectAccessReview", spec, **more))


def _access_reviews() -> Iterator[Step]:
    path = {"path": "/healthz", "verb": "get"}
    controller = "system:serviceaccount:kube-system:job-controller"
    jobs = {"verb": "get", "resource": "jobs", "group": "batch", "namespace": "acc"}
    yield _subject_review("of somebody bound to missing roles", {"user": "carl", "resourceAttributes": _POD})
    yield _subject_review(
        "of a master", {"user": "carl", "groups": ["system:masters"], "resourceAttributes": {"verb": "get"}}
    )
    yield _subject_review(
        "of a path", {"user": "a", "groups": ["system:unauthenticated"], "nonResourceAttributes": path}
    )
    yield _subject_review("of a controller", {"user": controller, "resourceAttributes": jobs})
    yield _subject_review("of nobody", {"user": "", "resourceAttributes": _POD})
    yield _subject_review("of nothing", {"user": "a"})
    yield _subject_review("of both", {"user": "a", "resourceAttributes": _POD, "nonResourceAttributes": path})
    yield _subject_review("with a name", {"user": "a", "resourceAttributes": _POD}, metadata={"name": "x"})
    yield _subject_review("without a spec", None)
    yield _subject_review("of an empty resource", {"user": "a", "resourceAttributes": {}})
    for name, selectors in _selectors().items():
        yield _subject_review(name, {"user": "a", "resourceAttributes": {**_POD, **selectors}})


def _selectors() -> dict[str, Json]:
    one = {"key": "a", "operator": "In", "values": ["x"]}
    odd = [{"key": "", "operator": "In", "values": []}, {"key": "x", "operator": "Exists", "values": ["q"]}]
    labels = [{"key": "a b", "operator": "In", "values": []}, {"key": "a", "operator": "In", "values": ["-"]}]
    unknown = {"key": "a", "operator": "Bad", "values": ["x"]}
    return {
        "two field selectors, an empty label selector": {
            "fieldSelector": {"rawSelector": "a=b", "requirements": [one]},
            "labelSelector": {},
        },
        "selectors that cannot be read": {
            "fieldSelector": {"rawSelector": "a==b,c"},
            "labelSelector": {"requirements": [unknown, {"key": "b", "operator": "Exists"}]},
        },
        "a selector of which nothing can be read": {"labelSelector": {"requirements": [unknown]}},
        "a raw selector that cannot be read": {"labelSelector": {"rawSelector": "a in"}},
        "requirements that break rules": {
            "fieldSelector": {"requirements": odd},
            "labelSelector": {"requirements": labels},
        },
        "good selectors": {"fieldSelector": {"requirements": [one]}, "labelSelector": {"rawSelector": "a=b"}},
    }


def _local_reviews() -> Iterator[Step]:
    path = f"{_ACCESS}/namespaces/acc/localsubjectaccessreviews"

    def local(title: str, spec: Json, **metadata: str) -> Step:
        body = _review("LocalSubjectAccessReview", {"user": "a", **spec}, metadata=metadata)
        return Step(title, "POST", path, body)

    yield local("here", {"resourceAttributes": _POD}, namespace="acc")
    yield local("here, but not said", {"resourceAttributes": _POD})
    yield local("elsewhere", {"resourceAttributes": _POD}, namespace="other")
    elsewhere = {"resourceAttributes": {**_POD, "namespace": "other"}}
    yield local("with a name, about elsewhere", elsewhere, namespace="acc", name="x")
    yield local("of a path, here", {"nonResourceAttributes": {"path": "/x", "verb": "get"}}, namespace="acc")


def _own_reviews() -> Iterator[Step]:
    def own(name: str, spec: Json, headers: Headers = (), **more: Any) -> Step:
        body = _review("SelfSubjectAccessReview", spec, **more)
        return Step(name, "POST", f"{_ACCESS}/selfsubjectaccessreviews", body, headers)

    yield own("may I", {"resourceAttributes": {"verb": "get", "resource": "pods"}})
    yield own("may I, as somebody", {"resourceAttributes": _POD}, _as("bob"))
    yield own("may I what", {})
    yield own("may I, with a status", {"nonResourceAttributes": {}}, status={"allowed": False, "reason": "x"})
    for name, spec, headers in (
        ("my rules", {"namespace": "acc"}, _as("carl")),
        ("a master's rules", {"namespace": "acc"}, ()),
        ("my rules nowhere", {}, _as("carl")),
    ):
        body = _review("SelfSubjectRulesReview", spec)
        yield Step(name, "POST", f"{_ACCESS}/selfsubjectrulesreviews", body, headers)
    for who, headers in {
        "me": (),
        "somebody with everything": (*_as("carl", "g1", "g2", uid="u"), ("Impersonate-Extra-Foo%2Fbar", "v1")),
        "somebody with a broken escape": (*_as("carl"), ("Impersonate-Extra-a%zz%20", "v1")),
        "a ServiceAccount": _as("system:serviceaccount:acc:default"),
        "a ServiceAccount in a group": _as("system:serviceaccount:acc:default", "g"),
        "no ServiceAccount": _as("system:serviceaccount:acc:a:b"),
        "anonymous": _as("system:anonymous"),
        "a node": _as("system:node:n1"),
        "no node": _as("system:node:N_1"),
        "a group of nobody": _as("", "g"),
        "a uid and an extra of nobody": _as("", uid="u", a="g"),
        "somebody who is not authenticated": _as("a", "system:unauthenticated"),
    }.items():
        yield Step(who, "POST", f"{_WHO}/selfsubjectreviews", _review("SelfSubjectReview", None), headers)


def _request(name: str, account: str = "robot", *, keeps: str = "", metadata: Json | None = None, **spec: Any) -> Step:
    body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    if metadata is not None:
        body["metadata"] = metadata
    return Step(name, "POST", f"{_ACCOUNTS}/{account}/token", body, keeps=keeps)


def _token_requests() -> Iterator[Step]:
    container = {"name": "c", "image": "i"}
    pod_spec = {"serviceAccountName": "robot", "nodeName": "n9", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}, "spec": pod_spec}
    yield Step("a pod", "POST", _PODS, pod)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1"}}
    yield Step("a Secret", "POST", "/api/v1/namespaces/acc/secrets", secret)
    yield _request("a token", keeps="robot")
    yield _request("a token to act with", "imp", keeps="imp")
    yield _request("a token for others", audiences=["a", "b"], expirationSeconds=600, keeps="other")
    for seconds in (599, 0, -1, 2**32 + 1, 2**32):
        yield _request(f"a token for {seconds} s", expirationSeconds=seconds)
    yield _request("a token of nobody", "none")
    yield _request("a token of another name", metadata={"name": "x"})
    yield _request("a token of another namespace", metadata={"namespace": "x"})
    yield _request("a token of another uid", metadata={"uid": "x"})
    yield _request("a token with labels", metadata={"labels": {"a": "b"}, "name": "robot"})
    to_pod = {"kind": "Pod", "apiVersion": "v1", "name": "p1"}
    yield _request("a token bound to a pod", boundObjectRef=to_pod, keeps="pod")
    yield _request("a token bound to a pod of another", "imp", boundObjectRef=to_pod)
    yield _request("a token bound to a pod of another uid", boundObjectRef={**to_pod, "uid": "bad"})
    yield _request("a token of a kubelet", boundObjectRef=to_pod, expirationSeconds=3607, keeps="kubelet")
    yield _request(
        "a token bound to a Secret", boundObjectRef={**to_pod, "kind": "Secret", "name": "s1"}, keeps="secret"
    )
    yield _request("a token bound to no pod", boundObjectRef={**to_pod, "name": "nopod"})
    yield _request("a token bound to no node", boundObjectRef={**to_pod, "kind": "Node", "name": "nonode"})
    to_deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}
    yield _request("a token bound to what it cannot be", boundObjectRef=to_deployment)
    yield _request("a token bound to nothing", boundObjectRef={})


def _token_review(name: str, token: str, **more: Any) -> Step:
    step = {key: more.pop(key) for key in ("claims", "head") if key in more}
    body = _review("TokenReview", {"token": token, **more})
    return Step(name, "POST", f"{_WHO}/tokenreviews", body, **step)


def _token_reviews() -> Iterator[Step]:
    for name in ("robot", "pod", "kubelet", "secret", "other"):
        yield _token_review(f"the token {name}", f"${name}")
    yield _token_review("for its audience", "$other", audiences=["b", "c"])
    yield _token_review("for another audience", "$robot", audiences=["x"])
    yield _token_review("rubbish", "rubbish")
    yield _token_review("no token", "")
    yield _token_review("a token with spaces", " a b")
    yield _token_review("three parts", "a.b.c")
    yield _token_review("three parts of JSON", "e30.W10.e30")


def _forged_tokens() -> Iterator[Step]:
    forged = {
        "as it was": {},
        "expired": {"exp": "now-100"},
        "just expired": {"exp": "now-30"},
        "not valid yet": {"nbf": "now+100"},
        "almost valid": {"nbf": "now+30"},
        "issued in the future": {"iat": "now+100"},
        "of another issuer": {"iss": "other"},
        "for another audience, forged": {"aud": ["x"]},
        "for no audience": {"aud": []},
        "without audiences": {"aud": None},
        "for one audience as text": {"aud": "https://kubernetes.default.svc"},
        "without an end": {"exp": None},
        "with a time as text": {"exp": "soon"},
        "of another uid": {"own": {"serviceaccount": {"name": "robot", "uid": "x"}}},
        "of an account that is gone": {"own": {"serviceaccount": {"name": "gone", "uid": "x"}}},
        "bound to a pod that is gone": {"own": {"pod": {"name": "gone", "uid": "x"}}},
        "bound to another pod": {"own": {"pod": {"name": "p1", "uid": "x"}}},
        "bound to a node that is gone": {"own": {"node": {"name": "gone", "uid": "x"}}},
        "bound to a Secret that is gone": {"own": {"secret": {"name": "gone", "uid": "x"}}},
        "bound to another Secret": {"own": {"secret": {"name": "s1", "uid": "x"}}},
        "of another subject": {"sub": "x"},
        "without Kubernetes' claims": {"kubernetes.io": None},
        "of the old kind, without claims": {"iss": "kubernetes/serviceaccount"},
    }
    for name, claims in forged.items():
        yield _token_review(f"a forged token {name}", "", claims=claims)
    for name, head in {
        "signed by nothing": {"alg": "none"},
        "signed with a secret": {"alg": "HS256"},
        "said to be signed with RSA": {"alg": "RS256"},
        "of an unknown key": {"alg": "ES256", "kid": "zzz"},
        "without a key": {"alg": "ES256"},
    }.items():
        yield _token_review(f"a forged token {name}", "", claims={}, head=head)
    yield Step("the account goes", "DELETE", f"{_ACCOUNTS}/robot")
    yield _token_review("a token of a deleted account", "", claims={"jti": "another"})


def _rules(groups: list[str], resources: list[str], verbs: list[str], *names: str) -> Json:
    rule: Json = {"apiGroups": groups, "resources": resources, "verbs": verbs}
    return {**rule, "resourceNames": list(names)} if names else rule


def _granting() -> Iterator[Step]:
    grace, roles, bindings = _as("grace"), f"{_RBAC}/clusterroles", f"{_RBAC}/clusterrolebindings"
    here = f"{_RBAC}/namespaces/acc/rolebindings"
    own = [
        _rules([_RBAC_GROUP], ["*"], ["create", "update", "patch", "get", "list"]),
        _rules([""], ["pods"], ["get", "list"]),
        _rules([""], ["configmaps"], ["get"], "a", "b"),
        _rules(["apps"], ["*/scale"], ["*"]),
    ]
    yield Step("a granter's role", "POST", roles, role("granter", own))
    yield Step("a granter", "POST", bindings, binding("granter", "granter", person("grace")))
    allowed = [
        _rules([""], ["pods"], ["get"]),
        _rules([""], ["configmaps"], ["get"], "a"),
        _rules(["apps"], ["deployments/scale"], ["update"]),
    ]
    yield Step("grants what she has", "POST", roles, role("ok", allowed), grace)
    more = [
        _rules(["", "apps"], ["pods", "secrets"], ["get", "delete", "list"]),
        _rules([""], ["configmaps"], ["get", "list"], "a", "c", "d"),
        {"nonResourceURLs": ["/x", "/healthz"], "verbs": ["get", "post"]},
    ]
    yield Step("grants what she has not", "POST", roles, role("bad", more), grace)
    everything = [_rules(["*"], ["*"], ["*"])]
    yield Step("grants all", "POST", f"{_RBAC}/namespaces/acc/roles", role("bad", everything, "Role"), grace)
    gathering = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    yield Step("gathers rules", "POST", roles, role("agg", [], aggregationRule=gathering), grace)
    secrets = [_rules([""], ["secrets"], ["get"])]
    yield Step("grants in groups", "POST", roles, role("bad2", secrets), _as("grace", "g 1", "g2"))
    yield Step("grants without a name", "POST", roles, role("", secrets), grace)
    yield Step("binds too much", "POST", bindings, binding("x", "cluster-admin", person("u")), grace)
    yield Step("binds nothing", "POST", bindings, binding("x", "nonexistent", person("u")), grace)
    yield Step("binds too much here", "POST", here, binding("x", "view", person("u"), "RoleBinding"), grace)
    yield Step("binds nothing here", "POST", here, binding("x", "none", person("u"), "RoleBinding", "Role"), grace)
    yield Step("binds what she has", "POST", here, binding("okb", "ok", person("u"), "RoleBinding"), grace)
    labels = {"metadata": {"labels": {"z": "y"}}}
    yield Step("labels a role of more", "PATCH", f"{roles}/cluster-admin", labels, grace)
    yield Step("labels a role of less", "PATCH", f"{roles}/system:discovery", labels, grace)
    finalizers = {"metadata": {"finalizers": ["a.b/c"]}}
    yield Step("puts a finalizer on a role of more", "PATCH", f"{roles}/cluster-admin", finalizers, grace)
    yield Step("takes it away", "PATCH", f"{roles}/cluster-admin", {"metadata": {"finalizers": None}}, grace)
    yield Step("gives away a binding", "PATCH", f"{bindings}/cluster-admin", {"subjects": [person("u")]}, grace)
    yield Step("a broken binding", "POST", bindings, binding("granter-broken", "nope", person("grace")))
    yield Step("grants while a role is missing", "POST", roles, role("bad2", secrets), grace)
    yield Step("another broken binding", "POST", bindings, binding("granter-broken2", "nope2", person("grace")))
    yield Step("grants while roles are missing", "POST", roles, role("bad3", secrets), grace)
    may = [
        _rules([_RBAC_GROUP], ["clusterroles"], ["escalate"]),
        _rules([_RBAC_GROUP], ["clusterroles"], ["bind"], "view"),
    ]
    yield Step("a role to do so", "POST", roles, role("may", may))
    yield Step("she may", "POST", bindings, binding("may", "may", person("grace")))
    yield Step("escalates", "POST", roles, role("bad4", secrets), grace)
    yield Step("binds what she may", "POST", here, binding("y", "view", person("u"), "RoleBinding"), grace)
    yield Step("binds what she may not", "POST", here, binding("z", "edit", person("u"), "RoleBinding", "Role"), grace)


def _acting() -> Iterator[Step]:
    def act(name: str, headers: Headers, path: str = _PODS) -> Step:
        return Step(f"acts as {name}", "GET", path, None, headers, token="$imp")

    yield act("somebody, unallowed", _as("bob"))
    yield act("somebody in a group, unallowed", _as("bob", "g"))
    yield act("an account, unallowed", _as("system:serviceaccount:acc:default"))
    yield act("an account in a group, unallowed", _as("system:serviceaccount:acc:default", "g"))
    yield act("a node, unallowed", _as("system:node:n1"))
    yield act("a node in a group, unallowed", _as("system:node:n1", "g"))
    yield act("somebody on a path, unallowed", _as("bob"), "/foo")
    old = [
        _rules([""], ["users", "groups"], ["impersonate"], "bob", "g"),
        _rules(["authentication.k8s.io"], ["userextras/scopes", "uids"], ["impersonate"], "v"),
    ]
    account = {"kind": "ServiceAccount", "name": "imp", "namespace": "acc"}
    yield Step("a role to act", "POST", f"{_RBAC}/clusterroles", role("imp", old))
    yield Step("the account may act", "POST", f"{_RBAC}/clusterrolebindings", binding("imp", "imp", account))
    yield act("somebody else first", _as("carl"))
    yield act("somebody", _as("bob"))
    yield act("somebody in a group", _as("bob", "g"))
    yield act("somebody in another group", _as("bob", "h"))
    yield act("somebody with a uid", _as("bob", uid="v"))
    yield act("somebody with another uid", _as("bob", uid="w"))
    yield act("somebody with an extra", _as("bob", scopes="v"))
    yield act("somebody with another value", _as("bob", scopes="w"))
    yield act("somebody with another extra", _as("bob", other="v"))
    yield act("somebody else", _as("carl"))


def _acting_within_limits() -> Iterator[Step]:
    """With an account that never acted before: servers remember the way that worked last."""

    def act(name: str, headers: Headers, path: str = _PODS) -> Step:
        return Step(f"acts within limits as {name}", "GET", path, None, headers, token="$limited")

    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "limited"}}
    yield Step("an account with limits", "POST", _ACCOUNTS, account)
    yield _request("a token to act with, within limits", "limited", keeps="limited")
    within = [
        _rules(["authentication.k8s.io"], ["users"], ["impersonate:user-info"], "bob"),
        _rules(["authentication.k8s.io"], ["serviceaccounts"], ["impersonate:serviceaccount"], "default"),
        _rules(["authentication.k8s.io"], ["nodes"], ["impersonate:arbitrary-node"], "n1"),
        _rules([""], ["pods"], ["impersonate-on:user-info:list", "impersonate-on:serviceaccount:list"]),
        _rules(["apps"], ["deployments"], ["impersonate-on:arbitrary-node:list"]),
    ]
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": "acc"}
    yield Step("a role to act within limits", "POST", f"{_RBAC}/clusterroles", role("limited", within))
    yield Step("may act within limits", "POST", f"{_RBAC}/clusterrolebindings", binding("limited", "limited", subject))
    yield act("somebody", _as("bob"))
    yield act("an account", _as("system:serviceaccount:acc:default"))
    yield act("another account", _as("system:serviceaccount:acc:other"))
    yield act("a node", _as("system:node:n1"), "/apis/apps/v1/namespaces/acc/deployments")
    yield act("somebody again", _as("bob"))
    yield act("somebody else", _as("carl"))
    yield act("a master", _as("bob", "system:masters"))
    yield act("the empty group", _as("bob", ""))
    yield act("somebody on a path", _as("bob"), "/foo")
    yield act("somebody who gets", _as("bob"), f"{_PODS}/x")
    yield act("an odd extra", (*_as("bob"), ("Impersonate-Extra-A%20b", "v")))
    yield act("an extra", (*_as("bob"), ("Impersonate-Extra-A%2fb", "v")))
    yield act("many groups", _as("bob", "a", "b", "c", "d"))
