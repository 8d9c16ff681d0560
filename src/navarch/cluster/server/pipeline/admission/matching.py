"""Matching of requests with the rules and selectors of webhooks and policies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from navarch.api.selectors import Labels
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.errors import InvalidValueError

FindNamespace = Callable[[str], Awaitable[Json | None]]
"""The namespace of that name; None if there is none."""
_EXEMPT: Final = frozenset(
    {
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    }
)
_WRITES: Final = frozenset({"CREATE", "UPDATE"})


def is_exempt(attributes: Attributes) -> bool:
    """Tells whether a request bypasses webhooks and policies, so that a bad one can always be removed."""
    return attributes.resource.group == "admissionregistration.k8s.io" and attributes.resource.plural in _EXEMPT


def internal_error(why: str) -> StatusError:
    """500: the server could not find out whether the request may pass."""
    details = {"causes": [{"message": why}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {why}", details=details)


class Equivalents:
    """The other paths under which the objects of a resource are served."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[tuple[str, str, str], tuple[ResourceType, ...]] = {}
        catalog.listen(self._known.clear)

    def of(self, resource: ResourceType) -> tuple[ResourceType, ...]:
        """All of them but the resource itself."""
        key = (resource.group, resource.version, resource.plural)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(each for each in self._catalog if _is_equivalent(each, resource))
        return found


def _is_equivalent(one: ResourceType, other: ResourceType) -> bool:
    return one.storage_prefix == other.storage_prefix and (one.group, one.version) != (other.group, other.version)


class _MatchRule(msgspec.Struct, frozen=True):
    """One rule; an asterisk stands for everything."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str
    names: frozenset[str]

    def covers(self, attributes: Attributes, resource: ResourceType) -> bool:
        """Tells whether the rule covers the request, converted to `resource`."""
        return (
            _among(resource.group, self.groups)
            and _among(resource.version, self.versions)
            and _among(attributes.operation, self.operations)
            and self.scope in {"*", "Namespaced" if resource.namespaced else "Cluster"}
            and any(_fits(wanted, resource.plural, attributes.subresource) for wanted in self.resources)
            and (not self.names or attributes.name in self.names)
        )


def _among(value: str, wanted: frozenset[str]) -> bool:
    return value in wanted or "*" in wanted


def _fits(wanted: tuple[str, str], plural: str, subresource: str) -> bool:
    return wanted[0] in {"*", plural} and wanted[1] in {"*", subresource}


def _rule(document: Json) -> _MatchRule:
    return _MatchRule(
        operations=frozenset(document.get("operations") or ()),
        groups=frozenset(document.get("apiGroups") or ()),
        versions=frozenset(document.get("apiVersions") or ()),
        resources=tuple(_split(each) for each in document.get("resources") or ()),
        scope=document.get("scope") or "*",
        names=frozenset(document.get("resourceNames") or ()),
    )


def _split(resource: str) -> tuple[str, str]:
    plural, _, subresource = resource.partition("/")
    return plural, subresource


class Matcher:
    """The rules and selectors of one webhook, policy or binding.

    `rules` of None covers every request: a binding may leave them out.
    """

    def __init__(self, document: Json, rules: Iterable[Json] | None, excluded: Iterable[Json] = ()) -> None:
        self._rules = None if rules is None else tuple(map(_rule, rules))
        self._excluded = tuple(map(_rule, excluded))
        self._is_exact = document.get("matchPolicy") == "Exact"
        self._fault = ""
        self._namespaces = self._selector(document.get("namespaceSelector"))
        self._objects = self._selector(document.get("objectSelector"))

    def _selector(self, wanted: Any) -> Labels:
        try:
            return Labels.from_wire(wanted or {})
        except InvalidValueError as error:
            self._fault = str(error)
            return Labels.everything()

    async def match(
        self, attributes: Attributes, equivalents: Equivalents, find_namespace: FindNamespace
    ) -> ResourceType | None:
        """The resource as which the request is to be shown; None if it is none of these. Raises StatusError."""
        resource = self._covered(attributes, equivalents)
        if resource is None:
            return None
        if self._fault:
            raise internal_error(self._fault)
        if self._objects and not _is_labelled(attributes, self._objects):
            return None
        if self._namespaces and not self._namespaces.matches(await _namespace_labels(attributes, find_namespace)):
            return None if _has_namespace(attributes) else resource
        return resource

    def _covered(self, attributes: Attributes, equivalents: Equivalents) -> ResourceType | None:
        resource = attributes.resource
        if self._rules is None:
            return resource
        others = () if self._is_exact else equivalents.of(resource)
        if any(rule.covers(attributes, each) for rule in self._excluded for each in (resource, *others)):
            return None
        for each in (resource, *others):
            if any(rule.covers(attributes, each) for rule in self._rules):
                return each
        return None


def _is_labelled(attributes: Attributes, selector: Labels) -> bool:
    """Either as it was or as it is to be: nobody gets away by taking a label off."""
    return any(selector.matches(_labels(each)) for each in (attributes.value, attributes.old) if each is not None)


def _labels(value: Json | None) -> Json:
    found = ((value or {}).get("metadata") or {}).get("labels")
    return found if isinstance(found, dict) else {}


def _is_namespace(attributes: Attributes) -> bool:
    return attributes.resource.plural == "namespaces" and not attributes.resource.group


def _has_namespace(attributes: Attributes) -> bool:
    return bool(attributes.namespace) or _is_namespace(attributes)


async def _namespace_labels(attributes: Attributes, find: FindNamespace) -> Json:
    """A namespace that is written is judged by the labels it is to have."""
    if _is_namespace(attributes) and not attributes.subresource and attributes.operation in _WRITES:
        return _labels(attributes.value)
    name = attributes.name if _is_namespace(attributes) else attributes.namespace
    return _labels(await find(name)) if name else {}


class Shown(NamedTuple):
    """A request in the version in which a webhook or policy wants to see it."""

    resource: ResourceType
    value: Json | None
    old: Json | None


async def shown_as(attributes: Attributes, resource: ResourceType) -> Shown:
    """The objects of a request in another version of their resource."""
    if resource is attributes.resource:
        return Shown(resource, attributes.value, attributes.old)
    value = await converted(attributes.value, attributes.resource, resource)
    return Shown(resource, value, await converted(attributes.old, attributes.resource, resource))


async def converted(value: Json | None, given: ResourceType, wanted: ResourceType) -> Json | None:
    """An object of one version in another."""
    if value is None or given is wanted or value.get("apiVersion") != given.api_version:
        return value
    if given.convert is None:
        return {**value, "apiVersion": wanted.api_version}
    (found,) = await given.convert([value], wanted.api_version)
    return dict(found)
