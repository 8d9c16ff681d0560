"""Whether a document has the form of a CustomResourceDefinition at all: texts where there are texts, lists where lists.

All other inspection relies on it. As on the server, a null counts as absent, except where any JSON may stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from navarch.schema.inspection.faults import DefinitionFault, unexpected

__all__ = ["CRD_FORM", "SCHEMA_FORM", "well_formed"]

Form: TypeAlias = Any
"""A Python type, object for any JSON; `[form]` for a list, `{"*": form}` for a map, `{name: form, ...}` for a struct; a
tuple for a choice.
"""

_NUMBER = (int, float)
_NAMES = {str: "a text", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "an object"}

_RULE_FORM: Form = dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), str)
_RULE_FORM["optionalOldSelf"] = bool

SCHEMA_FORM: Form = {
    **dict.fromkeys(("id", "$schema", "$ref", "description", "type", "format", "title", "pattern"), str),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), int),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"), bool),
    **dict.fromkeys(("x-kubernetes-list-type", "x-kubernetes-map-type"), str),
    "required": [str],
    "enum": list,
    "default": object,
    "example": object,
    "externalDocs": dict,
    "x-kubernetes-list-map-keys": [str],
    "x-kubernetes-preserve-unknown-fields": bool,
    "x-kubernetes-embedded-resource": bool,
    "x-kubernetes-int-or-string": bool,
    "x-kubernetes-validations": [_RULE_FORM],
}
SCHEMA_FORM |= {
    "allOf": [SCHEMA_FORM],
    "anyOf": [SCHEMA_FORM],
    "oneOf": [SCHEMA_FORM],
    "not": SCHEMA_FORM,
    "properties": {"*": SCHEMA_FORM},
    "items": (SCHEMA_FORM, list),
    "additionalProperties": (SCHEMA_FORM, bool),
}

_VERSION_FORM: Form = {
    **dict.fromkeys(("name", "deprecationWarning"), str),
    **dict.fromkeys(("served", "storage", "deprecated"), bool),
    "schema": {"openAPIV3Schema": SCHEMA_FORM},
    "subresources": {
        "status": dict,
        "scale": dict.fromkeys(("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), str),
    },
    "additionalPrinterColumns": [
        dict.fromkeys(("name", "type", "format", "description", "jsonPath"), str) | {"priority": int}
    ],
    "selectableFields": [{"jsonPath": str}],
}
_CLIENT_FORM: Form = {"url": str, "service": dict.fromkeys(("name", "namespace", "path"), str) | {"port": int}}
CRD_FORM: Form = {
    "metadata": {"name": str, "annotations": {"*": str}},
    "spec": {
        **dict.fromkeys(("group", "scope"), str),
        "names": {
            **dict.fromkeys(("plural", "singular", "kind", "listKind"), str),
            "shortNames": [str],
            "categories": [str],
        },
        "versions": [_VERSION_FORM],
        "conversion": {
            "strategy": str,
            "webhook": {"clientConfig": _CLIENT_FORM, "conversionReviewVersions": [str]},
        },
    },
}


def well_formed(value: Any, form: Form, path: str = "") -> tuple[Any, list[DefinitionFault]]:
    """`value` without its nulls, and everything about it that has another form.

    >>> well_formed({"type": 3, "pattern": None}, SCHEMA_FORM, "spec")[1][0].message
    'expected a text, got 3'
    """
    reading = _Reading()
    return reading.read(value, form, path), reading.faults


@dataclass(slots=True)
class _Reading:
    faults: list[DefinitionFault] = field(default_factory=list)

    def read(self, value: Any, form: Form, path: str) -> Any:
        wanted = next((choice for choice in _choices(form) if _is(value, choice)), None)
        if wanted is None:
            expected = " or ".join(dict.fromkeys(_NAMES[_type_of(choice)] for choice in _choices(form)))
            self.faults.append(unexpected(path, expected, repr(value), "correct it"))
            return value
        if isinstance(wanted, list):
            return [self.read(item, wanted[0], f"{path}[{index}]") for index, item in enumerate(value)]
        if isinstance(wanted, dict):
            return self._members(value, wanted, path)
        return value

    def _members(self, value: dict[str, Any], form: dict[str, Form], path: str) -> dict[str, Any]:
        if "*" in form:
            return {name: self.read(inner, form["*"], f"{path}[{name}]") for name, inner in value.items()}
        return {
            name: self.read(inner, form[name], f"{path}.{name}".removeprefix(".")) if name in form else inner
            for name, inner in value.items()
            if inner is not None or form.get(name, object) is object
        }


def _choices(form: Form) -> tuple[Form, ...]:
    return form if isinstance(form, tuple) else (form,)


def _type_of(form: Form) -> type:
    return form if isinstance(form, type) else type(form)


def _is(value: Any, form: Form) -> bool:
    """JSON tells true from 1, Python does not."""
    return isinstance(value, _type_of(form)) and (form in (bool, object) or not isinstance(value, bool))
