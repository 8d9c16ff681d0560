"""Checks that a schema is structural, and that each default is valid.

The shape of a value (types, fields, defaults) is outside of `allOf`, `anyOf`, `oneOf` and `not`; inside of them are
only conditions on values whose shape is known.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from navarch.errors import DefinitionError
from navarch.schema import cel
from navarch.schema.json_schema import JsonSchema
from navarch.schema.patterns import pattern_error
from navarch.schema.values.checks import compile_check
from navarch.schema.values.defaulting import prune_unknown
from navarch.schema.values.embedded import compile_embedded
from navarch.schema.values.list_types import MISSING, same
from navarch.schema.values.rules import compile_rules
from navarch.schema.values.violations import SchemaViolation


@dataclass(frozen=True, slots=True)
class DefinitionFault:
    """`field` is the path in the manifest, `message` says what was expected and what was found, `remedy` what to do.

    `told` is the API server's message, if it is known: `Invalid value: …`.
    """

    field: str
    message: str
    remedy: str
    told: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}; {self.remedy}"


def unexpected(path: str, expected: str, got: Any, remedy: str, *, told: str = "") -> DefinitionFault:
    """Returns a fault in the common form."""
    return DefinitionFault(path, f"expected {expected}, got {got}", remedy, told)


INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_METADATA_FIELDS = {"name", "generateName"}
_FORBIDDEN_IN_JUNCTORS = (
    "type",
    "default",
    "title",
    "description",
    "nullable",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)


def structural_faults(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """Yields every part of `schema`, the root of a kind, that is not structural."""
    if schema.get("type", "object") != "object":
        yield DefinitionFault(f"{path}.type", f"expected object at the root, got {schema['type']}", "make it an object")
    if schema.get("additionalProperties") is not None:
        yield unexpected(
            f"{path}.additionalProperties", "named fields at the root", "a map", "move the map into a field"
        )
    metadata = schema.get("properties", {}).get("metadata")
    if metadata is not None:
        yield from _metadata_faults(metadata, f"{path}.properties[metadata]")
    yield from _node_faults(schema, path, root=True)
    yield from _completeness(schema, schema, path)


def _metadata_faults(metadata: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    allowed = {"type", "properties", "default"}
    extra = [key for key in metadata if key not in allowed]
    extra += [key for key in metadata.get("properties", {}) if key not in _METADATA_FIELDS]
    if extra:
        yield unexpected(path, "metadata to constrain only name and generateName", ", ".join(extra), "remove the rest")


def children(schema: JsonSchema, path: str) -> Iterator[tuple[JsonSchema, str]]:
    """Yields the schemas directly inside `schema` that shape its value."""
    items, values = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, dict):
        yield items, f"{path}.items"
    if isinstance(values, dict):
        yield values, f"{path}.additionalProperties"
    for name, child in schema.get("properties", {}).items():
        yield child, f"{path}.properties[{name}]"


def junctors(schema: JsonSchema, path: str) -> Iterator[tuple[JsonSchema, str]]:
    """Yields the schemas under `allOf`, `anyOf`, `oneOf` and `not`."""
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(schema.get(junctor, ())):
            yield part, f"{path}.{junctor}[{index}]"
    if "not" in schema:
        yield schema["not"], f"{path}.not"


def _node_faults(schema: JsonSchema, path: str, *, root: bool = False) -> Iterator[DefinitionFault]:
    yield from _shape_faults(schema, path, root=root)
    yield from _pattern_faults(schema, path)
    for part, inner in junctors(schema, path):
        if not _says_int_or_string(schema, part, inner.removeprefix(path)):
            yield from _condition_faults(part, inner)
    for child, inner in children(schema, path):
        yield from _node_faults(child, inner)


def _shape_faults(schema: JsonSchema, path: str, *, root: bool) -> Iterator[DefinitionFault]:
    preserves = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    kind = schema.get("type")
    if kind == "array" and "items" not in schema:
        yield unexpected(f"{path}.items", "a schema for the items of a list", "none", "say what the items are")
    if embedded and kind != "object":
        yield unexpected(f"{path}.type", "an embedded resource to be an object", kind, "set type: object")
    elif not kind and not int_or_string and not preserves:
        yield unexpected(f"{path}.type", "a type", "none", "set type, or preserve unknown fields")
    if int_or_string and (preserves or embedded):
        yield unexpected(path, "an int-or-string and nothing else", "also an object", "keep one of them")
    if embedded and "additionalProperties" in schema:
        yield unexpected(f"{path}.additionalProperties", "an embedded resource", "a map", "remove additionalProperties")
    if embedded and not preserves and not schema.get("properties"):
        yield unexpected(
            f"{path}.properties", "fields, or Preserve, on an embedded resource", "neither", "add Preserve()"
        )
    if root or embedded:
        yield from _type_field_faults(schema.get("properties", {}), path)


def _type_field_faults(properties: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    for name, expected in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        got = properties.get(name, {}).get("type", expected if name not in properties else None)
        if got != expected:
            yield unexpected(f"{path}.properties[{name}].type", expected, got, f"set type: {expected}")


def _pattern_faults(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    if schema.get("pattern"):
        error = pattern_error(schema["pattern"])
        if error is not None:
            yield unexpected(
                f"{path}.pattern",
                "a regular expression in RE2's syntax",
                f"{schema['pattern']!r} ({error})",
                "RE2 has no look-around and no back-references: write it without, or use a Rule",
            )


def _says_int_or_string(schema: JsonSchema, part: JsonSchema, junctor: str) -> bool:
    """The one exception: `anyOf` integer and string may be written out, alone or as the first of `allOf`."""
    if schema.get("anyOf") == INT_OR_STRING and junctor.startswith(".anyOf"):
        return True
    return junctor == ".allOf[0]" and part == {"anyOf": INT_OR_STRING}


def _condition_faults(part: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    for keyword in _FORBIDDEN_IN_JUNCTORS:
        if part.get(keyword) not in (None, "", False, [], {}) or (part.get(keyword) == {} and keyword == "default"):
            remedy = f"move {keyword} out of {path.rpartition('.')[2]}"
            yield unexpected(f"{path}.{keyword}", "only conditions on values here", keyword, remedy)
    if "metadata" in part.get("properties", {}):
        yield unexpected(
            f"{path}.properties[metadata]", "conditions on other fields", "metadata", "write a rule instead"
        )
    yield from _pattern_faults(part, path)
    first_any_of = part.get("anyOf") == INT_OR_STRING and path.endswith(".allOf[0]")
    for inner, inner_path in junctors(part, path):
        if not first_any_of:
            yield from _condition_faults(inner, inner_path)
    for child, inner_path in children(part, path):
        if not inner_path.endswith(".additionalProperties"):
            yield from _condition_faults(child, inner_path)


def _completeness(conditions: JsonSchema, shape: JsonSchema | None, path: str) -> Iterator[DefinitionFault]:
    """Whatever a junctor speaks of has a shape outside of it."""
    for part, inner in junctors(conditions, path):
        yield from _counterparts(part, shape, inner)


def _counterparts(part: JsonSchema, shape: JsonSchema | None, path: str) -> Iterator[DefinitionFault]:
    if shape is None:
        yield unexpected(path, "a value whose shape is given outside of the junctor", "an unknown one", "give it there")
        return
    yield from _completeness(part, shape, path)
    if isinstance(part.get("items"), dict):
        yield from _counterparts(part["items"], shape.get("items"), f"{path}.items")
    for name, child in part.get("properties", {}).items():
        yield from _counterparts(child, shape.get("properties", {}).get(name), f"{path}.properties[{name}]")


def default_faults(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """Yields defaults that the server would refuse or prune in an object."""
    if schema.get("default") is not None:
        yield from _own(schema, path)
    for child, inner in children(schema, path):
        yield from default_faults(child, inner)


def _own(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    given = schema["default"]
    pruned = copy.deepcopy(given)
    unknown = prune_unknown(pruned, schema, root=False)
    if not same(pruned, given):
        yield unexpected(f"{path}.default", "a default with known fields only", ", ".join(unknown), "remove them")
    for violation in _violations(schema):
        got = f"{given!r}: {_reason(violation)}"
        yield unexpected(f"{path}.default", "a default that is valid", got, "change it, or the limits")


def _reason(violation: SchemaViolation) -> str:
    """The server's words; of the default itself, which has no path, without the place where they repeat the path."""
    cause = violation.cause()
    if cause.field:
        return f"{cause.message} (at {cause.field})"
    return cause.message if violation.tail is None else violation.head + violation.tail.removeprefix(" in body ")


def _violations(schema: JsonSchema) -> list[SchemaViolation]:
    given = schema["default"]
    found = list(compile_check(schema)(given, MISSING))
    embedded = compile_embedded(schema, root=False)
    found += embedded(given) if embedded is not None else ()
    return found or broken_rules(schema, given)


def broken_rules(schema: JsonSchema, value: Any) -> list[SchemaViolation]:
    """Returns the rules of a schema that `value` breaks, as a new value or as an unchanged one."""
    try:
        rules = compile_rules(schema, is_object=False)
    except DefinitionError:
        return []  # said where the rules are looked at
    if rules is None:
        return []
    budget = cel.CostBudget()
    return rules.check(value, value, lambda: False, budget) or rules.check(value, MISSING, lambda: False, budget)
