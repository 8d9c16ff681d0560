"""Kinds that an operator needs and other projects define: their CRDs come with those projects, before or after the operator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from navarch.api import Kind, Object, Resource
from navarch.cache import as_cached
from navarch.client import Client
from navarch.errors import NotFound

if TYPE_CHECKING:
    from navarch.operator.declarations import DeclaredOperator

__all__ = ["INSTALL_THEM", "ForeignKind", "foreign_kinds", "missing_kinds"]

INSTALL_THEM: Final = "install the projects that define them, or their CRDs alone: kubectl apply -f FILE"
_NAVARCH: Final = "navarch."


@dataclass(frozen=True, slots=True)
class ForeignKind:
    """A kind of another project; `needed_by` names the controllers and webhooks that need it."""

    kind: Kind
    cls: type[Object] | None
    """Its class; None if the operator names the kind alone."""
    needed_by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind.resource} ({self.kind.kind} {self.kind.version}, for {', '.join(self.needed_by)})"


def foreign_kinds(operator: DeclaredOperator, defined: Collection[str] | None = None) -> list[ForeignKind]:
    """Returns the kinds that the operator's controllers and webhooks name and neither it nor Kubernetes defines.

    `defined` has the names of the operator's own CRDs; by default those of the kinds that it reconciles or converts.
    """
    own = _own_crds(operator) if defined is None else defined
    classes: dict[Kind, type[Object] | None] = {}
    needed_by: dict[Kind, dict[str, None]] = {}
    for who, what in _named(operator):
        cached = as_cached(what)
        cls = cached.of if isinstance(cached.of, type) and issubclass(cached.of, Object) else None
        if cached.kind.resource in own or not _is_of_a_crd(cached.kind, cls):
            continue
        classes[cached.kind] = classes.get(cached.kind) or cls
        needed_by.setdefault(cached.kind, {})[who] = None
    return [ForeignKind(kind, classes[kind], tuple(names)) for kind, names in needed_by.items()]


async def missing_kinds(client: Client, kinds: Iterable[ForeignKind]) -> list[ForeignKind]:
    """Returns the kinds that the server does not serve. Discovery tells it, which every user may read."""
    return [each for each in kinds if not await _is_served(client, each.kind)]


def _own_crds(operator: DeclaredOperator) -> set[str]:
    primaries = (declared.primary for declared in operator.controllers)
    converted = (version for pair in operator.conversions for version in (pair.old, pair.new))
    return {each.__kind__.resource for each in (*primaries, *converted) if issubclass(each, Resource)}


def _named(operator: DeclaredOperator) -> Iterator[tuple[str, Any]]:
    for declared in operator.controllers:
        options = declared.options
        for what in (declared.cached, *options.owns, *options.watches, *options.reads, *options.caches):
            yield f"controller {declared.name}", what
    for webhook in operator.admission_webhooks:
        if "*" not in webhook.resource.plural:
            yield f"webhook {webhook.short_name}", webhook.resource if webhook.options.on else webhook.what
        for what in webhook.options.reads:
            yield f"webhook {webhook.short_name}", what


def _is_of_a_crd(kind: Kind, cls: type[Object] | None) -> bool:
    """Returns False for a kind of Kubernetes: a class of Navarch, or a group without a domain, which no CRD may have."""
    return "." in kind.group and (cls is None or not cls.__module__.startswith(_NAVARCH))


async def _is_served(client: Client, kind: Kind) -> bool:
    try:
        served = await client.discovery.resources(kind.api_version, fresh=True)
    except NotFound:
        return False
    return any(each.kind.plural == kind.plural for each in served)
