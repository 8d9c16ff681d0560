"""The sources of permissions: which declaration of an operator needs one, and why a test may never see it used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from navarch.cache import as_cached
from navarch.client.target import kind_of
from navarch.operator.roles import Permission

if TYPE_CHECKING:
    from navarch.controller.declaration import Declared
    from navarch.operator.declarations import DeclaredOperator

__all__ = ["PermissionSource", "sources_of"]

_LIVE_READ: Final = "what the cache does not have is read from the server"
_AFTER_CONFLICT: Final = "after a conflict the newer object is read from the server"
_OWNER_CHECK: Final = "clusters with OwnerReferencesPermissionEnforcement ask for it when a child is written"
_EVENTS: Final = "events are sent when there is something to report, and patched when they repeat"
_ELECTION: Final = "the verbs on the Lease depend on what other replicas do"
_CRDS: Final = "CRDs are prepared before the operator starts"
_REGISTRATION: Final = "tests call webhooks without registering them"
_CERTIFICATES: Final = "tests call webhooks without certificates"
_TOKENS: Final = "tests do not serve metrics; the API server checks the token of who reads them"
_NAMED_NAMESPACES: Final = "the operator warns of a namespace that does not exist, if it may read namespaces"
_NAMESPACES: Final = "namespaces are followed to find those that the patterns match"

_FOLLOWED: Final = frozenset({"list", "watch"})
_READ: Final = _FOLLOWED | {"get"}
_OWNED: Final = _READ | {"create", "delete", "patch"}


@dataclass(frozen=True, slots=True)
class PermissionSource:
    """A declaration that needs a permission. `reason` says why tests may not see it used; empty if they should."""

    declared: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.declared}: {self.reason}" if self.reason else self.declared


class _Fixed(NamedTuple):
    """Permissions of the runtime itself, whichever controllers there are."""

    group: str
    resource: str
    verbs: str
    source: PermissionSource


_REGISTERED: Final = PermissionSource("webhooks", _REGISTRATION)
_METRICS: Final = PermissionSource("metrics with a token", _TOKENS)
_RUNTIME: Final = (
    _Fixed("coordination.k8s.io", "leases", "create get list update watch", PermissionSource("election", _ELECTION)),
    _Fixed("events.k8s.io", "events", "create patch", PermissionSource("events of the controllers", _EVENTS)),
    _Fixed(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "create get list patch watch",
        PermissionSource("CRDs of the operator", _CRDS),
    ),
    _Fixed("authentication.k8s.io", "tokenreviews", "create", _METRICS),
    _Fixed("authorization.k8s.io", "subjectaccessreviews", "create", _METRICS),
    *(
        _Fixed("admissionregistration.k8s.io", kind, "create get list patch update watch", _REGISTERED)
        for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    ),
)


def sources_of(
    operator: DeclaredOperator, permission: Permission, *, own_namespace: str
) -> tuple[PermissionSource, ...]:
    """Returns the declarations that need the permission; none for one that follows from no declaration.

    `own_namespace` is that of the operator, where its Lease and the certificates of its webhooks are.
    """
    return tuple(dict.fromkeys(_sources(operator, permission, own_namespace)))


def _sources(operator: DeclaredOperator, wanted: Permission, own_namespace: str) -> Iterator[PermissionSource]:
    for uses in operator.uses:
        kind = kind_of(uses.what)
        named = (kind.group, kind.plural, uses.subresource)
        if named == (wanted.group, wanted.resource, wanted.subresource) and wanted.verb in uses.verbs:
            role = f', role="{uses.role}"' if uses.role else ""
            yield PermissionSource(f"Uses({kind.kind}, …{role})", uses.why)
    for declared in operator.controllers:
        yield from _of_controller(declared, wanted)
    yield from _of_webhooks(operator, wanted, own_namespace)
    yield from _of_runtime(operator, wanted)


def _of_webhooks(operator: DeclaredOperator, wanted: Permission, own_namespace: str) -> Iterator[PermissionSource]:
    for webhook in operator.admission_webhooks:
        if any(_is_about(what, wanted) for what in webhook.options.reads) and wanted.verb in _FOLLOWED:
            yield PermissionSource(f"webhook {webhook.name} reads it")
    is_own_secret = (wanted.group, wanted.resource, wanted.namespace) == ("", "secrets", own_namespace)
    if is_own_secret and (operator.admission_webhooks or operator.conversions):
        yield PermissionSource("certificates of the webhooks", _CERTIFICATES)


def _of_runtime(operator: DeclaredOperator, wanted: Permission) -> Iterator[PermissionSource]:
    if (wanted.group, wanted.resource) == ("", "namespaces") and not operator.namespaces.all:
        if operator.namespaces.names is None and wanted.verb in _FOLLOWED:
            yield PermissionSource("namespaces by pattern", _NAMESPACES)
        elif operator.namespaces.names and wanted.verb == "get":
            yield PermissionSource("namespaces by name", _NAMED_NAMESPACES)
    for fixed in _RUNTIME:
        if (fixed.group, fixed.resource) == (wanted.group, wanted.resource) and wanted.verb in fixed.verbs.split():
            yield fixed.source


def _of_controller(declared: Declared[Any, Any], wanted: Permission) -> Iterator[PermissionSource]:
    name, options, primary = f"controller {declared.name}", declared.options, declared.cached.kind
    if (primary.group, primary.plural) == (wanted.group, wanted.resource):
        if wanted.subresource == "status" and wanted.verb == "update":
            yield PermissionSource(f"{name} writes its status")
        elif wanted.subresource == "finalizers":
            yield PermissionSource(f"{name} owns other objects", _OWNER_CHECK)
        elif wanted.subresource == "" and wanted.verb in _FOLLOWED:
            yield PermissionSource(f"{name} reconciles it")
        elif wanted.subresource == "" and wanted.verb == "patch" and declared.on_deletion is not None:
            yield PermissionSource(f"{name} has a cleanup")
        elif wanted.subresource == "" and wanted.verb == "get":
            yield PermissionSource(f"{name} reconciles it", _AFTER_CONFLICT)
    for words, verbs, kinds in (
        ("owns", _OWNED, options.owns),
        ("watches", _READ, tuple(options.watches)),
        ("reads", _READ, (*options.reads, *options.caches)),
    ):
        if wanted.verb in verbs and any(_is_about(what, wanted) for what in kinds):
            yield PermissionSource(f"{name} {words} it", _LIVE_READ if wanted.verb == "get" else "")


def _is_about(what: Any, wanted: Permission) -> bool:
    kind = as_cached(what).kind
    return (kind.group, kind.plural, "") == (wanted.group, wanted.resource, wanted.subresource)
