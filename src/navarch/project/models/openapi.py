"""Reads kinds from an OpenAPI v3 document of an API server, such as `/openapi/v3/apis/cert-manager.io/v1`.

The document has the schemas, and the paths say which of them are kinds, their plural, scope and subresources. Columns,
short names and whether a version is stored are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from navarch.errors import ConfigError
from navarch.project.models.crds import JsonSchema, KindVersion, checked_schema

_KIND: Final = "x-kubernetes-group-version-kind"
_REFERENCE: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_OPEN: Final[JsonSchema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_WELL_KNOWN: Final[dict[str, JsonSchema]] = {
    f"{_META}ObjectMeta": {"type": "object"},
    f"{_META}Time": {"type": "string", "format": "date-time"},
    f"{_META}MicroTime": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _OPEN,
    f"{_META}FieldsV1": _OPEN,
}
"""Schemas that the document describes only roughly."""
_COLLECTION: Final = re.compile(
    r"/apis/(?P<group>[^/]+)/(?P<version>[^/]+)/(?P<namespaced>namespaces/\{namespace\}/)?(?P<plural>[^/{]+)"
)


def kinds_in_openapi(source: str, document: Any) -> list[KindVersion]:
    """Returns the kinds of the document, which was read from `source`; kinds of Kubernetes' core group are passed over.

    Raises `ConfigError` for another kind of document, or one without kinds.
    """
    whole = document if isinstance(document, Mapping) else {}
    schemas = (whole.get("components") or {}).get("schemas")
    if not str(whole.get("openapi", "")).startswith("3.") or not isinstance(schemas, Mapping):
        raise ConfigError(
            f"{source}: expected an OpenAPI v3 document with components.schemas, got "
            f"{', '.join(map(str, whole)) or 'something else'}; get one: kubectl get --raw /openapi/v3/apis/GROUP/VERSION"
        )
    found = list(_kinds(source, whole.get("paths") or {}, schemas))
    if not found:
        raise ConfigError(
            f"{source}: expected kinds with paths below /apis, got none among {len(schemas)} schemas; get the document of "
            f"one group: kubectl get --raw /openapi/v3/apis/GROUP/VERSION"
        )
    return found


def _kinds(source: str, paths: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[KindVersion]:
    by_kind = {kind: name for name, schema in schemas.items() for kind in _kinds_of(schema)}
    seen: set[tuple[str, str, str]] = set()
    for path in sorted(paths, key=lambda path: ("{namespace}" not in path, path)):
        match = _COLLECTION.fullmatch(path)
        kind = _kind_of_operation(paths[path].get("post") or {}) if match else None
        if match is None or kind is None or kind in seen or kind not in by_kind:
            continue
        seen.add(kind)
        schema = _Resolver(schemas).resolved(schemas[by_kind[kind]])
        schema.pop(_KIND, None)
        yield KindVersion(
            group=kind[0],
            version=kind[1],
            kind=kind[2],
            plural=match["plural"],
            namespaced=match["namespaced"] is not None,
            has_status=f"{path}/{{name}}/status" in paths,
            schema=checked_schema(schema, f"{source}: {kind[2]}"),
            source=source,
        )


def _kinds_of(schema: Any) -> Iterator[tuple[str, str, str]]:
    for each in schema.get(_KIND, ()) if isinstance(schema, Mapping) else ():
        yield each.get("group", ""), each.get("version", ""), each.get("kind", "")


def _kind_of_operation(operation: Mapping[str, Any]) -> tuple[str, str, str] | None:
    found = operation.get(_KIND)
    return (found["group"], found["version"], found["kind"]) if isinstance(found, Mapping) else None


class _Resolver:
    """Replaces references by what they refer to; what would hold itself becomes an open object."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._under_way: list[str] = []

    def resolved(self, schema: Mapping[str, Any]) -> JsonSchema:
        """Returns the schema without references."""
        several = schema.get("allOf")
        if isinstance(several, list) and len(several) == 1 and "$ref" in several[0]:  # beside a default or description
            own = {key: value for key, value in schema.items() if key != "allOf"}
            return self.resolved(several[0]) | self.resolved(own)
        if "$ref" in schema:
            return self._referred(str(schema["$ref"]))
        return {key: self._keyword(key, value) for key, value in schema.items()}

    def _referred(self, reference: str) -> JsonSchema:
        name = reference.removeprefix(_REFERENCE)
        if name in _WELL_KNOWN:
            return dict(_WELL_KNOWN[name])
        if name in self._under_way or name not in self._schemas:
            return dict(_OPEN)
        self._under_way.append(name)
        found = self.resolved(self._schemas[name])
        self._under_way.pop()
        return found

    def _keyword(self, key: str, value: Any) -> Any:
        if key == "properties":
            return {name: self.resolved(child) for name, child in value.items()}
        if key in {"items", "additionalProperties", "not"} and isinstance(value, Mapping):
            return self.resolved(value)
        if key in {"allOf", "anyOf", "oneOf"}:
            return [self.resolved(child) for child in value]
        return value
