"""Discovery: the groups, versions and resources that are served, in the aggregated and in the older form."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import msgspec

from navarch.cluster.server.objects.types import Catalog, ResourceType, Subresource, version_priority
from navarch.cluster.server.wire.request import ApiRequest, Json, Reply
from navarch.k8s.published import Published

_AGGREGATED = "as=APIGroupDiscoveryList"
_V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_CLIENTS = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]


class DiscoveryDocuments:
    """What `/api`, `/apis` and the paths below them say; made anew when the catalog changes."""

    def __init__(self, catalog: Catalog, published: Published) -> None:
        self._catalog = catalog
        self._builtin = {root: published.discovery(root)["items"] for root in ("api", "apis")}
        self._made: dict[str, tuple[bytes, str]] = {}
        catalog.listen(self._made.clear)

    def reply(self, request: ApiRequest) -> Reply | None:
        """The answer, if the path is one of discovery's."""
        parts = request.path.strip("/").split("/")
        if parts[0] not in {"api", "apis"} or len(parts) > (2 if parts[0] == "api" else 3):
            return None
        if len(parts) == 1 and _wants_aggregated(request):
            return self._aggregated(parts[0], request)
        document = self._legacy(parts)
        return None if document is None else Reply(200, msgspec.json.encode(document))

    def groups(self, root: str) -> list[Json]:
        """The groups of `api` or `apis` as aggregated discovery lists them."""
        return [*self._builtin[root], *self._custom(root)]

    def has_group(self, name: str) -> bool:
        """Whether the group is served."""
        return any(entry["metadata"].get("name") == name for entry in self.groups("apis"))

    def _aggregated(self, root: str, request: ApiRequest) -> Reply:
        made = self._made.get(root)
        if made is None:
            listed = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}}
            body = msgspec.json.encode({**listed, "items": self.groups(root)})
            made = self._made[root] = (body, f'"{hashlib.sha512(body).hexdigest().upper()}"')
        body, tag = made
        headers = {"ETag": tag, "Vary": "Accept", "Cache-Control": "public"}
        if request.headers.get("if-none-match") == tag:
            return Reply(304, headers=headers, content_type=_V2)
        return Reply(200, body, content_type=_V2, headers=headers)

    def _custom(self, root: str) -> Iterator[Json]:
        """One entry for each group of CRDs; each version lists its resources."""
        if root == "api":
            return
        found: dict[str, dict[str, list[ResourceType]]] = {}
        for resource in self._catalog:
            if resource.is_custom:
                found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
        for group, versions in sorted(found.items()):
            ordered = sorted(versions, key=version_priority, reverse=True)
            entries = [_version(version, versions[version]) for version in ordered]
            yield {"metadata": {"name": group, "creationTimestamp": None}, "versions": entries}

    def _legacy(self, parts: list[str]) -> Json | None:
        if parts == ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": _CLIENTS}
        if parts == ["apis"]:
            groups = [_group(entry) for entry in self.groups("apis")]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        name = "" if parts[0] == "api" else parts[1]
        entry = next((known for known in self.groups(parts[0]) if known["metadata"].get("name", "") == name), None)
        if entry is None:
            return None
        if len(parts) == 2 and parts[0] == "apis":
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(entry)}
        return self._resources(name, parts[-1], entry)

    def _resources(self, group: str, version: str, entry: Json) -> Json | None:
        found = next((known for known in entry["versions"] if known["version"] == version), None)
        if found is None:
            return None
        group_version = f"{group}/{version}" if group else version
        listed = [item for resource in found["resources"] for item in _legacy_resource(resource, group, version)]
        for item in listed:
            if "create" in item["verbs"] and "list" in item["verbs"]:
                item["storageVersionHash"] = self._storage_hash(group, version, item)
        head = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {}), "groupVersion": group_version}
        return {**head, "resources": sorted(listed, key=lambda item: item["name"])}

    def _storage_hash(self, group: str, version: str, item: Json) -> str:
        """Changes when the objects are stored in another version: clients see then that they must be written anew."""
        resource = self._catalog.find(group, version, item["name"])
        stored_group, stored = group, version
        if resource is not None:
            stored_group, stored = resource.stored_as or (group, resource.storage_version)
        digest = hashlib.sha256(f"{stored_group}/{stored}/{item['kind']}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()


def _wants_aggregated(request: ApiRequest) -> bool:
    clauses = request.headers.get("accept", "").replace(" ", "").split(",")
    return any(_AGGREGATED in clause and ";v=v2;" in f"{clause};" for clause in clauses)


def _version(version: str, resources: list[ResourceType]) -> Json:
    listed = [_resource(resource) for resource in sorted(resources, key=lambda each: each.plural)]
    return {"version": version, "resources": listed, "freshness": "Current"}


def _resource(resource: ResourceType) -> Json:
    found: Json = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    if resource.subresources:
        found["subresources"] = [_subresource(resource, each) for each in resource.subresources.values()]
    return found


def _subresource(resource: ResourceType, subresource: Subresource) -> Json:
    kind = {
        "group": subresource.group or resource.group,
        "version": subresource.version or resource.version,
        "kind": subresource.kind,
    }
    return {"subresource": subresource.name, "responseKind": kind, "verbs": list(subresource.verbs)}


def _group(entry: Json) -> Json:
    name = entry["metadata"]["name"]
    versions = [{"groupVersion": f"{name}/{each['version']}", "version": each["version"]} for each in entry["versions"]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _legacy_resource(resource: Json, group: str, version: str) -> Iterator[Json]:
    namespaced = str(resource["scope"]) == "Namespaced"
    yield {
        "name": resource["resource"],
        "singularName": resource["singularResource"],
        "namespaced": namespaced,
        "kind": resource["responseKind"]["kind"],
        "verbs": resource["verbs"],
        **{name: resource[name] for name in ("shortNames", "categories") if name in resource},
    }
    for part in resource.get("subresources", ()):
        kind = part["responseKind"]
        identity = {"group": kind.get("group") or group, "version": kind.get("version") or version}
        other = {} if identity == {"group": group, "version": version} else identity
        yield {
            "name": f"{resource['resource']}/{part['subresource']}",
            "singularName": "",
            "namespaced": namespaced,
            **other,
            "kind": kind["kind"],
            "verbs": part["verbs"],
        }
