"""Declared and recorded permissions become one list with sources, and are compared with what roles grant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from navarch import Context, Operator
from navarch.api import Resource, Spec, Status
from navarch.errors import ConfigError
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import Pod, Secret
from navarch.operator import Uses, roles_of
from navarch.operator.roles import Permission
from navarch.project.least_privilege import missing_permissions, unused_permissions
from navarch.project.permissions import count_verbs, granted_permissions, granted_to, optional_permissions, role_text
from navarch.project.recorded_calls import RECORDED_FILE, RecordedCall, Recording, recording_of

OWN = "cache-system"
ACCOUNT = f"system:serviceaccount:{OWN}:cache"
LINE = "src/cache/controllers/memcached.py"


class Larder(Resource[Spec, Status], group="cache.example.com", version="v1"): ...


def declared(*uses: Uses, namespaces: tuple[str, ...] = ()) -> Operator:
    """An operator that owns Deployments."""
    operator = Operator("cache", crds="verify", namespaces=namespaces, uses=uses)

    @operator.controller(Larder, owns=(Deployment,))
    async def reconcile(larder: Larder, ctx: Context) -> None: ...

    return operator


def call(verb: str, resource: str, group: str = "", **fields: Any) -> RecordedCall:
    """A call of the user's code in some namespace, unless `fields` have another."""
    given = {"where": "namespace", "line": f"{LINE}:9", "by": "reconcile", "test": "tests/test_a.py::test_a", **fields}
    return RecordedCall(verb=verb, resource=resource, group=group, **given)


APPLIED = (
    *(call(verb, "deployments", "apps") for verb in ("create", "patch")),
    *(call(verb, "deployments", "apps", line="", where="cluster") for verb in ("list", "watch")),
    *(call(verb, "larders", "cache.example.com", line="", where="cluster") for verb in ("list", "watch")),
    call("update", "larders", "cache.example.com", subresource="status", line=""),
)


def granted(operator: Operator, *calls: RecordedCall) -> set[Permission]:
    """What roles for it would grant."""
    found = granted_permissions(operator, Recording(calls=calls), own_namespace=OWN)
    return {each.permission for each in found}


def roles(operator: Operator, *calls: RecordedCall) -> list[dict[str, Any]]:
    """The manifests of roles and bindings."""
    found = granted_permissions(operator, Recording(calls=calls), own_namespace=OWN)
    return roles_of("cache-manager-role", [each.permission for each in found], ACCOUNT)


# Merging


def test_recorded_call_that_is_not_declared_is_granted() -> None:
    """In the whole cluster for an operator of all namespaces, else in each of its namespaces."""
    deletion = call("delete", "pods")
    assert Permission("delete", "", "pods") in granted(declared(), deletion)
    limited = granted(declared(namespaces=("a", "b")), deletion)
    assert {each.namespace for each in limited if each.resource == "pods"} == {"a", "b"}


def test_call_in_the_operators_own_namespace_is_granted_there_alone() -> None:
    """A Secret beside the operator does not open the Secrets of the cluster."""
    found = granted(declared(), call("get", "secrets", where="own"))
    assert [each.namespace for each in found if each.resource == "secrets"] == [OWN]


def test_call_on_the_whole_cluster_is_granted_there_although_namespaces_are_declared() -> None:
    """A list of all namespaces needs a ClusterRole."""
    found = granted(declared(namespaces=("a",)), call("list", "pods", where="cluster"))
    assert [each.namespace for each in found if each.resource == "pods"] == [None]


def test_declared_permission_in_one_namespace_does_not_cover_a_call_of_the_user_in_others() -> None:
    """The Lease is in the operator's namespace; a user who reads Leases elsewhere needs more."""
    found = granted(declared(), call("get", "leases", "coordination.k8s.io"))
    assert Permission("get", "coordination.k8s.io", "leases") in found


def test_declared_permission_covers_a_call_of_the_runtime_in_any_namespace() -> None:
    """Tests may have the Lease in another namespace than the deployed operator."""
    renewal = call("update", "leases", "coordination.k8s.io", line="", by="election")
    assert granted(declared(), renewal) == granted(declared())


def test_namespaced_operator_has_its_permissions_in_its_own_namespace() -> None:
    """Only CRDs, which are in no namespace, are read in the whole cluster."""
    found = granted(declared(namespaces=(OWN,)), call("delete", "pods"))
    assert {each.resource for each in found if each.namespace is None} == {"customresourcedefinitions"}
    assert Permission("delete", "", "pods", "", OWN) in found


