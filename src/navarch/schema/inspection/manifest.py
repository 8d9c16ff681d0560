"""A CustomResourceDefinition looked at as the API server would, before it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from navarch.api.names import DNS_1035_LABEL, DNS_SUBDOMAIN
from navarch.schema.document import JsonSchema
from navarch.schema.inspection.defaults import default_faults
from navarch.schema.inspection.faults import DefinitionFault, unexpected
from navarch.schema.inspection.form import CRD_FORM, well_formed
from navarch.schema.inspection.keywords import keyword_faults
from navarch.schema.inspection.rules import rule_faults
from navarch.schema.inspection.serving import version_faults
from navarch.schema.inspection.structural import structural_faults

__all__ = ["DefinitionFault", "definition_faults"]

_REVIEW_VERSIONS = {"v1", "v1beta1"}
_PROTECTED_GROUPS = (".k8s.io", ".kubernetes.io")
_APPROVAL = "api-approved.kubernetes.io"


def definition_faults(manifest: dict[str, Any]) -> list[DefinitionFault]:
    """Everything for which the API server would refuse the CRD `manifest`; empty if it would take it."""
    manifest, malformed = well_formed(manifest, CRD_FORM)
    if malformed:
        return malformed
    spec = manifest.get("spec", {})
    return [
        *_group_faults(manifest, spec),
        *_name_faults(spec.get("names", {})),
        *_versions_faults(spec.get("versions", [])),
        *_conversion_faults(spec.get("conversion")),
    ]


def _schema_faults(schema: JsonSchema, path: str, *, has_status: bool) -> list[DefinitionFault]:
    """Everything for which the API server would refuse the schema of a version.

    Rules and defaults are looked at only where the schema itself is sound, since they are read by it.
    """
    faults = [*structural_faults(schema, path), *keyword_faults(schema, path, has_status=has_status)]
    return faults or [*default_faults(schema, path), *rule_faults(schema, path)]


def _group_faults(manifest: dict[str, Any], spec: dict[str, Any]) -> Iterator[DefinitionFault]:
    group, plural = spec.get("group", ""), spec.get("names", {}).get("plural", "")
    if not DNS_SUBDOMAIN.allows(group) or "." not in group:
        yield unexpected("spec.group", "a domain with at least one dot", repr(group), 'write group="cache.example.com"')
    metadata = manifest.get("metadata", {})
    if metadata.get("name") != f"{plural}.{group}":
        yield unexpected("metadata.name", f"{plural}.{group}", repr(metadata.get("name")), "name it so")
    protected = group.endswith(_PROTECTED_GROUPS) or group in {"k8s.io", "kubernetes.io"}
    if protected and _APPROVAL not in (metadata.get("annotations") or {}):
        yield unexpected(
            "spec.group", "a group of your own", repr(group), f"use a domain you own, or annotate {_APPROVAL}"
        )
    if spec.get("scope") not in {"Namespaced", "Cluster"}:
        yield unexpected("spec.scope", "Namespaced or Cluster", repr(spec.get("scope")), "use one of them")


def _name_faults(names: dict[str, Any]) -> Iterator[DefinitionFault]:
    kind = names.get("kind", "")
    given = {"plural": names.get("plural", ""), "singular": names.get("singular") or kind.lower()}
    given |= {"kind": kind.lower(), "listKind": (names.get("listKind") or f"{kind}List").lower()}
    for index, short in enumerate(names.get("shortNames", ())):
        given[f"shortNames[{index}]"] = short
    for index, category in enumerate(names.get("categories", ())):
        given[f"categories[{index}]"] = category
    for key, name in given.items():
        if not DNS_1035_LABEL.allows(name):
            remedy = f"use {DNS_1035_LABEL.suggest(name)!r}" if DNS_1035_LABEL.suggest(name) else "choose another"
            yield unexpected(f"spec.names.{key}", DNS_1035_LABEL.description, repr(name), remedy)
    if kind and names.get("listKind") == kind:
        yield unexpected("spec.names.listKind", "another name than the kind's", repr(kind), f"use {kind}List")


def _versions_faults(versions: list[dict[str, Any]]) -> Iterator[DefinitionFault]:
    names = [version.get("name", "") for version in versions]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield unexpected("spec.versions", "each version once", f"{name} twice", "give each class a version of its own")
    stored = [version.get("name") for version in versions if version.get("storage")]
    if len(stored) != 1:
        got = ", ".join(map(str, stored)) or "none"
        yield unexpected(
            "spec.versions", "exactly one version with storage=True", got, "write storage=False on the others"
        )
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if not DNS_1035_LABEL.allows(version.get("name", "")):
            yield unexpected(f"{path}.name", "a version like v1alpha1", repr(version.get("name")), "choose such a name")
        schema = version.get("schema", {}).get("openAPIV3Schema")
        if schema is None:
            yield unexpected(f"{path}.schema.openAPIV3Schema", "a schema", "none", "describe the kind")
            continue
        has_status = "status" in version.get("subresources", {})
        yield from _schema_faults(schema, f"{path}.schema.openAPIV3Schema", has_status=has_status)
        yield from version_faults(version, schema, path)


def _conversion_faults(conversion: dict[str, Any] | None) -> Iterator[DefinitionFault]:
    if conversion is None or conversion.get("strategy") == "None":
        return
    if conversion.get("strategy") != "Webhook":
        yield unexpected("spec.conversion.strategy", "None or Webhook", conversion.get("strategy"), "use one of them")
        return
    webhook = conversion.get("webhook", {})
    client, path = webhook.get("clientConfig", {}), "spec.conversion.webhook.clientConfig"
    if ("url" in client) == ("service" in client):
        yield unexpected(path, "a service or a url", "both" if "url" in client else "neither", "give one of them")
    if "service" in client:
        yield from _service_faults(client["service"], f"{path}.service")
    if "url" in client:
        yield from _url_faults(client["url"], f"{path}.url")
    reviews = webhook.get("conversionReviewVersions", [])
    if not _REVIEW_VERSIONS & set(reviews) or len(set(reviews)) < len(reviews):
        yield unexpected("spec.conversion.webhook.conversionReviewVersions", "v1, once", reviews, 'use ("v1",)')


def _service_faults(service: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    for key in ("name", "namespace"):
        if not service.get(key):
            yield unexpected(f"{path}.{key}", f"the {key} of the service", "none", f"give {key}")
    if not 1 <= service.get("port", 443) <= 65535:
        yield unexpected(f"{path}.port", "a port from 1 to 65535", service["port"], "use 443")
    where = service.get("path")
    if where not in {None, "", "/"} and not _is_service_path(where):
        yield unexpected(f"{path}.path", "a path like /convert", repr(where), "start it with / and use DNS names")


def _is_service_path(path: str) -> bool:
    segments = path.removeprefix("/").removesuffix("/").split("/")
    return path.startswith("/") and all(DNS_SUBDOMAIN.allows(segment) for segment in segments)


def _url_faults(url: str, path: str) -> Iterator[DefinitionFault]:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.netloc or parts.query or parts.fragment or "@" in parts.netloc:
        yield unexpected(
            path, "https://host/path and no more", "another URL", "use https, and leave out user, query and fragment"
        )
