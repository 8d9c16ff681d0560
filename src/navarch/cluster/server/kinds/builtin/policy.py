"""PodDisruptionBudgets: rules, checks and columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from navarch.cluster.server.kinds.builtin.generic.checks import check_conditions, choice, int_or_percent, not_negative
from navarch.cluster.server.kinds.builtin.generic.columns import Ages, name_of
from navarch.cluster.server.kinds.builtin.generic.strategy import Rules, path_segment_faults
from navarch.cluster.server.objects.metadata import selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import invalid
from navarch.errors import Cause


def check_budget(value: Json) -> Iterator[Cause]:
    """A PodDisruptionBudget."""
    spec = value["spec"]
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    yield from int_or_percent(least, "spec.minAvailable", at_most_all=True)
    yield from int_or_percent(most, "spec.maxUnavailable", at_most_all=True)
    yield from selector_faults(spec.get("selector"), "spec.selector")
    yield from choice(
        spec.get("unhealthyPodEvictionPolicy"),
        "spec.unhealthyPodEvictionPolicy",
        ("AlwaysAllow", "IfHealthyBudget"),
    )


def budget_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Counts that can be, and conditions that say what they have to."""
    status = value.get("status") or {}
    yield from check_conditions(status.get("conditions") or (), "status.conditions")
    yield from not_negative(status, "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def budget_cells(value: Json, ages: Ages) -> list[Any]:
    """Name, least available, most unavailable, allowed disruptions, age."""
    spec = value["spec"]
    bounds = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [name_of(value), *bounds, value.get("status", {}).get("disruptionsAllowed", 0), ages.of(value)]


RULES: Final[dict[tuple[str, str], Rules]] = {
    ("policy/v1", "poddisruptionbudgets"): Rules(
        check=check_budget,
        check_status=budget_status,
        name_faults=path_segment_faults,
        counts_generation=True,
        allows_unconditional_update=False,
        checks_metadata=False,
        qualifies_finalizers=False,
        cells=budget_cells,
    ),
}
