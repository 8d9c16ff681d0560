"""The permissions that an operator needs, and the check that it has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from navarch.api import Kind
from navarch.cache import Cached, Namespaces, as_cached
from navarch.client import Client
from navarch.client.target import Readable, kind_of
from navarch.errors import (
    ApiError,
    InvalidValueError,
    MissingPermissionsError,
)
from navarch.operator.roles import CrdPolicy, Permission, Uses, report
from navarch.operator.webhook_server import WebhookServer

if TYPE_CHECKING:
    from navarch.controller.declaration import Declared as Controller
    from navarch.operator.declarations import DeclaredOperator

__all__ = [
    "Needs",
    "Permission",
    "Uses",
    "check_permissions",
    "crd_permissions",
    "missing_permissions",
    "needed_by",
    "optional_roles",
    "permissions_of",
]

Declared = Readable[Any] | Cached[Any]

_QUESTIONS_AT_ONCE = 16

_FOLLOWED = ("list", "watch")
_READ = ("get", "list", "watch")  # get: what the cache does not have is read live
_OWNED = ("create", "delete", "get", "list", "patch", "watch")
_STATUS = ("update",)
_AFTER_CONFLICT = ("get",)  # whoever writes reads the newer object live
_FINALIZER = ("patch",)
_BLOCKING = ("update",)  # some clusters let only those who may finalize an owner block its deletion by a child
_LEASE = ("create", "get", "list", "update", "watch")
_EVENT = ("create", "patch")
_CRD_WRITE = ("create", "get", "patch")
_CRD: dict[str, tuple[str, ...]] = {"install": _CRD_WRITE, "force": _CRD_WRITE, "verify": ("get",), "ignore": ()}

_WEBHOOKS: dict[str, tuple[str, ...]] = {
    "install": ("create", "get", "list", "patch", "update", "watch"),
    "verify": ("get",),
    "ignore": (),
}
_CERTIFICATES = ("create", "get", "list", "update", "watch")
_SECRETS = Kind("", "v1", "Secret", plural="secrets")
_CONVERSIONS: dict[str, tuple[str, ...]] = {
    "install": ("get", "list", "patch", "watch"),
    "verify": ("get",),
    "ignore": (),
}
_REGISTRATIONS = tuple(
    Kind("admissionregistration.k8s.io", "v1", kind, plural=f"{kind.lower()}s", namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)

_REVIEWS = (
    Kind("authentication.k8s.io", "v1", "TokenReview", plural="tokenreviews", namespaced=False),
    Kind("authorization.k8s.io", "v1", "SubjectAccessReview", plural="subjectaccessreviews", namespaced=False),
)
_NAMESPACES = Kind("", "v1", "Namespace", plural="namespaces", namespaced=False)
_LEASES = Kind("coordination.k8s.io", "v1", "Lease", plural="leases")
_EVENTS = Kind("events.k8s.io", "v1", "Event", plural="events")
_CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_EVENTS_OF_CLUSTER_SCOPED = "default"  # where Kubernetes puts the events of objects that are in no namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What one controller declares.

    `primary`, `owns`, `watches` and `reads` are classes, kinds or `Cached`. `namespaces` are the operator's names and patterns
    for a `Cached` without its own; none means all. A primary kind with a status needs the right to write it; with `has_cleanup`
    there is a finalizer.
    """

    primary: Declared
    owns: tuple[Declared, ...] = ()
    watches: tuple[Declared, ...] = ()
    reads: tuple[Declared, ...] = ()
    has_cleanup: bool = False
    namespaces: tuple[str, ...] = ()


def needed_by(
    operator: DeclaredOperator, *, election_namespace: str | None, webhook_namespace: str | None = None
) -> tuple[Permission, ...]:
    """Returns the permissions that the operator needs: those of its declarations, and for each kind in `uses` those of `uses`.

    The Lease, the CRDs and the reviews of scrapers' tokens are included; `election_namespace` is None if there is no election. `webhook_namespace` is that of
    the Secret with the certificates of the webhooks; by default that of the Lease.
    """
    needs = [_needs(declared, operator.namespaces) for declared in operator.controllers]
    derived = permissions_of(needs, election_namespace=election_namespace, crds=operator.crds)
    derived = (*derived, *_read_by_webhooks(operator))
    uses = [each for each in operator.uses if not each.role]
    exact = {(kind_of(each.what).group, kind_of(each.what).plural, each.subresource) for each in uses}
    found = {each for each in derived if (each.group, each.resource, each.subresource) not in exact}
    found.update(permission for each in uses for permission in _used(each, operator.namespaces))
    found.update(_of_webhooks(operator, webhook_namespace or election_namespace))
    if operator.endpoints is not None and operator.endpoints.token_review and operator.endpoints.metrics is not None:
        found.update(permission for kind in _REVIEWS for permission in _granted(kind, ("create",), ()))
    return _least(found)


