"""What is asked by those who grant rights, and by those who act as somebody else."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.access.asking import Headers, Step
from cluster.access.token_script import token_request
from cluster.access.wording import ACCOUNTS, PODS, RBAC, RBAC_GROUP, acting_as, binding, person, role, rule

__all__ = ["acting", "acting_within_limits", "granting"]


def granting() -> Iterator[Step]:
    """Somebody grants rights, her own and others."""
    grace, roles, bindings = acting_as("grace"), f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
    here = f"{RBAC}/namespaces/acc/rolebindings"
    own = [
        rule([RBAC_GROUP], ["*"], ["create", "update", "patch", "get", "list"]),
        rule([""], ["pods"], ["get", "list"]),
        rule([""], ["configmaps"], ["get"], "a", "b"),
        rule(["apps"], ["*/scale"], ["*"]),
    ]
    yield Step("a granter's role", "POST", roles, role("granter", own))
    yield Step("a granter", "POST", bindings, binding("granter", "granter", person("grace")))
    allowed = [
        rule([""], ["pods"], ["get"]),
        rule([""], ["configmaps"], ["get"], "a"),
        rule(["apps"], ["deployments/scale"], ["update"]),
    ]
    yield Step("grants what she has", "POST", roles, role("ok", allowed), grace)
    more = [
        rule(["", "apps"], ["pods", "secrets"], ["get", "delete", "list"]),
        rule([""], ["configmaps"], ["get", "list"], "a", "c", "d"),
        {"nonResourceURLs": ["/x", "/healthz"], "verbs": ["get", "post"]},
    ]
    yield Step("grants what she has not", "POST", roles, role("bad", more), grace)
    everything = [rule(["*"], ["*"], ["*"])]
    yield Step("grants all", "POST", f"{RBAC}/namespaces/acc/roles", role("bad", everything, "Role"), grace)
    gathering = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    yield Step("gathers rules", "POST", roles, role("agg", [], aggregationRule=gathering), grace)
    secrets = [rule([""], ["secrets"], ["get"])]
    yield Step("grants in groups", "POST", roles, role("bad2", secrets), acting_as("grace", "g 1", "g2"))
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
        rule([RBAC_GROUP], ["clusterroles"], ["escalate"]),
        rule([RBAC_GROUP], ["clusterroles"], ["bind"], "view"),
    ]
    yield Step("a role to do so", "POST", roles, role("may", may))
    yield Step("she may", "POST", bindings, binding("may", "may", person("grace")))
    yield Step("escalates", "POST", roles, role("bad4", secrets), grace)
    yield Step("binds what she may", "POST", here, binding("y", "view", person("u"), "RoleBinding"), grace)
    yield Step("binds what she may not", "POST", here, binding("z", "edit", person("u"), "RoleBinding", "Role"), grace)


def acting() -> Iterator[Step]:
    """An account acts as others, before and after it may."""

    def act(name: str, headers: Headers, path: str = PODS) -> Step:
        return Step(f"acts as {name}", "GET", path, None, headers, token="$imp")

    yield act("somebody, unallowed", acting_as("bob"))
    yield act("somebody in a group, unallowed", acting_as("bob", "g"))
    yield act("an account, unallowed", acting_as("system:serviceaccount:acc:default"))
    yield act("an account in a group, unallowed", acting_as("system:serviceaccount:acc:default", "g"))
    yield act("a node, unallowed", acting_as("system:node:n1"))
    yield act("a node in a group, unallowed", acting_as("system:node:n1", "g"))
    yield act("somebody on a path, unallowed", acting_as("bob"), "/foo")
    old = [
        rule([""], ["users", "groups"], ["impersonate"], "bob", "g"),
        rule(["authentication.k8s.io"], ["userextras/scopes", "uids"], ["impersonate"], "v"),
    ]
    account = {"kind": "ServiceAccount", "name": "imp", "namespace": "acc"}
    yield Step("a role to act", "POST", f"{RBAC}/clusterroles", role("imp", old))
    yield Step("the account may act", "POST", f"{RBAC}/clusterrolebindings", binding("imp", "imp", account))
    yield act("somebody else first", acting_as("carl"))
    yield act("somebody", acting_as("bob"))
    yield act("somebody in a group", acting_as("bob", "g"))
    yield act("somebody in another group", acting_as("bob", "h"))
    yield act("somebody with a uid", acting_as("bob", uid="v"))
    yield act("somebody with another uid", acting_as("bob", uid="w"))
    yield act("somebody with an extra", acting_as("bob", scopes="v"))
    yield act("somebody with another value", acting_as("bob", scopes="w"))
    yield act("somebody with another extra", acting_as("bob", other="v"))
    yield act("somebody else", acting_as("carl"))


def acting_within_limits() -> Iterator[Step]:
    """With an account that never acted before: servers remember the way that worked last."""

    def act(name: str, headers: Headers, path: str = PODS) -> Step:
        return Step(f"acts within limits as {name}", "GET", path, None, headers, token="$limited")

    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "limited"}}
    yield Step("an account with limits", "POST", ACCOUNTS, account)
    yield token_request("a token to act with, within limits", "limited", keeps="limited")
    within = [
        rule(["authentication.k8s.io"], ["users"], ["impersonate:user-info"], "bob"),
        rule(["authentication.k8s.io"], ["serviceaccounts"], ["impersonate:serviceaccount"], "default"),
        rule(["authentication.k8s.io"], ["nodes"], ["impersonate:arbitrary-node"], "n1"),
        rule([""], ["pods"], ["impersonate-on:user-info:list", "impersonate-on:serviceaccount:list"]),
        rule(["apps"], ["deployments"], ["impersonate-on:arbitrary-node:list"]),
    ]
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": "acc"}
    yield Step("a role to act within limits", "POST", f"{RBAC}/clusterroles", role("limited", within))
    yield Step("may act within limits", "POST", f"{RBAC}/clusterrolebindings", binding("limited", "limited", subject))
    yield act("somebody", acting_as("bob"))
    yield act("an account", acting_as("system:serviceaccount:acc:default"))
    yield act("another account", acting_as("system:serviceaccount:acc:other"))
    yield act("a node", acting_as("system:node:n1"), "/apis/apps/v1/namespaces/acc/deployments")
    yield act("somebody again", acting_as("bob"))
    yield act("somebody else", acting_as("carl"))
    yield act("a master", acting_as("bob", "system:masters"))
    yield act("the empty group", acting_as("bob", ""))
    yield act("somebody on a path", acting_as("bob"), "/foo")
    yield act("somebody who gets", acting_as("bob"), f"{PODS}/x")
    yield act("an odd extra", (*acting_as("bob"), ("Impersonate-Extra-A%20b", "v")))
    yield act("an extra", (*acting_as("bob"), ("Impersonate-Extra-A%2fb", "v")))
    yield act("many groups", acting_as("bob", "a", "b", "c", "d"))
