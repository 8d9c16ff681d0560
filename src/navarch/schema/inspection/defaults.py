"""Defaults looked at: each has to be a valid value of its own schema."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from navarch.errors import DefinitionError
from navarch.schema import cel
from navarch.schema.document import JsonSchema
from navarch.schema.inspection.faults import DefinitionFault, unexpected
from navarch.schema.inspection.structural import children
from navarch.schema.values.checks import compile_check
from navarch.schema.values.correlation import MISSING, same
from navarch.schema.values.embedded import compile_embedded
from navarch.schema.values.rules import compile_rules
from navarch.schema.values.shaping import prune_unknown
from navarch.schema.values.violations import Violation

__all__ = ["broken_rules", "default_faults"]


def default_faults(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """Defaults that would be refused, or cut, if a user wrote them."""
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


def _reason(violation: Violation) -> str:
    """The server's words; of the default itself, which has no path, without the place where they repeat the path."""
    cause = violation.cause()
    if cause.field:
        return f"{cause.message} (at {cause.field})"
    return cause.message if violation.tail is None else violation.head + violation.tail.removeprefix(" in body ")


def _violations(schema: JsonSchema) -> list[Violation]:
    given = schema["default"]
    found = list(compile_check(schema)(given, MISSING))
    embedded = compile_embedded(schema, root=False)
    found += embedded(given) if embedded is not None else ()
    return found or broken_rules(schema, given)


def broken_rules(schema: JsonSchema, value: Any) -> list[Violation]:
    """The rules of a schema that `value` breaks, as a new value or as one that has not changed."""
    try:
        rules = compile_rules(schema, is_object=False)
    except DefinitionError:
        return []  # said where the rules are looked at
    if rules is None:
        return []
    budget = cel.CostBudget()
    return rules.check(value, value, lambda: False, budget) or rules.check(value, MISSING, lambda: False, budget)
