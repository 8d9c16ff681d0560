"""Compiles an expression to a program."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from navarch.schema.cel.checker import check
from navarch.schema.cel.cost_estimate import estimate_cost
from navarch.schema.cel.cost_tracker import CostExceededError, CostTracker
from navarch.schema.cel.errors import CelCostError, CelEvaluationError, error_at
from navarch.schema.cel.expressions import Expr
from navarch.schema.cel.parser import parse
from navarch.schema.cel.planner import plan
from navarch.schema.cel.types import CelType
from navarch.schema.cel.validators import validate


class Program:
    """A compiled expression. Evaluation changes no state, so any number of threads can share a program."""

    def __init__(self, expression: str, root: Expr, used: tuple[str, ...], self_type: CelType | None) -> None:
        self.expression = expression
        self.result_type = root.type
        self._root = root
        self._self_type = self_type
        self._used = used
        (self._run, self._cost, _), places = plan(root, used)
        self._free_places = [None] * (places - len(used) - 1)

    @cached_property
    def estimated_cost(self) -> int:
        """The most that one evaluation can cost, in the API server's units; see `RULE_COST_LIMIT`."""
        return estimate_cost(self._root, self._self_type)

    def uses_variable(self, name: str) -> bool:
        """Returns True if the value can depend on the variable."""
        return name in self._used

    def evaluate(self, variables: Mapping[str, object], tracker: CostTracker | None = None) -> object:
        """Returns the value for variables as `value_of` returns them, and charges the cost to the tracker, by default
        one with `CALL_COST_LIMIT`.

        Raises `CelEvaluationError` if there is no value, `CelCostError` among them if the tracker has nothing left.
        """
        tracker = tracker or CostTracker()
        try:
            frame = [tracker, *[variables[name] for name in self._used], *self._free_places]
        except KeyError as error:
            raise CelEvaluationError(f"the variable {error.args[0]!r} has no value") from None
        try:
            tracker.charge(self._cost)
            return self._run(frame)
        except CostExceededError:
            raise CelCostError("operation cancelled: actual cost limit exceeded") from None
        except RecursionError:
            raise CelEvaluationError("the value is nested too deeply") from None

    def __repr__(self) -> str:
        return f"Program({self.expression!r} -> {self.result_type})"


def compile(  # noqa: A001 - read as cel.compile, like re.compile
    expression: str, variables: Mapping[str, CelType], *, result: CelType | None = None, builds: bool = False
) -> Program:
    """Parses and type-checks an expression over `variables`; with `result`, it must have exactly that type.

    An expression that `builds` may create objects, `Object.spec{…}` and `JSONPatch{…}`, as those of mutating policies
    do.

    Raises `CelError` with line, column and remedy.

    >>> from navarch.schema import cel
    >>> cel.compile("self + 1 > 2", {"self": cel.INT}).evaluate({"self": 2})
    True
    """
    try:
        return _compile(expression, variables, result, builds)
    except RecursionError:
        told = "compilation failed: ERROR: <input>:1:1: expression recursion limit exceeded"
        remedy = "split it into several rules"
        raise error_at(expression, 0, "the rule is nested too deeply", remedy=remedy, told=told) from None


def _compile(expression: str, variables: Mapping[str, CelType], result: CelType | None, builds: bool) -> Program:
    root = parse(expression, builds=builds)
    used = tuple(sorted(check(root, expression, variables, builds=builds)))
    validate(root, expression)
    if result is not None and root.type != result:
        told = f"cel expression must evaluate to a {result}"
        raise error_at(expression, root.start, f"the rule gives {root.type}", expected=str(result), told=told)
    return Program(expression, root, used, variables.get("self"))