def optional_roles(operator: DeclaredOperator) -> dict[str, tuple[Permission, ...]]:
    """Returns the permissions of `Uses(..., role=...)` by their role; `needed_by` leaves them out."""
    found: dict[str, set[Permission]] = {}
    for each in operator.uses:
        if each.role:
            names = operator.namespaces.names or ()
            found.setdefault(each.role, set()).update(_granted(kind_of(each.what), each.verbs, names, each.subresource))
    return {role: _least(permissions) for role, permissions in found.items()}


def _read_by_webhooks(operator: DeclaredOperator) -> Iterator[Permission]:
    for webhook in operator.admission_webhooks:
        for what in webhook.options.reads:
            yield from _of_kind(as_cached(what), _FOLLOWED, operator.namespaces.patterns)


def _of_webhooks(operator: DeclaredOperator, namespace: str | None) -> Iterator[Permission]:
    """Yields the permissions for webhook configurations and certificates."""
    server = operator.webhook_server
    is_served = operator.admission_webhooks or operator.conversions
    if is_served and isinstance(server, WebhookServer) and server.certificate is None:
        place = server.namespace or namespace
        if place is None:
            raise InvalidValueError(
                f"operator {operator.name}: expected the namespace of the Secret with the certificates of its webhooks, got "
                "none; give webhook_namespace="
            )
        yield from _granted(_SECRETS, _CERTIFICATES, (place,))
    for kind, is_mutating in zip(_REGISTRATIONS, (True, False), strict=True):
        if any(webhook.is_mutating is is_mutating for webhook in operator.admission_webhooks):
            yield from _granted(kind, _WEBHOOKS[operator.webhooks], ())
    if operator.conversions:
        yield from _granted(_CRDS, _CONVERSIONS[operator.webhooks], ())


def _least(found: set[Permission]) -> tuple[Permission, ...]:
    """Returns the permissions sorted, without those in one namespace that the whole cluster includes."""
    kept = (each for each in found if each.namespace is None or replace(each, namespace=None) not in found)
    return tuple(sorted(kept, key=Permission.order))


def _needs(declared: Controller[Any, Any], namespaces: Namespaces) -> Needs:
    options = declared.options
    return Needs(
        primary=declared.cached,
        owns=options.owns,
        watches=tuple(options.watches),
        reads=(*options.reads, *options.caches),
        has_cleanup=declared.on_deletion is not None,
        namespaces=namespaces.patterns,
    )


def _used(uses: Uses, namespaces: Namespaces) -> Iterator[Permission]:
    yield from _granted(kind_of(uses.what), uses.verbs, namespaces.names or (), uses.subresource)
    if _are_patterns(namespaces):
        yield from _granted(_NAMESPACES, _FOLLOWED, ())


def permissions_of(
    needs: Iterable[Needs],
    *,
    election_namespace: str | None = None,
    events: bool = True,
    crds: CrdPolicy = "ignore",
) -> tuple[Permission, ...]:
    """Returns the least permissions of an operator with these controllers, each once, sorted.

    `election_namespace` is the namespace of the Lease, None without an election. Namespaces by pattern need the permissions in
    the whole cluster.
    """
    found = {permission for each in needs for permission in _of_controller(each, events=events)}
    found.update(crd_permissions(crds))
    if election_namespace is not None:
        found.update(_granted(_LEASES, _LEASE, (election_namespace,)))
    return _least(found)


def crd_permissions(policy: CrdPolicy) -> tuple[Permission, ...]:
    """Returns the permissions that the policy for CRDs needs."""
    return tuple(_granted(_CRDS, _CRD[policy], ()))


