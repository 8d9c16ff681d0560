"""Calls that are no calls: `has`, the comprehensions, `optMap` and `sortBy` bind names or test fields."""

from __future__ import annotations

from navarch.schema.cel.errors import Faults
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


def expand(call: Call, faults: Faults) -> Node:
    """What `call` means, if it is a macro; otherwise `call` itself. What is wrong with it goes to `faults`."""
    if call.target is None:
        return _has(call, faults) if call.function == "has" and len(call.args) == 1 else call
    if call.function in {"optMap", "optFlatMap"} and len(call.args) == 2:
        return _optional_map(call, call.target, faults)
    for count, macros in ((1, _ONE_VARIABLE), (2, _TWO_VARIABLES)):
        if call.function in macros and 1 <= len(call.args) - count <= macros[call.function]:
            macro = _ALIASES.get(call.function, call.function)
            return _comprehension(call, call.target, macro, count, faults)
    return call


def _has(call: Call, faults: Faults) -> Node:
    argument = call.args[0]
    if not isinstance(argument, Select) or argument.optional:
        said = argument.said("invalid argument to has() macro")
        problem = "has() does not test this"
        faults.add(argument.at, problem, said, expected="a field selection", remedy="write has(a.b)")
        return call
    return Select(
        start=call.start, at=argument.at, mark=call.mark, operand=argument.operand, field=argument.field, test=True
    )


def _optional_map(call: Call, target: Node, faults: Faults) -> OptionalMap:
    said = f"{call.function}() variable name must be a simple identifier"
    return OptionalMap(
        start=call.start,
        at=call.at,
        mark=call.mark,
        target=target,
        variable=_variable(call.args[0], call.function, faults, said),
        body=call.args[1],
        flat=call.function == "optFlatMap",
    )


def _comprehension(call: Call, target: Node, macro: str, count: int, faults: Faults) -> Comprehension:
    variables = tuple(_variable(argument, call.function, faults) for argument in call.args[:count])
    if len(set(variables)) < count and "" not in variables:
        second = call.args[1]
        said = second.said(f"duplicate variable name: {variables[0]}")
        faults.add(second.at, f"both variables are called {variables[0]!r}", said, remedy="rename one")
    *conditions, body = call.args[count:]
    return Comprehension(
        start=call.start,
        at=call.at,
        mark=call.mark,
        macro=macro,
        range=target,
        variables=variables,
        condition=conditions[0] if conditions else None,
        body=body,
    )


def _variable(argument: Node, macro: str, faults: Faults, said: str = "argument must be a simple name") -> str:
    """The name of a variable; nothing if it has none, which is a fault."""
    if isinstance(argument, Ident) and argument.name not in _RESERVED_VARIABLES:
        return argument.name
    said = "iteration variable overwrites accumulator variable" if isinstance(argument, Ident) else said
    problem, remedy = f"{macro}() cannot bind this", f"write {macro}(x, …)"
    faults.add(argument.at, problem, argument.said(said), expected="a simple name", remedy=remedy)
    return ""
