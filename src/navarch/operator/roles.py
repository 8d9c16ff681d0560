"""RBAC: permissions as rules, roles and bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from navarch.client.target import Readable
from navarch.errors import (
    DefinitionError,
)

__all__ = ["Permission", "report", "roles_of", "rules_of"]

_API_VERSION = "rbac.authorization.k8s.io/v1"
_API_GROUP = "rbac.authorization.k8s.io"
_SERVICE_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource: in a namespace, or in the whole cluster (None).

    >>> str(Permission("patch", "apps", "deployments", "status", "shop"))
    'patch deployments.apps/status in namespace shop'
    """

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.name} {_place(self.namespace)}"

    @property
    def name(self) -> str:
        """The resource as messages name it: `deployments.apps/status`."""
        below = f"/{self.subresource}" if self.subresource else ""
        return f"{self.resource}.{self.group}{below}" if self.group else f"{self.resource}{below}"

    @property
    def rbac_resource(self) -> str:
        """The resource as a rule names it: `deployments/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def order(self) -> tuple[str, str, str, str, str]:
        """Returns the sort key: the whole cluster first, then namespaces, resources and verbs by name."""
        return self.namespace or "", self.group, self.resource, self.subresource, self.verb


def rules_of(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """The rules of one role, as few as there can be without granting more; the namespace is the role's own matter.

    >>> rules_of([Permission("list", "apps", "deployments"), Permission("get", "apps", "deployments")])
    [{'apiGroups': ['apps'], 'resources': ['deployments'], 'verbs': ['get', 'list']}]
    """
    verbs: dict[tuple[str, str], set[str]] = {}
    for permission in permissions:
        verbs.setdefault((permission.group, permission.rbac_resource), set()).add(permission.verb)
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in sorted(verbs.items()):
        alike.setdefault((group, tuple(sorted(allowed))), []).append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(allowed)}
        for (group, allowed), resources in alike.items()
    ]


def roles_of(name: str, permissions: Iterable[Permission], subject: str = "") -> list[dict[str, Any]]:
    """Returns a ClusterRole and a Role for each namespace as manifests; with a subject, also their bindings.

    The subject is a user as the API server names it, such as `system:serviceaccount:shop:operator`.
    """
    return [
        manifest
        for namespace, granted in _by_namespace(permissions)
        for manifest in _role(name, namespace, granted, subject)
    ]


def _by_namespace(permissions: Iterable[Permission]) -> Iterator[tuple[str | None, list[Permission]]]:
    found: dict[str | None, list[Permission]] = {}
    for permission in sorted(permissions, key=Permission.order):
        found.setdefault(permission.namespace, []).append(permission)
    yield from found.items()


def _role(name: str, namespace: str | None, granted: list[Permission], subject: str) -> Iterator[dict[str, Any]]:
    kind = "ClusterRole" if namespace is None else "Role"
    metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    yield {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "rules": rules_of(granted)}
    if subject:
        yield {
            "apiVersion": _API_VERSION,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _API_GROUP, "kind": kind, "name": name},
            "subjects": [_subject(subject)],
        }


def _subject(user: str) -> dict[str, str]:
    if user.startswith(_SERVICE_ACCOUNT):
        namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"apiGroup": _API_GROUP, "kind": "User", "name": user}


def report(
    who: str, missing: Iterable[Permission], manager: str, *, purpose: str = "all that it declares", note: str = ""
) -> str:
    """Returns the missing permissions as a table, with the manifests that grant them; `who` may be empty.

    `purpose` is what the permissions are for; `note` is a further line below the table.
    """
    missing = list(missing)
    lines = [f"expected {who or 'the operator'} to be allowed {purpose}, but it may not:"]
    for namespace, denied in _by_namespace(missing):
        lines += ["", f"  {_place(namespace)}", *_table(denied)]
    lines += ["", note] if note else []
    remedy = "save these lines as a file and `kubectl apply -f` it"
    lines += ["", f"To grant it, {remedy}:" if who else f"To grant it, {remedy}, then bind it:", ""]
    return "\n".join(lines) + "\n" + _yaml(roles_of(f"{manager.replace('/', '-')}-missing", missing, who))


def _table(denied: list[Permission]) -> list[str]:
    verbs: dict[str, list[str]] = {}
    for permission in denied:
        verbs.setdefault(permission.name, []).append(permission.verb)
    width = max(map(len, verbs))
    return [f"    {name:<{width}}  {', '.join(missing)}" for name, missing in verbs.items()]


def _yaml(manifests: list[dict[str, Any]]) -> str:
    import yaml  # noqa: PLC0415 - costs as much as the rest of this package, and is needed only when something is wrong

    return "---\n".join(yaml.safe_dump(manifest, sort_keys=False) for manifest in manifests)


def _place(namespace: str | None) -> str:
    return "in the whole cluster" if namespace is None else f"in namespace {namespace}"


@dataclass(frozen=True, slots=True)
class Uses:
    """Verbs that an operator uses on a kind, or on a subresource of it, in its namespaces: `Uses(Secret, ("get",))`.

    They stand in the place of those that its controllers' declarations would need of that kind or subresource; several
    for one kind add up. `why` is the reason for verbs that no test can show: without it, `permission_tests` fails for a
    verb that is granted and was never recorded.

    With `role`, the verbs are optional: the operator starts without them. An operator of the whole cluster has them in a role
    of its own that nothing binds; its administrator binds it in each namespace that may use it.
    """

    what: Readable[Any]
    verbs: tuple[str, ...]
    subresource: str = ""
    why: str = ""
    role: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.verbs, str):
            raise DefinitionError(f"expected a tuple of verbs, got {self.verbs!r}; write ({self.verbs!r},)")


CrdPolicy = Literal["install", "force", "verify", "ignore"]

WebhookPolicy = Literal["install", "verify", "ignore"]
"""`install` applies the webhook configurations and repairs them, `verify` demands that they are there, `ignore` does not look."""
