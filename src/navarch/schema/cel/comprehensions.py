"""Plans the macros over lists and maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from navarch.schema.cel.containers import find, readable
from navarch.schema.cel.cost_tracker import CostExceededError
from navarch.schema.cel.dispatch import invocation
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.expressions import ComprehensionExpr
from navarch.schema.cel.types import list_of
from navarch.schema.cel.values import no_such_overload

Frame: TypeAlias = list[Any]
"""The `CostTracker`, then the variables."""
Plan: TypeAlias = Callable[[Frame], object]


class Step(NamedTuple):
    """A plan, and its cost besides the cost that it charges itself. A constant ignores the frame."""

    run: Plan
    cost: int
    is_constant: bool = False


_MISSING = object()
_Steps: TypeAlias = Callable[[Frame], Iterator[object]]

# What a round costs besides its body: testing whether to go on, and adding to the result.
_GOING_ON = {"all": 2, "exists": 3}
_ADDING = {"existsOne": 2, "filter": 13, "map": 12, "transformMap": 3, "transformMapEntry": 2}


def charge(frame: Frame, cost: int) -> None:
    """Charges the tracker. Raises `CostExceededError`."""
    tracker = frame[0]
    tracker.left -= cost
    if tracker.left < 0:
        raise CostExceededError


def plan_comprehension(
    node: ComprehensionExpr, ranged: Step, places: tuple[int, ...], condition: Step | None, body: Step
) -> Step:
    """Returns the plan of a macro; its variables live at `places` of the frame."""
    steps = _one_variable(ranged.run, places[0]) if len(places) == 1 else _two_variables(ranged.run, *places)
    match node.macro:
        case "all" | "exists":
            run = _quantified(steps, body, _GOING_ON[node.macro], stop=node.macro == "exists")
            return Step(run, ranged.cost + 1)
        case "existsOne":
            return Step(_exactly_one(steps, body), ranged.cost + 2)
        case "filter":
            kept = Step(lambda frame: readable(frame[places[0]]), _ADDING["filter"])
            return Step(_collect(steps, body, kept), ranged.cost + 1)
        case "map" | "transformList":
            added = Step(body.run, body.cost + _ADDING["map"])
            return Step(_collect(steps, condition, added), ranged.cost + 1)
        case "transformMap":
            entry = Step(lambda frame: {frame[places[0]]: body.run(frame)}, body.cost + _ADDING["transformMap"])
            return Step(_entries(steps, condition, entry), ranged.cost + 1)
        case "transformMapEntry":
            entry = Step(body.run, body.cost + _ADDING["transformMapEntry"])
            return Step(_entries(steps, condition, entry), ranged.cost + 1)
        case "sortBy":
            return _sorted(node, ranged, places[0], body)
    raise AssertionError(node.macro)


def _one_variable(ranged: Plan, place: int) -> _Steps:
    """Sets the variable to each item of a list or key of a map in turn."""

    def steps(frame: Frame) -> Iterator[object]:
        container = ranged(frame)
        if not isinstance(container, list | dict):
            raise no_such_overload()
        for item in container:
            frame[place] = item
            yield item

    return steps


def _two_variables(ranged: Plan, first: int, second: int) -> _Steps:
    """Sets the variables to each index and item, or key and value, in turn."""

    def steps(frame: Frame) -> Iterator[object]:
        container = ranged(frame)
        if not isinstance(container, list | dict):
            raise no_such_overload()
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for frame[first], frame[second] in pairs:
            yield None

    return steps


def deciding(terms: list[Step], *, stop: bool) -> Plan:
    """Plans `&&` and `||`: the first term that is `stop` decides, even if others raise errors."""
    # What the first term costs is charged by whoever evaluates all of this.
    priced = [(term.run, term.cost if position else 0) for position, term in enumerate(terms)]

    def run(frame: Frame) -> object:
        failure: CelEvaluationError | None = None
        tracker = frame[0]
        for term, cost in priced:
            tracker.left -= cost
            if tracker.left < 0:
                raise CostExceededError
            try:
                value = term(frame)
            except CelEvaluationError as error:
                failure = failure or error
                continue
            if value is stop:
                return stop
            if value is not (not stop):
                failure = failure or no_such_overload()
        if failure is not None:
            raise failure
        return not stop

    return run


def _quantified(steps: _Steps, body: Step, going_on: int, *, stop: bool) -> Plan:
    """`all` and `exists`: the first item that is `stop` decides, whatever errors the others have."""
    test, cost = body.run, body.cost + going_on + 1

    def run(frame: Frame) -> object:
        failure: CelEvaluationError | None = None
        tracker = frame[0]
        rounds = steps(frame)
        for _ in rounds:
            tracker.left -= cost
            if tracker.left < 0:
                raise CostExceededError
            try:
                value = test(frame)
            except CelEvaluationError as error:
                failure = failure or error
                continue
            if value is stop:
                if next(rounds, _MISSING) is not _MISSING:
                    charge(frame, going_on)
                return stop
            if value is not (not stop):
                failure = failure or no_such_overload()
        if failure is not None:
            raise failure
        return not stop

    return run


def _exactly_one(steps: _Steps, body: Step) -> Plan:
    def run(frame: Frame) -> object:
        count = 0
        for _ in steps(frame):
            charge(frame, body.cost)
            if _decided(body.run, frame):
                charge(frame, _ADDING["existsOne"])
                count += 1
        return count == 1

    return run


def _decided(condition: Plan, frame: Frame) -> bool:
    value = condition(frame)
    if isinstance(value, bool):
        return value
    raise no_such_overload()


def _collect(steps: _Steps, condition: Step | None, body: Step) -> Plan:
    """The values of the body, where the condition holds."""
    build, cost, _ = body

    def run(frame: Frame) -> object:
        tracker = frame[0]
        items: list[object] = []
        for _ in steps(frame):
            if condition is not None and not _holds(condition, frame):
                continue
            tracker.left -= cost
            if tracker.left < 0:
                raise CostExceededError
            items.append(build(frame))
        return items

    return run


def _holds(condition: Step, frame: Frame) -> bool:
    charge(frame, condition.cost)
    return _decided(condition.run, frame)


def _entries(steps: _Steps, condition: Step | None, body: Step) -> Plan:
    def run(frame: Frame) -> object:
        entries: dict[object, object] = {}
        for _ in steps(frame):
            if condition is None or _holds(condition, frame):
                charge(frame, body.cost)
                _insert(entries, body.run(frame))
        return entries

    return run


def _insert(entries: dict[object, object], new: object) -> None:
    if not isinstance(new, dict):
        raise no_such_overload()
    for key, value in new.items():
        if find(entries, key, _MISSING) is not _MISSING:
            raise CelEvaluationError(f"insert failed: the key {key} is already there")
        entries[key] = value


def _sorted(node: ComprehensionExpr, ranged: Step, place: int, body: Step) -> Step:
    """The list is bound to a name, mapped to its keys, and sorted by them."""
    call = invocation(node.overloads, [node.range.type, list_of(node.body.type)])
    cost = body.cost + _ADDING["map"]

    def run(frame: Frame) -> object:
        items = ranged.run(frame)
        if not isinstance(items, list):
            raise no_such_overload()
        keys: list[object] = []
        for frame[place] in items:
            charge(frame, cost)
            keys.append(body.run(frame))
        assert call.metered is not None
        return call.metered(frame[0], items, keys)

    return Step(run, ranged.cost + 3)
