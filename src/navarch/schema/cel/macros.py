"""Calls that are no calls: `has`, the comprehensions, `optMap` and `sortBy` bind names or test fields."""

from __future__ import annotations

from navarch.schema.cel.errors import error_at
from navarch.schema.cel.nodes import Call, Comprehension, Ident, Node, OptionalMap, Select

_ALIASES = {"exists_one": "existsOne"}

# The most arguments each macro takes after its variables: two are a filter and a transform.
_ONE_VARIABLE = {"all": 1, "exists": 1, "exists_one": 1, "filter": 1, "map": 2, "sortBy": 1}
_TWO_VARIABLES = {
    "all": 1,
    "exists": 1,
    "exists_one": 1,
    "existsOne": 1,
    "transformList": 2,
    "transformMap": 2,
    "transformMapEntry": 2,
}
_RESERVED_VARIABLES = frozenset({"__result__", "@result"})


def expand(call: Call, source: str) -> Node:
    """What `call` means, if it is a macro; otherwise `call` itself."""
    if call.target is None:
        return _has(call, source) if call.function == "has" and len(call.args) == 1 else call
    if call.function in {"optMap", "optFlatMap"} and len(call.args) == 2:
        return _optional_map(call, call.target, source)
    for count, macros in ((1, _ONE_VARIABLE), (2, _TWO_VARIABLES)):
        if call.function in macros and 1 <= len(call.args) - count <= macros[call.function]:
            macro = _ALIASES.get(call.function, call.function)
            return _comprehension(call, call.target, macro, count, source)
    return call


def _has(call: Call, source: str) -> Select:
    argument = call.args[0]
    if not isinstance(argument, Select) or argument.optional:
        raise error_at(
            source, argument.at, "has() does not test this", expected="a field selection", remedy="write has(a.b)"
        )
    return Select(start=call.start, at=argument.at, operand=argument.operand, field=argument.field, test=True)


def _optional_map(call: Call, target: Node, source: str) -> OptionalMap:
    return OptionalMap(
        start=call.start,
        at=call.at,
        target=target,
        variable=_variable(call.args[0], call.function, source),
        body=call.args[1],
        flat=call.function == "optFlatMap",
    )


def _comprehension(call: Call, target: Node, macro: str, count: int, source: str) -> Comprehension:
    variables = tuple(_variable(argument, call.function, source) for argument in call.args[:count])
    if len(set(variables)) < count:
        raise error_at(source, call.args[1].at, f"both variables are called {variables[0]!r}", remedy="rename one")
    *conditions, body = call.args[count:]
    return Comprehension(
        start=call.start,
        at=call.at,
        macro=macro,
        range=target,
        variables=variables,
        condition=conditions[0] if conditions else None,
        body=body,
    )


def _variable(argument: Node, macro: str, source: str) -> str:
    if not isinstance(argument, Ident) or argument.name in _RESERVED_VARIABLES:
        raise error_at(
            source, argument.at, f"{macro}() cannot bind this", expected="a simple name", remedy=f"write {macro}(x, …)"
        )
    return argument.name
