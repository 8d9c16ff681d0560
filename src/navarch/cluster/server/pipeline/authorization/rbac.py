"""RBAC rules, roles and bindings, aggregated ClusterRoles and the roles of a new cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from navarch.api.selectors import Labels
from navarch.api.strconv import go_quoted
from navarch.cluster.server.pipeline.authentication.users import service_account_name
from navarch.cluster.server.wire.request import Json, User
from navarch.errors import InvalidValueError


class RbacRule(msgspec.Struct, frozen=True):
    """A PolicyRule. `names` is empty where every name is meant."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: Mapping[str, Any]) -> Self:
        """The rule that JSON says."""
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(rule.get(field) or ()) for field in fields))

    def allows_resource(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Tells whether the rule covers a resource, regardless of object names.

        >>> RbacRule(("get",), ("apps",), ("*/scale",)).allows_resource("get", "apps", "deployments", "scale")
        True
        """
        return (
            ("*" in self.verbs or verb in self.verbs)
            and ("*" in self.groups or group in self.groups)
            and self._allows_kind(resource, subresource)
        )

    def _allows_kind(self, resource: str, subresource: str) -> bool:
        if "*" in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources

    def allows_path(self, verb: str, path: str) -> bool:
        """Tells whether the rule covers a non-resource path.

        >>> RbacRule(("get",), urls=("/healthz/*",)).allows_path("get", "/healthz/etcd")
        True
        """
        return ("*" in self.verbs or verb in self.verbs) and any(_url_covers(url, path) for url in self.urls)

    @property
    def entry_count(self) -> int:
        """Returns the number of verbs, groups, resources, names and paths."""
        return len(self.verbs) + len(self.groups) + len(self.resources) + len(self.names) + len(self.urls)

    @property
    def part_count(self) -> int:
        """Returns the number of `parts`: a small rule may have millions."""
        resources = len(self.groups) * len(self.resources) * max(1, len(self.names))
        return len(self.verbs) * (resources + len(self.urls))

    def parts(self) -> Iterator[Self]:
        """Yields rules of one verb, one resource and one name each, in Kubernetes' order."""
        kind = type(self)
        names: tuple[tuple[str, ...], ...] = tuple((name,) for name in self.names) or ((),)
        for group, resource, verb, name in product(self.groups, self.resources, self.verbs, names):
            yield kind((verb,), (group,), (resource,), name)
        for url, verb in product(self.urls, self.verbs):
            yield kind((verb,), urls=(url,))

    def to_json(self) -> Json:
        """As reviews show it; what is empty is left out, but not the verbs."""
        fields: Json = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {"verbs": list(self.verbs)} | {key: list(value) for key, value in fields.items() if value}


def _url_covers(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))


def aggregated_rules(cluster_roles: Mapping[str, Json]) -> dict[str, list[Any]]:
    """The rules of every role that has an aggregationRule, by name, once the controller would find nothing to do.

    Roles come in the order of the selectors, then of their names; a rule that is there already is not repeated.
    """
    members = {name: _members(name, role, cluster_roles) for name, role in cluster_roles.items()}
    sources = {name: found for name, found in members.items() if found is not None}
    rules: dict[str, list[Any]] = {name: [] for name in sources}
    for _ in range(len(sources) + 1):  # a chain of aggregates is at most that long
        before = rules
        rules = {name: _gathered(found, cluster_roles, before) for name, found in sources.items()}
        if rules == before:
            break
    return rules


def stale_aggregates(cluster_roles: Mapping[str, Json]) -> list[Json]:
    """The roles whose stored rules are not those they should have, as they should be stored."""
    return [
        {**cluster_roles[name], "rules": rules}
        for name, rules in aggregated_rules(cluster_roles).items()
        if (cluster_roles[name].get("rules") or []) != rules
    ]


def _members(name: str, role: Json, cluster_roles: Mapping[str, Json]) -> list[str] | None:
    """Returns the roles that a ClusterRole aggregates; None if it has its own rules."""
    aggregation = role.get("aggregationRule")
    if aggregation is None:
        return None
    try:
        labels = [Labels.from_wire(selector) for selector in aggregation.get("clusterRoleSelectors") or ()]
    except InvalidValueError:
        return None
    others = sorted(set(cluster_roles) - {name})
    return [
        other
        for selector in labels
        for other in others
        if selector.matches(cluster_roles[other]["metadata"].get("labels"))
    ]


def _gathered(members: list[str], cluster_roles: Mapping[str, Json], aggregates: Mapping[str, list[Any]]) -> list[Any]:
    gathered: list[Any] = []
    for member in members:
        for rule in aggregates.get(member, cluster_roles[member].get("rules") or []):
            if rule not in gathered:
                gathered.append(rule)
    return gathered


RBAC_GROUP: Final = "rbac.authorization.k8s.io"


class MissingRoleError(Exception):
    """A binding names a role that is not there."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind.lower()}.{RBAC_GROUP} {go_quoted(name)} not found")
        self.name = name


class Grant(msgspec.Struct, frozen=True):
    """A rule that somebody has, and the sentence that says why."""

    rule: RbacRule
    why: str


class Granted(msgspec.Struct):
    """The grants of a user's bindings, and the missing roles that they name."""

    grants: list[Grant] = msgspec.field(default_factory=list)
    missing: list[MissingRoleError] = msgspec.field(default_factory=list)


class RbacPolicy:
    """The roles and bindings. Every change must be told with `changed`; listeners hear of it afterwards."""

    def __init__(self, objects: Iterable[Json] = ()) -> None:
        self._objects: dict[str, dict[str, dict[str, Json]]] = {
            kind: {} for kind in ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
        }
        self._rules: dict[tuple[str, str, str], tuple[RbacRule, ...]] = {}
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

    def rules_of(self, reference: Json, namespace: str) -> tuple[RbacRule, ...]:
        """The rules of the role that a `roleRef` names; raises `MissingRoleError`."""
        kind, name = reference["kind"], reference["name"]
        key = (kind, "" if kind == "ClusterRole" else namespace, name)
        rules = self._rules.get(key)
        if rules is None:
            rules = self._rules[key] = tuple(RbacRule.of(rule) for rule in self._role_rules(*key))
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
        """Returns a user's grants in one namespace; "" for those of the cluster."""
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


_DATA: Final = Path(__file__).parent / "data" / "bootstrap_roles.json"


def bootstrap_roles() -> list[Json]:
    """Kubernetes' default ClusterRoles, Roles and their bindings; a new copy each time.

    The namespaces of some, `kube-system` and `kube-public`, must be there or be made as well.
    """
    found: dict[str, list[Json]] = msgspec.json.decode(_DATA.read_bytes())
    return [
        {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": each.pop("metadata"), **each}
        for kind, roles in found.items()
        for each in roles
    ]
