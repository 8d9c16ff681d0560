"""Discovery: the resources that the server serves, and the resource of a kind's name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from navarch.api import Dynamic, Kind, Object, ObjectMeta, decode
from navarch.client.call import ApiAnswer, ApiCaller
from navarch.client.target import kind_of
from navarch.client.transport import Request
from navarch.errors import InvalidValueError, NotFound

_API_VERSION = re.compile(r"^(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]+$")
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResource:
    """One resource as the server describes it."""

    kind: Kind
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    singular: str = ""
    subresources: tuple[str, ...] = ()

    def answers_to(self, name: str) -> bool:
        """Returns True if kubectl would accept `name` for this resource: its plural, singular, kind or a short name,
        with or without its group.
        """
        bare, _, group = name.partition(".")
        if group and group not in {self.kind.group, f"{self.kind.version}.{self.kind.group}"}:
            return False
        return bare.lower() in {self.kind.plural, self.singular, self.kind.kind.lower(), *self.short_names}


class ServerVersion(msgspec.Struct, rename="camel", frozen=True):
    """The server's version."""

    major: str
    minor: str
    git_version: str
    platform: str = ""


class _ListedResource(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool
    verbs: list[str]
    singular_name: str = ""
    group: str = ""
    version: str = ""
    short_names: list[str] = []
    categories: list[str] = []


class _ResourceList(msgspec.Struct, rename="camel"):
    group_version: str
    resources: list[_ListedResource] | None = None


class _Scoped(msgspec.Struct, rename="camel"):
    """A resource in the aggregated form, which has everything in one answer."""

    resource: str
    scope: str
    verbs: list[str] = []
    response_kind: _KindName | None = None
    singular_resource: str = ""
    short_names: list[str] = []
    categories: list[str] = []
    subresources: list[_Below] = []


class _KindName(msgspec.Struct):
    kind: str = ""


class _Below(msgspec.Struct):
    subresource: str


class _ScopedVersion(msgspec.Struct):
    version: str
    resources: list[_Scoped] = []


class _NamedGroup(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    versions: list[_ScopedVersion] = []


class _Aggregated(msgspec.Struct, tag_field="kind", tag="APIGroupDiscoveryList"):
    items: list[_NamedGroup] = []


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _ApiGroup(msgspec.Struct):
    name: str
    versions: list[_GroupVersion]


class _GroupList(msgspec.Struct):
    """The older form of discovery: names only."""

    groups: list[_ApiGroup] = []
    versions: list[str] = []


class _Components(msgspec.Struct):
    schemas: dict[str, dict[str, Any]] = {}


class _OpenApiDocument(msgspec.Struct):
    """An OpenAPI document."""

    components: _Components = msgspec.field(default_factory=_Components)


class Discovery:
    """Looks up kinds and caches the result. Call `forget` after CRDs were created or deleted."""

    def __init__(self, caller: ApiCaller, timeout: float) -> None:
        self._caller = caller
        self._timeout = timeout
        self._known: dict[str, tuple[ApiResource, ...]] = {}
        self._version: ServerVersion | None = None

    def forget(self) -> None:
        """Empties the cache."""
        self._known.clear()
        self._version = None

    async def version(self) -> ServerVersion:
        """Returns the server's version."""
        if self._version is None:
            answer = await self._get("/version", "read the server's version")
            found = answer.decoded(partial(decode, ServerVersion))
            if not found.git_version:
                raise answer.bad("it names no version")
            self._version = found
        return self._version

    async def kind(self, api_version: str, kind: str) -> Kind:
        """Returns the kind of that name in that group and version. Raises `NotFound` with the kinds that exist instead.

        Asks the server again for an unknown kind, since its CRD may be new.
        """
        if not _API_VERSION.match(api_version) or not kind:
            raise InvalidValueError(
                f"expected an object with apiVersion and kind, such as apps/v1 and Deployment, got {api_version!r} and {kind!r}"
            )
        for fresh in (False, True):
            for resource in await self.resources(api_version, fresh=fresh):
                if resource.kind.kind == kind:
                    return resource.kind
        served = ", ".join(sorted(resource.kind.kind for resource in self._known[api_version]))
        raise NotFound(
            f"expected {api_version} to serve {kind}, got {served or 'no kinds'}; is its CRD installed?", code=404
        )

    async def kind_of(self, target: Object | Dynamic) -> Kind:
        """Returns the kind of an object: from its class, otherwise from the server."""
        if isinstance(target, Object):
            return kind_of(type(target))
        return await self.kind(target.api_version, target.kind)

    async def resources(self, api_version: str, *, fresh: bool = False) -> tuple[ApiResource, ...]:
        """Returns the resources of one group and version."""
        if fresh or api_version not in self._known:
            path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            answer = await self._get(path, f"discover {api_version}")
            answer.type()
            self._known[api_version] = _resources(answer.decoded(partial(decode, _ResourceList)))
        return self._known[api_version]

    async def schemas(self, api_version: str) -> dict[str, dict[str, Any]]:
        """Returns the OpenAPI schemas of one group and version, by name; they refer to one another."""
        path = f"/openapi/v3/apis/{api_version}" if "/" in api_version else f"/openapi/v3/api/{api_version}"
        answer = await self._get(path, f"read the schemas of {api_version}")
        return answer.decoded(partial(decode, _OpenApiDocument)).components.schemas

    async def all(self) -> tuple[ApiResource, ...]:
        """Returns every resource of every group, the preferred version of a group first."""
        core, named = await self._aggregated("/api"), await self._aggregated("/apis")
        return (*core, *named)

    async def _aggregated(self, path: str) -> tuple[ApiResource, ...]:
        """Returns one answer for all groups, from servers that have it (1.27 and later); from others, one for each."""
        answer = await self._get(path, "discover the API groups", accept=_AGGREGATED)
        answer.type()
        if "as=APIGroupDiscoveryList" in answer.headers.get("Content-Type", ""):
            return _from_aggregated(answer.decoded(partial(decode, _Aggregated)))
        found = answer.decoded(partial(decode, _GroupList))
        named = [version.group_version for group in found.groups for version in group.versions]
        lists = [await self.resources(api_version) for api_version in (*found.versions, *named)]
        return tuple(resource for resources in lists for resource in resources)

    async def find(self, name: str) -> ApiResource:
        """Returns the resource that kubectl would choose for `name`: `deploy`, `deployments`, `deployments.apps`,
        `Deployment`.
        """
        for resource in await self.all():
            if resource.answers_to(name):
                return resource
        raise NotFound(f"expected the name of a resource, got {name!r}, which the server does not serve", code=404)

    async def _get(self, path: str, what: str, accept: str = "application/json") -> ApiAnswer:
        request = Request(method="GET", path=path, headers={"Accept": accept}, timeout=self._timeout)
        return await self._caller.call(request, what)

    def within(self, timeout: float) -> Discovery:
        """Returns the same cache with another time limit for each request."""
        twin = Discovery(self._caller, timeout)
        twin._known = self._known
        return twin


def _resources(served: _ResourceList) -> tuple[ApiResource, ...]:
    """Attaches subresources to their resources; the server lists them beside their parents as `pods/log`."""
    group, _, version = served.group_version.rpartition("/")
    below: dict[str, list[str]] = {}
    for entry in served.resources or []:
        parent, slash, child = entry.name.partition("/")
        if slash:
            below.setdefault(parent, []).append(child)
    return tuple(
        ApiResource(
            kind=Kind(
                group,
                version,
                entry.kind,
                plural=entry.name,
                namespaced=entry.namespaced,
                has_status="status" in below.get(entry.name, ()),
            ),
            verbs=tuple(entry.verbs),
            short_names=tuple(entry.short_names),
            categories=tuple(entry.categories),
            singular=entry.singular_name,
            subresources=tuple(below.get(entry.name, ())),
        )
        for entry in served.resources or []
        if "/" not in entry.name
    )


def _from_aggregated(found: _Aggregated) -> tuple[ApiResource, ...]:
    return tuple(
        _from_scoped(group.metadata.name, version.version, resource)
        for group in found.items
        for version in group.versions
        for resource in version.resources
    )


def _from_scoped(group: str, version: str, found: _Scoped) -> ApiResource:
    below = tuple(child.subresource for child in found.subresources)
    kind = Kind(
        group,
        version,
        found.response_kind.kind if found.response_kind else "",
        plural=found.resource,
        namespaced=found.scope == "Namespaced",
        has_status="status" in below,
    )
    return ApiResource(
        kind=kind,
        verbs=tuple(found.verbs),
        short_names=tuple(found.short_names),
        categories=tuple(found.categories),
        singular=found.singular_resource,
        subresources=below,
    )
