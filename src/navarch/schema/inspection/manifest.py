"""Checks the manifest of a CustomResourceDefinition as the API server does, before it is sent."""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from navarch.api.names import DNS_1035_LABEL, DNS_SUBDOMAIN
from navarch.errors import InvalidValueError
from navarch.schema.inspection.keywords import CRD_FORM, keyword_faults, well_formed
from navarch.schema.inspection.rules import rule_faults
from navarch.schema.inspection.structural import DefinitionFault, default_faults, structural_faults, unexpected
from navarch.schema.json_schema import JsonSchema, field_path

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = {"int32", "int64", "float", "double", "byte", "date", "date-time", "password"}
_SELECTABLE_TYPES = {"string", "boolean", "integer"}
_MOST_SELECTABLE = 8


def version_faults(version: dict[str, Any], schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """Yields the faults of one version outside of its schema."""
    yield from _deprecation_faults(version, path)
    for index, column in enumerate(version.get("additionalPrinterColumns", ())):
        yield from _column_faults(column, f"{path}.additionalPrinterColumns[{index}]")
    scale = version.get("subresources", {}).get("scale")
    if scale is not None:
        yield from _scale_faults(scale, f"{path}.subresources.scale")
    yield from _selectable_faults(version.get("selectableFields", []), schema, f"{path}.selectableFields")


def _deprecation_faults(version: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield unexpected(f"{path}.deprecationWarning", "a warning on a deprecated version", "another", "set deprecated")
    if not 0 < len(warning.encode()) <= 256 or not warning.isprintable():
        yield unexpected(f"{path}.deprecationWarning", "1 to 256 printable characters", repr(warning), "shorten it")


def _column_faults(column: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    if not column.get("name"):
        yield unexpected(f"{path}.name", "a name", "none", "name the column")
    name = f"column {column.get('name', '')!r}"
    if column.get("type") not in _COLUMN_TYPES:
        expected = f"{name} to have a type of {', '.join(_COLUMN_TYPES)}"
        yield unexpected(f"{path}.type", expected, column.get("type"), "use one of them")
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        expected = f"one of {', '.join(sorted(_COLUMN_FORMATS))}"
        yield unexpected(f"{path}.format", expected, column["format"], "use one of them")
    shown = column.get("jsonPath", "")
    if not shown.startswith("."):
        remedy = f'start it with a dot: ".{shown}"' if shown else 'write path=".spec.size" for the field to show'
        yield unexpected(f"{path}.jsonPath", f"{name} to have a path like .spec.size", repr(shown or None), remedy)


def _scale_faults(scale: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    homes = {
        "specReplicasPath": (".spec.",),
        "statusReplicasPath": (".status.",),
        "labelSelectorPath": (".spec.", ".status."),
    }
    for key, starts in homes.items():
        given = scale.get(key)
        if (given or key != "labelSelectorPath") and not str(given or "").startswith(starts):
            yield unexpected(f"{path}.{key}", f"a path under {' or '.join(starts)}", repr(given), "use such a path")


def _selectable_faults(fields: list[dict[str, Any]], schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    seen: set[str] = set()
    for index, entry in enumerate(fields):
        where, given = f"{path}[{index}].jsonPath", entry.get("jsonPath", "")
        try:
            shown, found = field_path(given, schema, quoted=False)
        except InvalidValueError as error:
            yield unexpected(where, "the path of a field", f"{given!r} ({error})", "name a field of the schema")
            continue
        if not given or shown.split(".")[0] == "metadata":
            yield unexpected(where, "a field outside of the metadata", repr(given), "select by labels instead")
        if found.get("type") not in _SELECTABLE_TYPES:
            yield unexpected(where, "a string, boolean or integer", f"type {found.get('type')}", "remove Selectable")
        if shown in seen:
            yield unexpected(where, "each field once", repr(given), "remove the repetition")
        seen.add(shown)
    if len(seen) > _MOST_SELECTABLE:
        yield unexpected(path, f"at most {_MOST_SELECTABLE} selectable fields", len(seen), "remove some")


_REVIEW_VERSIONS = {"v1", "v1beta1"}
_PROTECTED_GROUPS = (".k8s.io", ".kubernetes.io")
_APPROVAL = "api-approved.kubernetes.io"


def definition_faults(manifest: dict[str, Any]) -> list[DefinitionFault]:
    """Returns every reason for which the API server would refuse the CRD `manifest`; empty if it would accept it."""
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


_sound_schemas: dict[bytes, None] = {}
"""Digests of schemas without faults, oldest first: tests install the same CRDs again and again, on fresh clusters."""
_MOST_SOUND = 1024


def _schema_faults(schema: JsonSchema, path: str, *, has_status: bool) -> list[DefinitionFault]:
    """Everything for which the API server would refuse the schema of a version.

    Rules and defaults are looked at only where the schema itself is sound, since they are read by it.
    """
    digest = _digest(schema, has_status=has_status)
    if digest in _sound_schemas:
        return []
    faults = [*structural_faults(schema, path), *keyword_faults(schema, path, has_status=has_status)]
    faults = faults or [*default_faults(schema, path), *rule_faults(schema, path)]
    if digest is not None and not faults:
        _sound_schemas[digest] = None
        if len(_sound_schemas) > _MOST_SOUND:
            del _sound_schemas[next(iter(_sound_schemas))]
    return faults


def _digest(schema: JsonSchema, *, has_status: bool) -> bytes | None:
    """Returns a digest that only the same schema has; None for a schema with values that JSON does not have."""
    try:
        content = marshal.dumps((schema, has_status), 2)  # version 2 writes equal values alike, whoever shares them
    except ValueError:
        return None
    return hashlib.sha256(content).digest()


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
