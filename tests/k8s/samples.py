"""JSON made from Kubernetes' own schemas: with every field set, or with some of them."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from hypothesis import strategies as st

from kubernetes_api.annotations import reference
from kubernetes_api.kinds import served_kinds
from kubernetes_api.naming import class_name, module_of
from navarch.api import Object
from navarch.k8s.published import META, published

Json = dict[str, Any]

EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
PROPS = f"{EXTENSIONS}.JSONSchemaProps"
OPAQUE: Json = {
    f"{META}.Time": "2026-01-02T03:04:05Z",
    f"{META}.MicroTime": "2026-01-02T03:04:05.000006Z",
    f"{META}.FieldsV1": {"f:spec": {"f:replicas": {}}},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "1500m",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "25%",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"kind": "Anything", "nested": [1, {"deep": None}]},
    f"{EXTENSIONS}.JSON": {"any": [1, "two", None]},
    f"{EXTENSIONS}.JSONSchemaPropsOrArray": [{"type": "string"}, {"type": "integer"}],
    f"{EXTENSIONS}.JSONSchemaPropsOrBool": {"type": "string"},
    f"{EXTENSIONS}.JSONSchemaPropsOrStringArray": ["one", "two"],
}
"""Values of the schemas that do not say, or not fully, what they hold."""
SCALARS: Json = {"string": "text", "integer": 7, "number": 0.5, "boolean": True}
MAX_DEPTH = 6
"""Below this, optional fields are left out."""
KINDS = sorted(served_kinds(published()))
"""The schemas of all kinds."""


def class_of(schema: str) -> type[Any]:
    """The class that was generated for a schema."""
    group, version = module_of(schema)
    module = importlib.import_module(f"navarch.k8s.{group}.{version}")
    found: type[Any] = getattr(module, class_name(schema))
    return found


def full(schema: str, above: tuple[str, ...] = ()) -> Any:
    """A value of a schema with every field set. A struct inside itself is left out the second time."""
    if schema in OPAQUE:
        return OPAQUE[schema]
    definition = published().schema(schema)
    found = {
        name: value
        for name, inner in definition.get("properties", {}).items()
        if (value := _full_value(inner, (*above, schema))) is not None
    }
    return found | constants(schema)


def constants(schema: str) -> Json:
    """The fields of a schema that take only certain values: a kind's identity, the status of a condition."""
    if schema == f"{META}.Condition":
        return {"status": "True"}
    if schema not in KINDS:
        return {}
    kind: type[Object] = class_of(schema)
    return {"apiVersion": kind.__kind__.api_version, "kind": kind.__kind__.kind}


def _full_value(schema: Json, above: tuple[str, ...]) -> Any:
    if target := reference(schema):
        return None if target in above else full(target, above)
    if schema["type"] == "array":
        item = _full_value(schema["items"], above)
        return [] if item is None else [item]
    if schema["type"] == "object":
        item = _full_value(schema["additionalProperties"], above)
        return {} if item is None else {"key": item}
    return "aGVsbG8=" if schema.get("format") == "byte" else SCALARS[schema["type"]]


@cache
def some(schema: str, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a schema in which the optional fields may be missing or null, the deeper the more often."""
    if schema in OPAQUE:
        return st.just(OPAQUE[schema])
    definition = published().schema(schema)
    required = set(definition.get("required", ()))
    fields = {name: _some_value(inner, depth + 1) for name, inner in definition.get("properties", {}).items()}
    optional = {name: st.none() | value for name, value in fields.items() if name not in required}
    if depth > MAX_DEPTH:
        optional = {}
    given = {name: value for name, value in fields.items() if name in required}
    return st.fixed_dictionaries(given, optional=optional).map(lambda found: found | constants(schema))


def _some_value(schema: Json, depth: int) -> st.SearchStrategy[Any]:
    if target := reference(schema):
        return st.deferred(lambda: some(target, depth))
    if schema["type"] == "array":
        return st.lists(_some_value(schema["items"], depth), max_size=2)
    if schema["type"] == "object":
        return st.dictionaries(st.sampled_from(["a", "b"]), _some_value(schema["additionalProperties"], depth))
    if schema.get("format") == "byte":
        return st.sampled_from(["", "aGVsbG8="])
    return _SCALARS[schema["type"]]


_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "text", "ünïcode"]),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "number": st.sampled_from([0.0, 0.5, 1e9]),
    "boolean": st.booleans(),
}
