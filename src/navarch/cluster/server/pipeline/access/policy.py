"""All roles and bindings right now, and what they give to whom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from navarch.cluster.server.pipeline.access.aggregation import aggregated_rules
from navarch.cluster.server.pipeline.access.rules import Rule
from navarch.cluster.server.pipeline.access.users import service_account_name
from navarch.cluster.server.wire.request import Json, User
from navarch.schema.values.violations import go_quoted

__all__ = ["RBAC_GROUP", "Grant", "Granted", "MissingRoleError", "Policy"]

RBAC_GROUP: Final = "rbac.authorization.k8s.io"


class MissingRoleError(Exception):
    """A binding names a role that is not there."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind.lower()}.{RBAC_GROUP} {go_quoted(name)} not found")
        self.name = name


class Grant(msgspec.Struct, frozen=True):
    """A rule that somebody has, and the sentence that says why."""

    rule: Rule
    why: str


class Granted(msgspec.Struct):
    """What bindings give somebody, and the roles that they name but that are not there."""

    grants: list[Grant] = msgspec.field(default_factory=list)
    missing: list[MissingRoleError] = msgspec.field(default_factory=list)


class Policy:
    """The roles and bindings. Every change must be told with `changed`; listeners hear of it afterwards."""

    def __init__(self, objects: Iterable[Json] = ()) -> None:
        self._objects: dict[str, dict[str, dict[str, Json]]] = {
            kind: {} for kind in ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
        }
        self._rules: dict[tuple[str, str, str], tuple[Rule, ...]] = {}
        self._aggregated: dict[str, list[Any]] | None = None
        self._listeners: list[Callable[[], None]] = []
        for each in objects:
            self.changed(each["kind"], None, each)

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls it after every change."""
        self._listeners.append(listener)

    def changed(self, kind: str, old: Json | None, new: Json | None) -> None:
        """An object was written (`old` is None if it is new) or deleted (`new` is None)."""
        metadata = (new or old or {})["metadata"]
        of_namespace = self._objects[kind].setdefault(metadata.get("namespace", ""), {})
        if new is None:
            of_namespace.pop(metadata["name"], None)
        else:
            of_namespace[metadata["name"]] = new
        self._rules.clear()
        self._aggregated = None
        for listener in self._listeners:
            listener()

    def cluster_roles(self) -> dict[str, Json]:
        """All ClusterRoles by name; not a copy."""
        return self._objects["ClusterRole"].setdefault("", {})

    def rules_of(self, reference: Json, namespace: str) -> tuple[Rule, ...]:
        """The rules of the role that a `roleRef` names; raises `MissingRoleError`."""
        kind, name = reference["kind"], reference["name"]
        key = (kind, "" if kind == "ClusterRole" else namespace, name)
        rules = self._rules.get(key)
        if rules is None:
            rules = self._rules[key] = tuple(Rule.of(rule) for rule in self._role_rules(*key))
        return rules

    def _role_rules(self, kind: str, namespace: str, name: str) -> list[Any]:
        role = self._objects.get(kind, {}).get(namespace, {}).get(name)
        if role is None:
            raise MissingRoleError(kind, name)
        if kind == "ClusterRole" and role.get("aggregationRule") is not None:
            if self._aggregated is None:
                self._aggregated = aggregated_rules(self.cluster_roles())
            return self._aggregated.get(name, role.get("rules") or [])
        return role.get("rules") or []

    def granted(self, user: User, namespace: str) -> Granted:
        """What the bindings of one namespace give a user; "" for those of the whole cluster."""
        granted = Granted()
        for binding, why in self._bindings_of(user, namespace):
            try:
                rules = self.rules_of(binding["roleRef"], namespace)
            except MissingRoleError as error:
                granted.missing.append(error)
            else:
                granted.grants += [Grant(rule, why) for rule in rules]
        return granted

    def _bindings_of(self, user: User, namespace: str) -> Iterator[tuple[Json, str]]:
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        bindings = self._objects[kind].get(namespace, {})
        for name in sorted(bindings):
            for subject in bindings[name].get("subjects") or ():
                if _is_subject(user, subject, namespace):
                    yield bindings[name], _why(kind, bindings[name], subject, namespace)
                    break


def _is_subject(user: User, subject: Json, namespace: str) -> bool:
    kind = subject["kind"]
    if kind == "User":
        return bool(user.name == subject["name"])
    if kind == "Group":
        return subject["name"] in user.groups
    of_namespace = subject.get("namespace") or namespace
    return (
        kind == "ServiceAccount"
        and bool(of_namespace)
        and user.name == service_account_name(of_namespace, subject["name"])
    )


def _why(kind: str, binding: Json, subject: Json, namespace: str) -> str:
    name, role, who = binding["metadata"]["name"], binding["roleRef"], subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    return (
        f"RBAC: allowed by {kind} {go_quoted(f'{name}/{namespace}' if namespace else name)} "
        f"of {role['kind']} {go_quoted(role['name'])} to {subject['kind']} {go_quoted(who)}"
    )
