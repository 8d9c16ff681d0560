"""RBAC beyond the matrix: what counts right after a change, and what must hold of any roles."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from cluster.access.wording import binding, person, role
from navarch.cluster.server.pipeline.authorization.authorizer import (
    AuthorizationDecision,
    RbacAuthorizer,
    forbidden_error,
)
from navarch.cluster.server.pipeline.authorization.escalation import lacking_parts
from navarch.cluster.server.pipeline.authorization.rbac import RbacRule, bootstrap_roles, stale_aggregates
from navarch.cluster.server.wire.request import Json, RequestInfo, User

ANN = User("ann")
GET_PODS = RequestInfo("get", "/", "", "v1", "default", "pods", "", "a")
PODS: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}


def test_a_new_binding_counts_at_once() -> None:
    """A cached decision does not outlive a change of a role or a binding."""
    reader, bound = role("reader", [PODS]), binding("reader", "reader", person("ann"))
    authorizer = RbacAuthorizer([reader])
    assert not authorizer.allows(ANN, GET_PODS).allowed
    authorizer.changed("ClusterRoleBinding", None, bound)
    assert authorizer.allows(ANN, GET_PODS) == AuthorizationDecision(
        True, 'RBAC: allowed by ClusterRoleBinding "reader" of ClusterRole "reader" to User "ann"'
    )
    authorizer.changed("ClusterRole", reader, role("reader", []))
    assert authorizer.allows(ANN, GET_PODS) == AuthorizationDecision(False)
    authorizer.changed("ClusterRole", role("reader", []), None)
    assert authorizer.allows(ANN, GET_PODS) == AuthorizationDecision(
        False, 'RBAC: clusterrole.rbac.authorization.k8s.io "reader" not found'
    )
    authorizer.changed("ClusterRoleBinding", bound, None)
    assert authorizer.allows(ANN, GET_PODS) == AuthorizationDecision(False)


def test_a_binding_of_a_namespace_counts_in_that_namespace_alone() -> None:
    """The same role, bound in one namespace, gives nothing in another and nothing cluster-wide."""
    bound = binding("reader", "reader", person("ann"), "RoleBinding")
    bound["metadata"]["namespace"] = "default"
    authorizer = RbacAuthorizer([role("reader", [PODS]), bound])
    elsewhere = RequestInfo("get", "/", "", "v1", "other", "pods", "", "a")
    assert authorizer.allows(ANN, GET_PODS).reason == (
        'RBAC: allowed by RoleBinding "reader/default" of ClusterRole "reader" to User "ann"'
    )
    assert not authorizer.allows(ANN, elsewhere).allowed
    assert not authorizer.allows(ANN, RequestInfo("list", "/", "", "v1", "", "pods")).allowed


def test_a_service_account_of_the_bindings_namespace_need_not_say_so() -> None:
    """A subject without a namespace means the binding's own; cluster-wide it means nobody."""
    account = {"kind": "ServiceAccount", "name": "robot"}
    bound = binding("reader", "reader", account, "RoleBinding")
    bound["metadata"]["namespace"] = "default"
    authorizer = RbacAuthorizer([role("reader", [PODS]), bound, binding("all", "reader", account)])
    robot = User("system:serviceaccount:default:robot")
    assert authorizer.allows(robot, GET_PODS).reason.endswith('to ServiceAccount "robot/default"')
    assert not authorizer.allows(robot, RequestInfo("get", "/", "", "v1", "", "pods", "", "a")).allowed


def test_many_paths_and_users_do_not_fill_the_memory() -> None:
    """What is remembered is bounded, and forgetting changes no answer."""
    authorizer = RbacAuthorizer([role("reader", [PODS]), binding("reader", "reader", person("ann"))])
    for number in range(10_100):
        assert not authorizer.allows(ANN, RequestInfo("get", f"/{number}")).allowed
        assert not authorizer.allows(ANN, RequestInfo("get", "/", "", "v1", "", f"things{number}")).allowed
        assert not authorizer.allows(User(f"user-{number}"), GET_PODS).allowed
    assert authorizer.allows(ANN, GET_PODS).allowed
    assert len(authorizer._of_users) <= 10_001
    assert len(authorizer._of_users["ann", (), ""]._resources) <= 10_000


def test_a_refusal_escapes_what_a_browser_could_take_for_html() -> None:
    """A 403 message escapes HTML, as the real server's does."""
    refusal = forbidden_error(User("<b>"), RequestInfo("get", "/a&b"))
    assert refusal.message == 'forbidden: User "&lt;b&gt;" cannot get path "/a&amp;b"'
    assert refusal.details == {}


