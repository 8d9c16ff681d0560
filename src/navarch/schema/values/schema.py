"""`Schema`: a structural schema, compiled once and used many times."""

from __future__ import annotations

import copy
from typing import Any

from navarch.errors import Cause
from navarch.schema import cel
from navarch.schema.json_schema import JsonSchema
from navarch.schema.values.checks import compile_check
from navarch.schema.values.defaulting import drop_nulls, fill_defaults, prune_unknown
from navarch.schema.values.embedded import compile_embedded
from navarch.schema.values.list_types import MISSING, compile_uniqueness
from navarch.schema.values.rules import compile_rules
from navarch.schema.values.violations import SchemaViolation, causes, invalid

_BLOCKING = {
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
}
_NOT_ASKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class Schema:
    """The compiled structural schema of a CRD. Immutable, so it can be shared.

    `whole_object` is False for the schema of a part, which has no apiVersion, kind and metadata to keep.

    >>> schema = Schema({"type": "object", "properties": {"size": {"type": "integer", "maximum": 3, "default": 1}}})
    >>> [str(cause) for cause in schema.validate({"size": 5})]
    ['size: Invalid value: 5: size in body should be less than or equal to 3']
    """

    def __init__(self, schema: JsonSchema, *, whole_object: bool = True) -> None:
        self.schema = schema
        self._whole_object = whole_object
        self._check = compile_check(schema, root=whole_object)
        self._embedded = compile_embedded(schema)
        self._uniqueness = compile_uniqueness(schema)
        self._rules = compile_rules(schema, is_object=whole_object)

    def validate(self, value: Any, old: Any = None) -> list[Cause]:
        """Returns every fault of `value`; with `old`, the value before the update, it evaluates transition rules too.

        Ignores faults of parts that have not changed since `old`.
        """
        before = MISSING if old is None else old
        found = list(self._check(value, before))
        if self._embedded is not None:
            found += self._embedded(value)
        if self._uniqueness is not None and not (old is not None and self._uniqueness(old)):
            found += self._uniqueness(value)
        found += self._broken_rules(value, before, found)
        return causes(found)

    def _broken_rules(self, value: Any, before: Any, found: list[SchemaViolation]) -> list[SchemaViolation]:
        if self._rules is None:
            return []
        if any(fault.reason in _BLOCKING for fault in found):
            return [invalid(None, _NOT_ASKED)]
        return self._rules.check(value, before, lambda: False, cel.CostBudget())

    def default(self, value: Any) -> None:
        """Sets missing fields that have a default, in place."""
        fill_defaults(value, self.schema)

    def prune(self, value: Any) -> list[str]:
        """Removes fields that the schema lacks, in place, and returns their paths."""
        return prune_unknown(value, self.schema, root=self._whole_object)

    def admit(self, value: Any) -> list[str]:
        """Prepares a body as the API server does, in place: defaults, prunes, and removes nulls that are not permitted.

        Returns the paths of unknown fields, which a strict server reports.
        """
        self.default(value)
        dropped = self.prune(value)
        drop_nulls(value, self.schema)
        return dropped


def validate(value: Any, schema: JsonSchema, old: Any = None) -> list[Cause]:
    """Returns every fault of `value`, as the API server reports them. For more than one value, create a `Schema`."""
    return Schema(schema).validate(value, old)


def default(value: Any, schema: JsonSchema) -> Any:
    """Returns a copy of `value` with the defaults of the schema.

    >>> default({}, {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}})
    {'size': 1}
    """
    filled = copy.deepcopy(value)
    fill_defaults(filled, schema)
    return filled


def prune(value: Any, schema: JsonSchema) -> Any:
    """Returns a copy of `value` without the fields that the schema lacks.

    >>> prune({"size": 1, "colour": "red"}, {"type": "object", "properties": {"size": {"type": "integer"}}})
    {'size': 1}
    """
    pruned = copy.deepcopy(value)
    prune_unknown(pruned, schema)
    return pruned
