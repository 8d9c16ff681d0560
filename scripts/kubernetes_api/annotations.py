"""Schemas as Python annotations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kubernetes_api.naming import class_name
from navarch.k8s.published import META, SCHEMA_REFERENCE

Json = dict[str, Any]


@dataclass(frozen=True)
class Annotation:
    """A type as it is written, what has to be imported for it, and the structs it names by their schemas."""

    text: str
    imports: frozenset[tuple[str, str]] = frozenset()
    structs: frozenset[str] = frozenset()

    def within(self, template: str, *imports: tuple[str, str]) -> Annotation:
        """The type inside another: `list[{}]`."""
        return replace(self, text=template.format(self.text), imports=self.imports | set(imports))

    def or_none(self) -> Annotation:
        """The type or None; what can be anything can already be None."""
        return self if self.text == "Any" else self.within("{} | None")


def _imported(module: str, name: str) -> Annotation:
    return Annotation(name, frozenset({(module, name)}))


_API = "navarch.api"
_ANY = _imported("typing", "Any")
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_PROPS = f"{_EXTENSIONS}.JSONSchemaProps"

TIMES = frozenset({f"{META}.Time", f"{META}.MicroTime"})
"""Whose zero value is null on the wire, even where the schema requires them."""

WELL_KNOWN = {
    f"{META}.Time": _imported("datetime", "datetime"),
    f"{META}.MicroTime": _imported(f"{_API}.times", "MicroTime"),
    f"{META}.ObjectMeta": _imported(_API, "ObjectMeta"),
    f"{META}.ListMeta": _imported(_API, "ListMeta"),
    f"{META}.OwnerReference": _imported(_API, "OwnerReference"),
    f"{META}.ManagedFieldsEntry": _imported(_API, "ManagedFields"),
    f"{META}.Condition": _imported(_API, "Condition"),
    f"{META}.FieldsV1": _ANY.within("dict[str, {}]"),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _imported(f"{_API}.quantity", "Quantity"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _imported(_API, "IntOrString"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _ANY.within("dict[str, {}]"),
    f"{_EXTENSIONS}.JSON": _ANY,
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": Annotation(
        "JSONSchemaProps | list[JSONSchemaProps]", structs=frozenset({_PROPS})
    ),
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": Annotation("JSONSchemaProps | bool", structs=frozenset({_PROPS})),
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": Annotation(
        "JSONSchemaProps | list[str]", structs=frozenset({_PROPS})
    ),
}
"""Schemas that are no structs of their own: `navarch.api` has the type, or the schema does not say what they hold."""

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def reference(schema: Json) -> str | None:
    """The name of the schema that this one stands for; a default beside the reference makes it an `allOf` of one."""
    inner = schema["allOf"][0] if "allOf" in schema else schema
    found = inner.get("$ref")
    return found.removeprefix(SCHEMA_REFERENCE) if isinstance(found, str) else None


def annotate(schema: Json) -> Annotation:
    """The type of a value of this schema; raises ValueError for a schema that no rule covers."""
    if target := reference(schema):
        return WELL_KNOWN.get(target) or Annotation(class_name(target), structs=frozenset({target}))
    match schema:
        case {"type": "array", "items": items}:
            return _with_list_type(annotate(items).within("list[{}]"), schema)
        case {"type": "object", "additionalProperties": values}:
            return annotate(values).within("dict[str, {}]")
        case {"type": "string", "format": "byte"}:
            return Annotation("bytes")
        case {"type": "string" | "integer" | "number" | "boolean" as scalar}:
            return Annotation(_SCALARS[scalar])
        case _:
            raise ValueError(f"no Python type for the schema {schema}")


def _with_list_type(annotation: Annotation, schema: Json) -> Annotation:
    """How server-side apply merges the list; an atomic one needs no word."""
    annotated = ("typing", "Annotated")
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = ", ".join(f'"{key}"' for key in schema["x-kubernetes-list-map-keys"])
            return annotation.within(f"Annotated[{{}}, ListMap({keys})]", annotated, (_API, "ListMap"))
        case "set":
            return annotation.within("Annotated[{}, ListSet()]", annotated, (_API, "ListSet"))
        case _:
            return annotation
