"""What is asked: who am I, what may I, whose token is this, may I act as, may I grant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.access.asking import Headers, Json, Step
from cluster.access.rights_script import acting, acting_within_limits, granting
from cluster.access.token_script import forged_tokens, token_requests, token_reviews
from cluster.access.wording import ACCESS, ACCOUNTS, PODS, RBAC, WHO, acting_as, binding, person, review

_POD = {"resource": "pods", "verb": "get", "namespace": "acc"}


def steps() -> list[Step]:
    """All of them, in order: the later ones need what the earlier ones made."""
    parts = (_beginning, _requests, _access_reviews, _local_reviews, _own_reviews, token_requests, token_reviews)
    return [step for part in (*parts, forged_tokens, granting, acting, acting_within_limits) for step in part()]


def _beginning() -> Iterator[Step]:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "acc"}}
    yield Step("a namespace", "POST", "/api/v1/namespaces", namespace)
    for name in ("robot", "imp"):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        yield Step(f"the ServiceAccount {name}", "POST", ACCOUNTS, account)
    yield Step(
        "a binding to no ClusterRole",
        "POST",
        f"{RBAC}/clusterrolebindings",
        binding("broken", "nope", person("carl")),
    )
    yield Step(
        "a binding to no Role",
        "POST",
        f"{RBAC}/namespaces/acc/rolebindings",
        binding("broken", "nope2", person("carl"), "RoleBinding", "Role"),
    )


def _requests() -> Iterator[Step]:
    yield Step("a path", "GET", "/foo", headers=acting_as("bob"))
    yield Step("a list", "GET", PODS, headers=acting_as("bob"))
    yield Step("a subresource and a name to escape", "GET", f"{PODS}/x/log", headers=acting_as('bo"b<&'))
    yield Step("a cluster-wide list", "GET", "/api/v1/nodes", headers=acting_as("bob"))
    yield Step("an object of a group", "GET", "/apis/apps/v1/namespaces/acc/deployments/x", headers=acting_as("bob"))
    yield Step("a namespace by name", "GET", "/api/v1/namespaces/acc", headers=acting_as("bob"))
    yield Step("an unknown token", "GET", PODS, token="rubbish")
    yield Step("an unknown token for what anybody may", "GET", "/healthz", token="rubbish")
    yield Step("nobody", "GET", PODS, token="")
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
        yield Step(f"a list of {what}", "GET", f"{PODS}?fieldSelector={query}", headers=acting_as("bob"))
    yield Step("a path behind a subresource", "GET", f"{PODS}/x/proxy/a/b", headers=acting_as("bob"))
    yield Step("a namespace with a slash", "GET", "/api/v1/namespaces/acc/", headers=acting_as("bob"))
    yield Step("a collection to delete", "DELETE", f"{PODS}?fieldSelector=metadata.name%3Dxx", headers=acting_as("bob"))
    yield Step("another path", "POST", "/foo", headers=acting_as("bob"))
    yield Step("missing roles", "GET", PODS, headers=acting_as("carl"))
    yield Step("a missing ClusterRole", "GET", "/api/v1/nodes", headers=acting_as("carl"))


def _subject_review(name: str, spec: Json | None, **more: Any) -> Step:
    return Step(name, "POST", f"{ACCESS}/subjectaccessreviews", review("SubjectAccessReview", spec, **more))


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
    path = f"{ACCESS}/namespaces/acc/localsubjectaccessreviews"

    def local(title: str, spec: Json, **metadata: str) -> Step:
        body = review("LocalSubjectAccessReview", {"user": "a", **spec}, metadata=metadata)
        return Step(title, "POST", path, body)

    yield local("here", {"resourceAttributes": _POD}, namespace="acc")
    yield local("here, but not said", {"resourceAttributes": _POD})
    yield local("elsewhere", {"resourceAttributes": _POD}, namespace="other")
    elsewhere = {"resourceAttributes": {**_POD, "namespace": "other"}}
    yield local("with a name, about elsewhere", elsewhere, namespace="acc", name="x")
    yield local("of a path, here", {"nonResourceAttributes": {"path": "/x", "verb": "get"}}, namespace="acc")


def _own_reviews() -> Iterator[Step]:
    def own(name: str, spec: Json, headers: Headers = (), **more: Any) -> Step:
        body = review("SelfSubjectAccessReview", spec, **more)
        return Step(name, "POST", f"{ACCESS}/selfsubjectaccessreviews", body, headers)

    yield own("may I", {"resourceAttributes": {"verb": "get", "resource": "pods"}})
    yield own("may I, as somebody", {"resourceAttributes": _POD}, acting_as("bob"))
    yield own("may I what", {})
    yield own("may I, with a status", {"nonResourceAttributes": {}}, status={"allowed": False, "reason": "x"})
    for name, spec, headers in (
        ("my rules", {"namespace": "acc"}, acting_as("carl")),
        ("a master's rules", {"namespace": "acc"}, ()),
        ("my rules nowhere", {}, acting_as("carl")),
    ):
        body = review("SelfSubjectRulesReview", spec)
        yield Step(name, "POST", f"{ACCESS}/selfsubjectrulesreviews", body, headers)
    for who, headers in {
        "me": (),
        "somebody with everything": (*acting_as("carl", "g1", "g2", uid="u"), ("Impersonate-Extra-Foo%2Fbar", "v1")),
        "somebody with a broken escape": (*acting_as("carl"), ("Impersonate-Extra-a%zz%20", "v1")),
        "a ServiceAccount": acting_as("system:serviceaccount:acc:default"),
        "a ServiceAccount in a group": acting_as("system:serviceaccount:acc:default", "g"),
        "no ServiceAccount": acting_as("system:serviceaccount:acc:a:b"),
        "anonymous": acting_as("system:anonymous"),
        "a node": acting_as("system:node:n1"),
        "no node": acting_as("system:node:N_1"),
        "a group of nobody": acting_as("", "g"),
        "a uid and an extra of nobody": acting_as("", uid="u", a="g"),
        "somebody who is not authenticated": acting_as("a", "system:unauthenticated"),
    }.items():
        yield Step(who, "POST", f"{WHO}/selfsubjectreviews", review("SelfSubjectReview", None), headers)
