"""What expressions cost while they run, and where they are stopped, as on the API server.

The estimate of `cost` is made before an expression is accepted, and only for CustomResourceDefinitions. What an
expression really costs depends on the object: each step is charged to a `CostTracker`, which stops the expression at
its limit. A `CostBudget` is what several expressions may cost together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from navarch.schema.cel.errors import CelBudgetError, CelCostError

if TYPE_CHECKING:
    from navarch.schema.cel.program import Program

__all__ = [
    "CALL_COST_LIMIT",
    "MATCH_CONDITIONS_COST_BUDGET",
    "OUT_OF_BUDGET",
    "RUNTIME_COST_BUDGET",
    "CostBudget",
    "CostExceededError",
    "CostTracker",
]

CALL_COST_LIMIT: Final = 1_000_000
"""The most that one evaluation may cost."""
RUNTIME_COST_BUDGET: Final = 10_000_000
"""The most that all rules may cost for one custom resource, or all expressions of a policy for one request."""
MATCH_CONDITIONS_COST_BUDGET: Final = 2_500_000
"""The most that the matchConditions of one webhook or policy may cost for one request."""

OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class CostExceededError(Exception):
    """Leaves an evaluation whose tracker has nothing left; operators absorb errors of the language, but not this one."""


class CostTracker:
    """Counts the cost of one evaluation. `left` is what it may still cost.

    Plans subtract from `left` in place where they are hot, and raise as `charge` does.
    """

    __slots__ = ("left",)

    def __init__(self, limit: int = CALL_COST_LIMIT) -> None:
        self.left = limit

    def charge(self, cost: int) -> None:
        """Counts `cost`. Raises `CostExceededError` if that is more than is left."""
        self.left -= cost
        if self.left < 0:
            raise CostExceededError


class CostBudget:
    """What several evaluations may cost together; `left` is what remains of it. Once it `is_closed`, nothing more is to be
    evaluated, whatever is left.
    """

    __slots__ = ("is_closed", "left", "limit")

    def __init__(self, limit: int = RUNTIME_COST_BUDGET) -> None:
        self.limit = limit
        self.left = limit
        self.is_closed = False

    @property
    def spent(self) -> int:
        """What the evaluations so far have cost: more than the limit if one was stopped by it."""
        return self.limit - self.left

    def charge(self, cost: int) -> None:
        """Charges what prepares an evaluation. Raises `CelBudgetError`."""
        self.left -= cost
        if self.left < 0:
            raise CelBudgetError(OUT_OF_BUDGET)

    def evaluate(self, program: Program, variables: Mapping[str, object]) -> object:
        """The value of one expression, whose cost is charged.

        Raises `CelEvaluationError` if it has none, `CelCostError` among them if it costs too much by itself, and
        `CelBudgetError` if it costs more than is left.
        """
        is_last = self.left < CALL_COST_LIMIT
        tracker = CostTracker(min(max(self.left, 0), CALL_COST_LIMIT))
        before = tracker.left
        try:
            return program.evaluate(variables, tracker)
        except CelCostError:
            if is_last:
                raise CelBudgetError(OUT_OF_BUDGET) from None
            raise
        finally:
            self.left -= before - tracker.left