def test_why_not_is_the_sentence_of_the_refusal() -> None:
    """`why_not` is the sentence of the 403, and None for allowed requests."""
    authorizer = RbacAuthorizer([role("reader", [PODS]), binding("reader", "reader", person("ann"))])
    assert authorizer.why_not(ANN, GET_PODS) is None
    sentence = authorizer.why_not(User("bob"), GET_PODS)
    assert sentence == 'User "bob" cannot get resource "pods" in API group "" in the namespace "default"'


def test_the_default_roles_are_aggregated_as_the_controller_left_them() -> None:
    """admin, edit and view, as the real controller filled them in, are what our aggregation computes."""
    roles = {each["metadata"]["name"]: each for each in bootstrap_roles() if each["kind"] == "ClusterRole"}
    assert stale_aggregates(roles) == []
    emptied = {name: {**each, "rules": []} if "aggregationRule" in each else each for name, each in roles.items()}
    stale = {each["metadata"]["name"]: each for each in stale_aggregates(emptied)}
    assert stale == {name: roles[name] for name in ("admin", "edit", "view")}


def test_a_role_that_gathers_has_the_rules_of_others_even_before_they_are_stored() -> None:
    """An aggregate's stored rules do not count; those of the roles it selects do, and not twice."""
    part = role("part", [PODS, PODS])
    part["metadata"]["labels"] = {"a": "b"}
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}, {"matchLabels": {"a": "b"}}]}
    whole = role("whole", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}], aggregationRule=selector)
    authorizer = RbacAuthorizer([part, whole, binding("whole", "whole", person("ann"))])
    assert authorizer.rules_for(ANN, "").rules == [RbacRule(("get",), ("",), ("pods",))]
    assert stale_aggregates(authorizer.policy.cluster_roles()) == [{**whole, "rules": [PODS]}]


def test_roles_that_gather_each_other_end() -> None:
    """A circle of aggregates has the rules that come in from outside."""
    roles = {}
    for name in ("a", "b"):
        selector = {"clusterRoleSelectors": [{"matchLabels": {"in": "circle"}}]}
        roles[name] = role(name, [], aggregationRule=selector)
        roles[name]["metadata"]["labels"] = {"in": "circle"}
    roles["c"] = role("c", [PODS])
    roles["c"]["metadata"]["labels"] = {"in": "circle"}
    assert {each["metadata"]["name"]: each["rules"] for each in stale_aggregates(roles)} == {"a": [PODS], "b": [PODS]}


def test_bootstrap_roles_are_a_new_copy_each_time() -> None:
    """A change of one copy does not affect another."""
    first = bootstrap_roles()
    first[0]["metadata"]["name"] = "changed"
    assert bootstrap_roles()[0]["metadata"]["name"] != "changed"
    assert all(list(each)[:3] == ["apiVersion", "kind", "metadata"] for each in bootstrap_roles())


_words = st.sampled_from(["*", "get", "list", "a", "b", "a/s", "b/s", "*/s", ""])
_some = st.lists(_words, min_size=1, max_size=3, unique=True)
_rules = st.builds(
    lambda groups, resources, verbs, names: RbacRule(tuple(verbs), tuple(groups), tuple(resources), tuple(names)),
    _some,
    _some,
    _some,
    st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True),
)
_requests = st.tuples(
    *[st.sampled_from(["get", "list", "a", "b", "c"])] * 2, st.sampled_from("abc"), st.sampled_from(["", "s"])
)


@given(_rules, _rules, _requests, st.sampled_from(["", "x", "y"]))
def test_whoever_has_a_rule_that_covers_another_may_all_that_it_allows(
    owned: RbacRule, other: RbacRule, asked: tuple[Any, ...], name: str
) -> None:
    """The check against escalation and the authorizer agree: what is covered part by part is allowed request by request."""

    def allows(rule: RbacRule) -> bool:
        return rule.allows_resource(*asked) and (not rule.names or name in rule.names)

    if not [*lacking_parts([other], [owned])] and allows(other):
        assert allows(owned)


@given(_rules)
def test_a_rule_covers_itself(rule: RbacRule) -> None:
    """A user can grant exactly the rule that the user has."""
    assert not [*lacking_parts([rule], [rule])]


@given(st.lists(_rules, max_size=4), _requests, st.sampled_from(["", "x", "y"]))
def test_the_authorizer_allows_what_some_rule_allows(rules: list[RbacRule], asked: tuple[Any, ...], name: str) -> None:
    """Compiled and remembered answers are those of the rules, asked once or twice."""
    reader = role("reader", [rule.to_json() for rule in rules])
    authorizer = RbacAuthorizer([reader, binding("reader", "reader", person("ann"))])
    verb, group, resource, subresource = asked
    info = RequestInfo(verb, "/", group, "v1", "", resource, subresource, name)
    expected = any(rule.allows_resource(*asked) and (not rule.names or name in rule.names) for rule in rules)
    assert authorizer.allows(ANN, info).allowed == expected
    assert authorizer.allows(ANN, info).allowed == expected