# Sources


def test_role_states_the_source_of_each_rule() -> None:
    """The comment names the declaration, the function with its file, and the test; the YAML stays the same object."""
    operator = declared()
    found = granted_permissions(operator, Recording(calls=(*APPLIED, call("delete", "pods"))), own_namespace=OWN)
    manifest = roles_of("cache", [each.permission for each in found])[0]
    text = role_text(manifest, found)
    assert f"# pods\n#   delete: reconcile in {LINE} (tests/test_a.py::test_a)\n- apiGroups" in text
    assert f"#   create, patch: controller larder owns it; reconcile in {LINE} (tests/test_a.py::test_a)\n" in text
    assert "#   get: controller larder reconciles it: after a conflict" in text
    assert yaml.safe_load(text) == manifest


def test_uses_states_its_reason_in_the_role() -> None:
    """`why` is the comment of the rule."""
    operator = declared(Uses(Pod, ("delete",), why="only when a node is lost"))
    found = granted_permissions(operator, None, own_namespace=OWN)
    text = role_text(roles_of("cache", [each.permission for each in found])[0], found)
    assert "#   delete: Uses(Pod, …): only when a node is lost\n" in text


# The file


def test_recording_is_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    """Sorted, with one test for each place; a second write changes nothing."""
    later = [call(each.verb, each.resource, each.group, test="tests/test_b.py::test_b") for each in APPLIED[:2]]
    ran = {"tests/test_a.py::test_a", "tests/test_b.py::test_b"}
    one = recording_of([*APPLIED, *later], None, ran=ran, left_out=())
    other = recording_of([*later, *reversed(APPLIED)], None, ran=ran, left_out=())
    assert one.text() == other.text()
    assert {each.test for each in one.calls} == {"tests/test_a.py::test_a"}
    assert one.write(tmp_path)
    assert not other.write(tmp_path)
    assert Recording.read(tmp_path) == one


def test_recording_keeps_its_test_while_that_test_runs() -> None:
    """Which of two tests is seen first may depend on time; the file does not."""
    a, b = "tests/test_a.py::test_a", "tests/test_b.py::test_b"
    before = Recording(calls=(call("get", "pods", test=b),))
    again = recording_of([call("get", "pods", test=a)], before, ran={a, b}, left_out=())
    assert [each.test for each in again.calls] == [b]
    gone = recording_of([call("get", "pods", test=a)], before, ran={a}, left_out=())
    assert [each.test for each in gone.calls] == [a]


def test_recording_of_some_tests_keeps_the_calls_of_the_others() -> None:
    """A run of one test does not take the permissions of the others away; a removed test does."""
    before = Recording(calls=(call("get", "pods", test="other"), call("list", "pods", test="removed")))
    found = recording_of([call("watch", "pods", test="this")], before, ran={"this"}, left_out={"other"})
    assert {each.verb for each in found.calls} == {"get", "watch"}


@pytest.mark.parametrize("text", ["[]", "{", '{"version": 2, "calls": []}', '{"version": 1, "calls": [{"verb": 1}]}'])
def test_broken_recording_is_refused_with_the_remedy(tmp_path: Path, text: str) -> None:
    """The error names the file and the command."""
    (tmp_path / RECORDED_FILE).parent.mkdir(parents=True)
    (tmp_path / RECORDED_FILE).write_text(text)
    with pytest.raises(ConfigError, match=r"config/rbac/recorded\.json: expected .* pytest --record-permissions"):
        Recording.read(tmp_path)


# What roles grant


def test_only_roles_that_are_bound_to_the_account_count() -> None:
    """A viewer role is for people; a ClusterRole counts in the namespace of its RoleBinding."""
    viewer = {
        "kind": "ClusterRole",
        "metadata": {"name": "viewer"},
        "rules": [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}],
    }
    subject = {"kind": "ServiceAccount", "name": "cache", "namespace": OWN}
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": "viewer", "namespace": "a"},
        "roleRef": {"kind": "ClusterRole", "name": "viewer"},
        "subjects": [subject],
    }
    assert granted_to([viewer], ACCOUNT) == {}
    assert granted_to([viewer, binding], "system:serviceaccount:other:cache") == {}
    assert granted_to([viewer, binding], ACCOUNT) == {Permission("get", "", "pods", "log", "a"): "ClusterRole viewer"}


def test_roles_are_read_back_as_they_were_granted() -> None:
    """Nothing is lost and nothing comes on top."""
    operator = declared(namespaces=("a",))
    manifests = roles(operator, *APPLIED)
    assert set(granted_to(manifests, ACCOUNT)) == granted(operator, *APPLIED)