def _of_controller(needs: Needs, *, events: bool) -> Iterator[Permission]:
    primary = as_cached(needs.primary)
    for verbs, declared in (
        (_FOLLOWED, (primary,)),
        (_OWNED, needs.owns),
        (_READ, needs.watches),
        (_READ, needs.reads),
    ):
        for what in declared:
            yield from _of_kind(as_cached(what), verbs, needs.namespaces)
    where = _namespaces_of(primary, needs.namespaces)
    if primary.kind.has_status:
        yield from _granted(primary.kind, _STATUS, where, "status")
    if needs.has_cleanup:
        yield from _granted(primary.kind, _FINALIZER, where)
    if needs.owns:
        yield from _granted(primary.kind, _BLOCKING, where, "finalizers")
    if primary.kind.has_status or needs.has_cleanup:
        yield from _granted(primary.kind, _AFTER_CONFLICT, where)
    if events:
        yield from _granted(_EVENTS, _EVENT, where if primary.kind.namespaced else (_EVENTS_OF_CLUSTER_SCOPED,))


def _of_kind(cached: Cached[Any], verbs: tuple[str, ...], default: tuple[str, ...]) -> Iterator[Permission]:
    yield from _granted(cached.kind, verbs, _namespaces_of(cached, default))
    if cached.kind.namespaced and _are_patterns(_meant(cached, default)):
        yield from _granted(_NAMESPACES, _FOLLOWED, ())


def _namespaces_of(cached: Cached[Any], default: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the namespaces by name; none stands for the whole cluster."""
    return tuple(_meant(cached, default).names or ())


def _meant(cached: Cached[Any], default: tuple[str, ...]) -> Namespaces:
    return Namespaces(*(default if cached.namespaces is None else cached.namespaces))


def _are_patterns(namespaces: Namespaces) -> bool:
    return not namespaces.all and namespaces.names is None


def _granted(
    kind: Kind, verbs: Iterable[str], namespaces: Iterable[str], subresource: str = ""
) -> Iterator[Permission]:
    places: list[str | None] = [*namespaces] if kind.namespaced else []
    for verb in verbs:
        for namespace in places or [None]:
            yield Permission(verb, kind.group, kind.plural, subresource, namespace)


async def check_permissions(client: Client, wanted: Iterable[Permission]) -> None:
    """Raises `MissingPermissionsError` with all missing permissions, and with the roles that grant them."""
    missing = await missing_permissions(client, wanted)
    if missing:
        raise MissingPermissionsError(report(await _who(client), missing, client.options.manager))


async def missing_permissions(client: Client, wanted: Iterable[Permission]) -> list[Permission]:
    """Returns the permissions that the client lacks, in the order of `wanted`; asks about each once.

    Raises `ApiError` if the server does not answer the reviews.
    """
    questions = list(dict.fromkeys(wanted))
    # The first is asked alone: a server that does not answer is then told of once, not once for each question.
    return [*await _refused(client, questions[:1]), *await _refused(client, questions[1:])]


async def _refused(client: Client, questions: list[Permission]) -> list[Permission]:
    turn = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

    async def is_missing(permission: Permission) -> bool:
        async with turn:
            return not await _is_allowed(client, permission)

    try:
        async with asyncio.TaskGroup() as group:
            answers = {permission: group.create_task(is_missing(permission)) for permission in questions}
    except ExceptionGroup as failed:  # all of the same kind: the server does not answer
        raise failed.exceptions[0] from None
    return [permission for permission, answer in answers.items() if answer.result()]


async def _is_allowed(client: Client, permission: Permission) -> bool:
    from navarch.k8s.authorization.v1 import (  # noqa: PLC0415 - needed once, at the start
        ResourceAttributes,
        SelfSubjectAccessReview,
        SelfSubjectAccessReviewSpec,
    )

    attributes = ResourceAttributes(
        verb=permission.verb,
        group=permission.group,
        resource=permission.resource,
        subresource=permission.subresource or None,
        namespace=permission.namespace,
    )
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    return (await client.create(review)).status.allowed


async def _who(client: Client) -> str:
    """Returns the client's user name; empty where the server does not tell it (before 1.28)."""
    from navarch.k8s.authentication.v1 import SelfSubjectReview  # noqa: PLC0415 - needed only for the report

    try:
        user = (await client.create(SelfSubjectReview())).status.user_info
    except ApiError:
        return ""
    return (user.username or "") if user is not None else ""
