"""Reads CustomResourceDefinitions: one `KindVersion` for each version of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from navarch.errors import ConfigError
from navarch.schema.inspection.keywords import CRD_FORM, well_formed

JsonSchema = dict[str, Any]

CRD: Final = "CustomResourceDefinition"
_API_VERSION: Final = "apiextensions.k8s.io/v1"
_OF_TOOLS: Final = ("kubectl.kubernetes.io/last-applied-configuration",)
_EMPTY: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), (False, None)),
    **dict.fromkeys(("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"), (False, None)),
    "x-kubernetes-preserve-unknown-fields": (False, None),
    **dict.fromkeys(("type", "format", "title", "pattern", "description"), ("", None)),
    **dict.fromkeys(("required", "enum", "allOf", "anyOf", "oneOf", "x-kubernetes-validations"), ([], None)),
    "properties": ({}, None),
    "x-kubernetes-list-map-keys": ([], None),
}
"""Values that mean the same as no value; the API server drops them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindVersion:
    """One version of a kind, as its CRD or its OpenAPI document has it. Its schema has no empty keywords."""

    group: str
    version: str
    kind: str
    plural: str
    schema: JsonSchema
    source: str
    """The file or cluster that it was read from."""
    singular: str = ""
    list_kind: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    served: bool = True
    storage: bool = True
    deprecated: bool | str = False
    has_status: bool = False
    scale: Mapping[str, str] | None = None
    columns: tuple[Mapping[str, Any], ...] = ()
    selectable: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """Returns the apiVersion of its objects."""
        return f"{self.group}/{self.version}"


def kinds_in(manifests: Iterable[tuple[str, Mapping[str, Any]]]) -> list[KindVersion]:
    """Returns every version of the CRDs among the manifests, each of which comes with its source.

    Other kinds are passed over. Raises `ConfigError` with every CRD that has no types, or is there twice.
    """
    found: list[KindVersion] = []
    faults: list[str] = []
    for source, manifest in manifests:
        if manifest.get("kind") == CRD:
            try:
                found += _versions(source, manifest)
            except ConfigError as error:
                faults.append(str(error))
    faults += _repeated(found)
    if faults:
        raise ConfigError("\n".join(faults))
    return found


def _versions(source: str, manifest: Mapping[str, Any]) -> Iterator[KindVersion]:
    name = _name(manifest)
    where = f"{source}: CRD {name}"
    api_version = manifest.get("apiVersion")
    if api_version != _API_VERSION:
        raise ConfigError(
            f"{where}: expected apiVersion {_API_VERSION}, got {api_version}: Kubernetes removed it in 1.22; "
            f"take the CRD of a newer release"
        )
    manifest, malformed = well_formed(manifest, CRD_FORM)
    if malformed:
        raise ConfigError("\n".join(f"{where}: {fault.field or 'its root'}: {fault.message}" for fault in malformed))
    spec = _mapping(manifest.get("spec"), where, "spec")
    names = _mapping(spec.get("names"), where, "spec.names")
    versions = spec.get("versions")
    if not isinstance(versions, list) or not versions:
        raise ConfigError(f"{where}: expected a list of versions in spec.versions, got {versions!r}")
    metadata = _mapping(manifest.get("metadata") or {}, where, "metadata")
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _OF_TOOLS}
    for version in versions:
        entry = _mapping(version, where, "spec.versions")
        yield KindVersion(
            group=_text(spec, "group", where),
            version=_text(entry, "name", where),
            kind=_text(names, "kind", where),
            plural=_text(names, "plural", where),
            singular=names.get("singular") or "",
            list_kind=names.get("listKind") or "",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            namespaced=spec.get("scope") != "Cluster",
            labels=metadata.get("labels") or {},
            annotations=annotations,
            served=bool(entry.get("served")),
            storage=bool(entry.get("storage")),
            deprecated=entry.get("deprecationWarning") or bool(entry.get("deprecated")),
            has_status="status" in (entry.get("subresources") or {}),
            scale=(entry.get("subresources") or {}).get("scale"),
            columns=tuple(_columns(entry, where)),
            selectable=tuple(_text(each, "jsonPath", where) for each in entry.get("selectableFields") or ()),
            schema=checked_schema((entry.get("schema") or {}).get("openAPIV3Schema"), f"{where}, {entry.get('name')}"),
            source=source,
        )


def _columns(entry: Mapping[str, Any], where: str) -> Iterator[Mapping[str, Any]]:
    for column in entry.get("additionalPrinterColumns") or ():
        for key in ("name", "type", "jsonPath"):
            _text(column, key, where)
        yield column


def checked_schema(schema: Any, where: str) -> JsonSchema:
    """Returns the schema of a kind without empty keywords. Raises `ConfigError` for one that has no properties."""
    found = without_empty(schema) if isinstance(schema, Mapping) else {}
    if not found.get("properties"):
        raise ConfigError(
            f"{where}: expected a schema with properties, got {'one without' if found else 'no schema'}: there are no types "
            f"to generate; leave it out, and use its objects as navarch.api.Dynamic"
        )
    return found


def without_empty(schema: Mapping[str, Any]) -> JsonSchema:
    """Returns the schema without keywords that say nothing, at every depth.

    >>> without_empty({"type": "object", "nullable": False, "properties": {"a": {"type": "string", "pattern": ""}}})
    {'type': 'object', 'properties': {'a': {'type': 'string'}}}
    """
    kept: JsonSchema = {}
    for keyword, value in schema.items():
        if value is None or any(value == empty and type(value) is type(empty) for empty in _EMPTY.get(keyword, ())):
            continue
        kept[keyword] = _inner(keyword, value)
    return kept


def _inner(keyword: str, value: Any) -> Any:
    if keyword == "properties" and isinstance(value, Mapping):
        return {name: without_empty(child) if isinstance(child, Mapping) else child for name, child in value.items()}
    if keyword in {"items", "additionalProperties", "not"} and isinstance(value, Mapping):
        return without_empty(value)
    if keyword in {"allOf", "anyOf", "oneOf"} and isinstance(value, list):
        return [without_empty(child) if isinstance(child, Mapping) else child for child in value]
    return value


def _repeated(found: Iterable[KindVersion]) -> Iterator[str]:
    seen: dict[tuple[str, str, str], KindVersion] = {}
    for each in found:
        first = seen.setdefault((each.group, each.version, each.kind), each)
        if first is not each:
            yield (
                f"{each.source}: expected one CRD of {each.kind} ({each.api_version}), got another one in {first.source}; "
                f"give one of them"
            )


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name", "without a name")) if isinstance(metadata, Mapping) else "without a name"


def _mapping(value: Any, where: str, field_name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: expected an object in {field_name}, got {value!r}")
    return value


def _text(mapping: Mapping[str, Any], key: str, where: str) -> str:
    value = mapping.get(key)
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{where}: expected a text in {key}, got {value!r}")
    return value
