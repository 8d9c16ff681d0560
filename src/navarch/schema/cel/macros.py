"""Expands macros: `has`, the comprehensions, `optMap` and `sortBy` bind names or test fields."""

from __future__ import annotations

from navarch.schema.cel.errors import Faults
from navarch.schema.cel.expressions import CallExpr, ComprehensionExpr, Expr, IdentExpr, OptionalMapExpr, SelectExpr

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


def expand(call: CallExpr, faults: Faults) -> Expr:
    """Returns the expansion of a macro; any other `call` unchanged. Adds its faults to `faults`."""
    if call.target is None:
        return _has(call, faults) if call.function == "has" and len(call.args) == 1 else call
    if call.function in {"optMap", "optFlatMap"} and len(call.args) == 2:
        return _optional_map(call, call.target, faults)
    for count, macros in ((1, _ONE_VARIABLE), (2, _TWO_VARIABLES)):
        if call.function in macros and 1 <= len(call.args) - count <= macros[call.function]:
            macro = _ALIASES.get(call.function, call.function)
            return _comprehension(call, call.target, macro, count, faults)
    return call


def _has(call: CallExpr, faults: Faults) -> Expr:
    argument = call.args[0]
    if not isinstance(argument, SelectExpr) or argument.optional:
        said = argument.said("invalid argument to has() macro")
        problem = "has() does not test this"
        faults.add(argument.at, problem, said, expected="a field selection", remedy="write has(a.b)")
        return call
    return SelectExpr(
        start=call.start, at=argument.at, mark=call.mark, operand=argument.operand, field=argument.field, test=True
    )


def _optional_map(call: CallExpr, target: Expr, faults: Faults) -> OptionalMapExpr:
    said = f"{call.function}() variable name must be a simple identifier"
    return OptionalMapExpr(
        start=call.start,
        at=call.at,
        mark=call.mark,
        target=target,
        variable=_variable(call.args[0], call.function, faults, said),
        body=call.args[1],
        flat=call.function == "optFlatMap",
    )


def _comprehension(call: CallExpr, target: Expr, macro: str, count: int, faults: Faults) -> ComprehensionExpr:
    variables = tuple(_variable(argument, call.function, faults) for argument in call.args[:count])
    if len(set(variables)) < count and "" not in variables:
        second = call.args[1]
        said = second.said(f"duplicate variable name: {variables[0]}")
        faults.add(second.at, f"both variables are called {variables[0]!r}", said, remedy="rename one")
    *conditions, body = call.args[count:]
    return ComprehensionExpr(
        start=call.start,
        at=call.at,
        mark=call.mark,
        macro=macro,
        range=target,
        variables=variables,
        condition=conditions[0] if conditions else None,
        body=body,
    )


def _variable(argument: Expr, macro: str, faults: Faults, said: str = "argument must be a simple name") -> str:
    """The name of a variable; nothing if it has none, which is a fault."""
    if isinstance(argument, IdentExpr) and argument.name not in _RESERVED_VARIABLES:
        return argument.name
    said = "iteration variable overwrites accumulator variable" if isinstance(argument, IdentExpr) else said
    problem, remedy = f"{macro}() cannot bind this", f"write {macro}(x, …)"
    faults.add(argument.at, problem, argument.said(said), expected="a simple name", remedy=remedy)
    return ""
