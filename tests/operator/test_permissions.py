"""What an operator has to be allowed to do, and whether it is."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pytest
import yaml

from navarch._base.clock import ManualClock
from navarch.api import Kind, Resource, Spec, Status
from navarch.cache import Cached
from navarch.client import Client, Request, Response
from navarch.errors import DefinitionError, Forbidden, MissingPermissionsError
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import ConfigMap, Node, Pod, Secret
from navarch.operator import Operator, Uses
from navarch.operator.permissions import (
    Needs,
    Permission,
    check_permissions,
    crd_permissions,
    missing_permissions,
    needed_by,
    permissions_of,
)
from navarch.operator.roles import roles_of, rules_of
from scripted import Scripted, ScriptedTransport, answer, refusal

GROUP = "rights.example.com"


class Cache(Resource[Spec, Status], group=GROUP, version="v1"): ...


class Note(Resource[Spec, None], group=GROUP, version="v1"): ...


class Zone(Resource[Spec, None], group=GROUP, version="v1", namespaced=False): ...


def verbs(permissions: Collection[Permission]) -> dict[str, str]:
    """What is allowed on each resource; those of namespaces are marked with theirs."""
    found: dict[str, list[str]] = {}
    for permission in permissions:
        place = f" in {permission.namespace}" if permission.namespace else ""
        found.setdefault(permission.name + place, []).append(permission.verb)
    return {name: " ".join(allowed) for name, allowed in found.items()}


# What is needed


def test_a_primary_kind_without_status_is_only_followed() -> None:
    """Nothing is written to it."""
    assert verbs(permissions_of([Needs(primary=Note)], events=False)) == {f"notes.{GROUP}": "list watch"}


def test_a_status_is_written_to_its_subresource_alone() -> None:
    """After a conflict the object is read live."""
    assert verbs(permissions_of([Needs(primary=Cache)], events=False)) == {
        f"caches.{GROUP}": "get list watch",
        f"caches.{GROUP}/status": "update",
    }


def test_a_cleanup_patches_the_finalizer() -> None:
    """On the object itself."""
    assert verbs(permissions_of([Needs(primary=Note, has_cleanup=True)], events=False)) == {
        f"notes.{GROUP}": "get list patch watch"
    }


def test_owned_kinds_are_applied_and_deleted_and_others_only_read() -> None:
    """Each with the least that its part in the declaration takes."""
    needs = Needs(primary=Note, owns=(Deployment,), watches=(ConfigMap,), reads=(Pod,))
    assert verbs(permissions_of([needs], events=False)) == {
        "configmaps": "get list watch",
        "pods": "get list watch",
        "deployments.apps": "create delete get list patch watch",
        f"notes.{GROUP}": "list watch",
        f"notes.{GROUP}/finalizers": "update",
    }


def test_all_controllers_together_need_each_permission_once() -> None:
    """A kind that is owned here and read there has the verbs of both."""
    one, other = Needs(primary=Note, owns=(Pod,)), Needs(primary=Zone, reads=(Pod, Note))
    found = permissions_of([one, other], events=False)
    assert len(found) == len(set(found))
    assert verbs(found) == {
        "pods": "create delete get list patch watch",
        f"notes.{GROUP}": "get list watch",
        f"notes.{GROUP}/finalizers": "update",
        f"zones.{GROUP}": "list watch",
    }


def test_namespaces_limit_what_is_needed_to_them() -> None:
    """Kinds that are in no namespace are needed in the whole cluster all the same."""
    needs = Needs(primary=Cache, reads=(Node, Cached(Pod, namespaces=("infra",))), namespaces=("a", "b"))
    assert verbs(permissions_of([needs])) == {
        "nodes": "get list watch",
        "events.events.k8s.io in a": "create patch",
        f"caches.{GROUP} in a": "get list watch",
        f"caches.{GROUP}/status in a": "update",
        "events.events.k8s.io in b": "create patch",
        f"caches.{GROUP} in b": "get list watch",
        f"caches.{GROUP}/status in b": "update",
        "pods in infra": "get list watch",
    }


@pytest.mark.parametrize(
    "needs", [Needs(primary=Note, namespaces=("team-*",)), Needs(primary=Note, namespaces=("!x",))]
)
def test_patterns_need_the_cluster_and_its_namespaces(needs: Needs) -> None:
    """Which namespaces match is known only when they are there."""
    assert verbs(permissions_of([needs], events=False)) == {"namespaces": "list watch", f"notes.{GROUP}": "list watch"}


def test_patterns_matter_only_for_what_is_in_namespaces() -> None:
    """A kind that is in none is watched as a whole."""
    needs = Needs(primary=Zone, namespaces=("team-*",))
    assert verbs(permissions_of([needs], events=False)) == {f"zones.{GROUP}": "list watch"}


def test_events_of_cluster_scoped_objects_go_to_the_default_namespace() -> None:
    """As those of Kubernetes itself do."""
    assert verbs(permissions_of([Needs(primary=Zone)]))["events.events.k8s.io in default"] == "create patch"


def test_what_an_operator_says_that_it_uses_stands_in_the_place_of_what_it_declares() -> None:
    """In its namespaces, kind by kind; what it does not speak of follows from its declarations."""
    uses = (Uses(Pod, ("list", "delete")), Uses(Cache, ("patch",), "status"), Uses(ConfigMap, ("get",)))
    operator = Operator("exact", namespaces=("a",), crds="verify", uses=uses)
    operator.controller(Cache, owns=(ConfigMap, Secret), reads=(Pod,))(lambda _, __: None)
    found = verbs(needed_by(operator, election_namespace="ops"))
    assert found.pop("leases.coordination.k8s.io in ops")
    assert found == {
        "customresourcedefinitions.apiextensions.k8s.io": "get",
        "configmaps in a": "get",
        "pods in a": "delete list",
        "secrets in a": "create delete get list patch watch",
        f"caches.{GROUP} in a": "get list watch",
        f"caches.{GROUP}/finalizers in a": "update",
        f"caches.{GROUP}/status in a": "patch",
        "events.events.k8s.io in a": "create patch",
    }


def test_uses_without_verbs_takes_away_what_a_declaration_needs() -> None:
    """Where a cluster does not ask for it."""
    operator = Operator("exact", election=False, crds="ignore", uses=(Uses(Cache, (), "finalizers"),))
    operator.controller(Cache, owns=(ConfigMap,))(lambda _, __: None)
    assert f"caches.{GROUP}/finalizers" not in verbs(needed_by(operator, election_namespace=None))


def test_right_in_the_whole_cluster_includes_each_namespace() -> None:
    """Nothing is asked for twice: events of a kind that is in no namespace go to `default`."""
    found = verbs(permissions_of([Needs(primary=Cache), Needs(primary=Zone)], election_namespace="ops"))
    assert found["events.events.k8s.io"] == "create patch"
    assert "events.events.k8s.io in default" not in found


def test_one_use_without_a_tuple_is_refused() -> None:
    """With the remedy."""
    with pytest.raises(DefinitionError, match=r"write uses=\(Uses\(\.\.\.\),\)"):
        Operator("exact", uses=Uses(Pod, ("get",)))  # type: ignore[arg-type]


def test_one_text_of_verbs_is_refused() -> None:
    """It would be taken letter by letter."""
    with pytest.raises(DefinitionError, match=r"write \('get',\)"):
        Uses(Pod, "get")  # type: ignore[arg-type]


def test_election_needs_leases_in_its_namespace_alone() -> None:
    """Nothing without an election."""
    assert verbs(permissions_of([], election_namespace="ops")) == {
        "leases.coordination.k8s.io in ops": "create get list update watch"
    }
    assert permissions_of([]) == ()


@pytest.mark.parametrize(("policy", "expected"), [("install", "create get patch"), ("verify", "get"), ("ignore", None)])
def test_crds_are_needed_as_the_policy_has_it(policy: Any, expected: str | None) -> None:
    """In the whole cluster."""
    name = "customresourcedefinitions.apiextensions.k8s.io"
    assert verbs(permissions_of([], crds=policy)).get(name) == expected
    assert permissions_of([], crds=policy) == crd_permissions(policy)


def test_kinds_without_a_class_are_as_good() -> None:
    """A declaration may name either."""
    kind = Kind("apps", "v1", "Deployment", plural="deployments")
    with_kind, with_class = Needs(primary=Note, owns=(kind,)), Needs(primary=Note, owns=(Deployment,))
    assert permissions_of([with_kind]) == permissions_of([with_class])


# Roles


def test_rules_are_few_and_grant_nothing_more() -> None:
    """Resources of one group with the same verbs share a rule; groups never do."""
    wanted = [
        Permission("get", "", "pods"),
        Permission("list", "", "pods"),
        Permission("list", "", "nodes"),
        Permission("get", "", "nodes"),
        Permission("get", "apps", "deployments"),
        Permission("list", "apps", "deployments"),
        Permission("update", "apps", "deployments", "status"),
    ]
    assert rules_of(wanted) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
        {"apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["update"]},
    ]


def test_roles_are_one_for_the_cluster_and_one_for_each_namespace() -> None:
    """With a binding each, if it is known to whom."""
    wanted = [
        Permission("get", "", "nodes"),
        Permission("get", "", "pods", "", "b"),
        Permission("get", "", "pods", "", "a"),
    ]
    found = roles_of("caches", wanted)
    assert [(role["kind"], role["metadata"].get("namespace")) for role in found] == [
        ("ClusterRole", None),
        ("Role", "a"),
        ("Role", "b"),
    ]
    bound = roles_of("caches", wanted, "system:serviceaccount:ops:robot")
    bindings = [manifest for manifest in bound if manifest["kind"].endswith("Binding")]
    assert [(binding["kind"], binding["roleRef"]["kind"]) for binding in bindings] == [
        ("ClusterRoleBinding", "ClusterRole"),
        ("RoleBinding", "Role"),
        ("RoleBinding", "Role"),
    ]
    assert bindings[0]["subjects"] == [{"kind": "ServiceAccount", "name": "robot", "namespace": "ops"}]


# Asking


class Reviewer(ScriptedTransport):
    """An API server that answers reviews alone."""

    def __init__(self, *allowed: Permission, knows_users: bool = True) -> None:
        super().__init__()
        self.allowed = set(allowed)
        self.knows_users = knows_users
        self.asked: list[Permission] = []
        self.at_once = self.most_at_once = 0
        self.failure: Scripted | None = None

    async def send(self, request: Request) -> Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await ManualClock().settle()  # the others may ask meanwhile
        self.at_once -= 1
        self.script.append(self.failure or self._answer(json.loads(request.body or b"{}")))
        return await super().send(request)

    def _answer(self, review: dict[str, Any]) -> Scripted:
        if review["kind"] == "SelfSubjectReview":
            user = {"username": "system:serviceaccount:ops:robot", "groups": []}
            return (
                answer({**review, "status": {"userInfo": user}}, 201) if self.knows_users else refusal(404, "NotFound")
            )
        asked = review["spec"]["resourceAttributes"]
        names = ("verb", "group", "resource", "subresource")
        verb, group, resource, subresource = (asked.get(name, "") for name in names)
        permission = Permission(verb, group, resource, subresource, asked.get("namespace"))
        self.asked.append(permission)
        return answer({**review, "status": {"allowed": permission in self.allowed}}, 201)


GET_PODS = Permission("get", "", "pods", "", "shop")
LIST_PODS = Permission("list", "", "pods", "", "shop")
STATUS = Permission("update", GROUP, "caches", "status")


async def test_what_is_missing_is_told_in_order_and_asked_once() -> None:
    """Exactly what was asked, with its group, subresource and namespace."""
    server = Reviewer(GET_PODS)
    assert await missing_permissions(Client(server), [STATUS, GET_PODS, LIST_PODS, STATUS]) == [STATUS, LIST_PODS]
    assert sorted(server.asked, key=Permission.order) == [STATUS, GET_PODS, LIST_PODS]


async def test_questions_are_asked_a_few_at_a_time() -> None:
    """Neither one after the other nor all at once."""
    server = Reviewer()
    wanted = [Permission("get", "", "pods", "", f"n{number}") for number in range(100)]
    assert await missing_permissions(Client(server), wanted) == wanted
    assert server.most_at_once == 16


async def test_an_answer_that_cannot_be_had_is_an_error_of_its_own() -> None:
    """Not a group of them, and not a missing permission."""
    server = Reviewer()
    server.failure = refusal(403, "Forbidden", "you may not even ask")
    with pytest.raises(Forbidden, match="you may not even ask"):
        await missing_permissions(Client(server), [STATUS, GET_PODS])


async def test_server_that_does_not_answer_is_asked_one_question() -> None:
    """Each would be tried again and again, and every attempt is a line of the log."""
    server = Reviewer()
    server.failure = refusal(403, "Forbidden", "you may not even ask")
    with pytest.raises(Forbidden):
        await missing_permissions(Client(server), [Permission("get", "", "pods", "", f"n{n}") for n in range(20)])
    assert len(server.requests) == 1


async def test_check_is_content_if_nothing_is_missing() -> None:
    """It returns."""
    await check_permissions(Client(Reviewer(STATUS, GET_PODS)), [STATUS, GET_PODS])


async def test_check_reports_everything_at_once() -> None:
    """Who may not do what and where, and what would grant it."""
    client = Client(Reviewer()).using(manager="caches")
    with pytest.raises(MissingPermissionsError) as caught:
        await check_permissions(client, [LIST_PODS, GET_PODS, STATUS])
    report, _, manifests = str(caught.value).partition("apply -f` it:\n\n")
    assert report.splitlines()[:-2] == [
        "expected system:serviceaccount:ops:robot to be allowed all that it declares, but it may not:",
        "",
        "  in the whole cluster",
        "    caches.rights.example.com/status  update",
        "",
        "  in namespace shop",
        "    pods  get, list",
    ]
    expected = roles_of("caches-missing", [STATUS, GET_PODS, LIST_PODS], "system:serviceaccount:ops:robot")
    assert list(yaml.safe_load_all(manifests)) == expected


async def test_check_does_without_knowing_who_we_are() -> None:
    """Older servers do not tell; then there are no bindings."""
    with pytest.raises(MissingPermissionsError, match="expected the operator to be allowed") as caught:
        await check_permissions(Client(Reviewer(knows_users=False)), [STATUS])
    assert "Binding" not in str(caught.value)