def test_verbs_are_counted_once_for_each_resource() -> None:
    """Two roles with the same verb on the same resource count once."""
    rule = {"apiGroups": ["", "apps"], "resources": ["a", "b"], "verbs": ["get", "list"]}
    manifests = [{"kind": kind, "metadata": {"name": "x"}, "rules": [rule]} for kind in ("Role", "ClusterRole")]
    assert count_verbs([*manifests, {"kind": "Deployment"}]) == 8


# Least privilege


def test_used_verb_that_is_not_granted_is_named_with_test_and_line() -> None:
    """And with the command that grants it."""
    operator, deletion = declared(), call("delete", "pods")
    recording = Recording(calls=(*APPLIED, deletion))
    before = granted_to(roles(operator, *APPLIED), ACCOUNT)
    (message,) = missing_permissions(operator, recording, before, own_namespace=OWN)
    assert message == (
        "delete pods in the whole cluster is not granted; used by src/cache/controllers/memcached.py:9 in "
        "tests/test_a.py::test_a; run: navarch generate rbac"
    )
    after = granted_to(roles(operator, *APPLIED, deletion), ACCOUNT)
    assert missing_permissions(operator, recording, after, own_namespace=OWN) == []


def test_declared_verb_that_is_not_granted_is_named_with_its_declaration() -> None:
    """Roles that are older than the code are found without a recording."""
    before = granted_to(roles(declared()), ACCOUNT)
    operator = declared(Uses(Pod, ("delete",)))
    (message,) = missing_permissions(operator, Recording(), before, own_namespace=OWN)
    assert message == "delete pods in the whole cluster is not granted; Uses(Pod, …); run: navarch generate rbac"


def unused(operator: Operator, *more: dict[str, Any]) -> list[str]:
    """The complaints about the roles of an operator whose tests recorded `APPLIED`."""
    manifests = [*roles(operator, *APPLIED), *more]
    used = [each.permission for each in APPLIED]
    return unused_permissions(operator, used, granted_to(manifests, ACCOUNT), own_namespace=OWN)


def test_granted_verb_that_no_test_uses_is_named_with_the_remedy() -> None:
    """The remedy, written down, is enough; what the runtime needs only sometimes needs none."""
    (message,) = unused(declared())
    assert message.startswith(
        "delete deployments.apps in the whole cluster is granted by ClusterRole cache-manager-role (controller larder owns "
        "it), but no test uses it; test it, or drop it: "
        'operator.uses += (Uses(Deployment, ("create", "get", "list", "patch", "watch")),), or explain it: '
    )
    kept = Uses(Deployment, ("create", "get", "list", "patch", "watch"))
    assert unused(declared(kept)) == []
    assert unused(declared(kept, Uses(Deployment, ("delete",), why="a shop is closed"))) == []
    assert len(unused(declared(kept, Uses(Deployment, ("delete",))))) == 1


def test_granted_verb_that_nothing_declares_is_named() -> None:
    """An edited role, or one that is older than the code; also on kinds of which the runtime needs other verbs."""
    rules = [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["delete"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["patch"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    ]
    role = {"kind": "ClusterRole", "metadata": {"name": "more"}, "rules": rules}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "more"},
        "roleRef": {"kind": "ClusterRole", "name": "more"},
        "subjects": [{"kind": "ServiceAccount", "name": "cache", "namespace": OWN}],
    }
    operator = declared(Uses(Deployment, ("create", "get", "list", "patch", "watch")))
    found = [message.partition(" in the whole")[0] for message in unused(operator, role, binding)]
    assert found == [
        "get secrets",
        "* *.*",
        "patch customresourcedefinitions.apiextensions.k8s.io",
        "delete leases.coordination.k8s.io",
    ]


def test_recorded_call_of_an_optional_role_is_granted_by_nothing_else() -> None:
    """What administrators grant namespace by namespace is not granted in the whole cluster because a test does it."""
    operator = Operator("larder", uses=(Uses(Secret, ("get",), role="secrets"),))
    seen = (call("get", "secrets"), call("list", "secrets"))
    assert {str(each) for each in granted(operator, *seen) if each.resource == "secrets"} == {
        "list secrets in the whole cluster"
    }
    found = optional_permissions(operator, Recording(calls=seen), own_namespace=OWN)
    assert {role: [str(each.permission) for each in each_role] for role, each_role in found.items()} == {
        "secrets": ["get secrets in the whole cluster"]
    }
