"""Charges the run-time cost of expressions and stops them at a limit, as the API server does.

`cost_estimate` estimates a cost before an expression is accepted, and only for CustomResourceDefinitions. The real cost
depends on the object: each step is charged to a `CostTracker`, which stops the expression at its limit. A `CostBudget`
limits several expressions together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from navarch.schema.cel.errors import CelBudgetError, CelCostError

CALL_COST_LIMIT: Final = 1_000_000
"""The most that one evaluation may cost."""
RUNTIME_COST_BUDGET: Final = 10_000_000
"""The most that all rules may cost for one custom resource, or all expressions of a policy for one request."""
MATCH_CONDITIONS_COST_BUDGET: Final = 2_500_000
"""The most that the matchConditions of one webhook or policy may cost for one request."""

OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class CostExceededError(Exception):
    """Ends an evaluation whose tracker has nothing left; operators absorb CEL's errors, but not this one."""


class StepExceededError(Exception):
    """Ends work that costs more than its caller has time for in one step, though not more than its limit.

    The caller begins the work anew where it disturbs nobody; no operator absorbs it.
    """


class CostTracker:
    """Counts the cost of one evaluation. `left` is the cost that remains.

    Hot plans subtract from `left` in place, and raise as `charge` does.
    """

    __slots__ = ("left",)

    def __init__(self, limit: int = CALL_COST_LIMIT) -> None:
        self.left = limit

    def charge(self, cost: int) -> None:
        """Subtracts `cost`. Raises `CostExceededError` if it is more than is left."""
        self.left -= cost
        if self.left < 0:
            raise CostExceededError


class Evaluable(Protocol):
    """A compiled expression, as far as a budget uses it."""

    def evaluate(self, variables: Mapping[str, object], tracker: CostTracker | None = None) -> object:
        """Returns the value; charges its cost to the tracker."""
        ...


class CostBudget:
    """Limits the cost of several evaluations together; `left` is the cost that remains. Once it `is_closed`, callers
    evaluate no further expression.

    `step` is how much of it the caller has time for: beyond it, but within the limit, `StepExceededError` is raised.
    """

    __slots__ = ("_after_step", "is_closed", "left", "limit")

    def __init__(self, limit: int = RUNTIME_COST_BUDGET, *, step: int | None = None) -> None:
        self.limit = limit
        self.left = limit
        self.is_closed = False
        self._after_step = 0 if step is None else max(0, limit - step)
        """The cost that remains when the step has ended."""

    @property
    def spent(self) -> int:
        """The cost of the evaluations so far: more than the limit if it stopped one of them."""
        return self.limit - self.left

    def charge(self, cost: int) -> None:
        """Charges the preparation of an evaluation. Raises `CelBudgetError` or `StepExceededError`."""
        self.left -= cost
        if self.left < 0:
            raise CelBudgetError(OUT_OF_BUDGET)
        if self.left < self._after_step:
            raise StepExceededError

    def evaluate(self, program: Evaluable, variables: Mapping[str, object]) -> object:
        """Returns the value of one expression and charges its cost.

        Raises `CelEvaluationError` if it has no value, `CelCostError` among them if it exceeds the limit of one
        evaluation, `CelBudgetError` if it exceeds the budget, and `StepExceededError` if it exceeds the step.
        """
        is_last = self.left < CALL_COST_LIMIT
        allowed = min(max(self.left, 0), CALL_COST_LIMIT)
        before = min(allowed, max(0, self.left - self._after_step))
        tracker = CostTracker(before)
        try:
            return program.evaluate(variables, tracker)
        except CelCostError:
            if before < allowed:
                raise StepExceededError from None
            if is_last:
                raise CelBudgetError(OUT_OF_BUDGET) from None
            raise
        finally:
            self.left -= before - tracker.left
