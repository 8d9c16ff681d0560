"""Unions of tagged models: one object whose tag says which fields it has."""

from __future__ import annotations

from typing import Any

from navarch.errors import DefinitionError
from navarch.schema.document import JsonSchema
from navarch.schema.generation.where import Where

__all__ = ["merge_tagged"]


def merge_tagged(members: list[tuple[Any, JsonSchema]], where: Where) -> JsonSchema:
    """All fields of all members side by side; `oneOf` requires those of the member that the tag names.

    Members that use one name for different things have no common schema. Their defaults are left out: the server
    would add them to the other members too.
    """
    tags = {struct.__struct_config__.tag: schema for struct, schema in members}
    tag_field = members[0][0].__struct_config__.tag_field
    properties: JsonSchema = {tag_field: {"type": "string", "enum": list(tags)}}
    for struct, schema in members:
        if schema.get("x-kubernetes-validations"):
            raise DefinitionError(
                f"{where.place}: expected members of a union without rules, got rules on {struct.__name__}; "
                f"write them on the field of the union"
            )
        _merge(properties, schema.get("properties", {}), where)
    alternatives = [_alternative(tag_field, tag, schema, properties) for tag, schema in tags.items()]
    return {"type": "object", "properties": properties, "required": [tag_field], "oneOf": alternatives}


def _merge(properties: JsonSchema, added: JsonSchema, where: Where) -> None:
    for name, schema in added.items():
        known: JsonSchema = properties.get(name) or schema
        properties[name] = known
        if _undescribed(known) != _undescribed(schema):
            raise DefinitionError(
                f"{where.place}: expected one schema for {name!r} in every member of the union, got several; "
                f"rename the field in one of them, or use one Model with one_of=(OneOf(...),)"
            )
        text = schema.get("description", "")
        if text not in known.get("description", ""):
            known["description"] = f"{known.get('description', '')}\n{text}".strip()


def _undescribed(schema: JsonSchema) -> JsonSchema:
    """Members may say different things of a field that has the same values."""
    bare = {key: value for key, value in schema.items() if key != "description"}
    for key in ("items", "additionalProperties"):
        if isinstance(bare.get(key), dict):
            bare[key] = _undescribed(bare[key])
    if "properties" in bare:
        bare["properties"] = {name: _undescribed(child) for name, child in bare["properties"].items()}
    return bare


def _alternative(tag_field: str, tag: Any, schema: JsonSchema, properties: JsonSchema) -> JsonSchema:
    foreign = [name for name in properties if name != tag_field and name not in schema.get("properties", {})]
    alternative: JsonSchema = {"properties": {tag_field: {"enum": [tag]}}}
    if schema.get("required"):
        alternative["required"] = schema["required"]
    if foreign:
        alternative["not"] = {"anyOf": [{"required": [name]} for name in foreign]}
    return alternative
