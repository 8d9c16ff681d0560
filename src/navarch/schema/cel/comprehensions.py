"""How the macros over lists and maps run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from navarch.schema.cel.containers import find, readable
from navarch.schema.cel.dispatch import implementation
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.nodes import Comprehension
from navarch.schema.cel.types import list_of
from navarch.schema.cel.values import no_such_overload

Frame: TypeAlias = list[object]
Plan: TypeAlias = Callable[[Frame], object]
_MISSING = object()
_Steps: TypeAlias = Callable[[Frame], Iterable[object]]


def plan_comprehension(
    node: Comprehension, ranged: Plan, places: tuple[int, ...], condition: Plan | None, body: Plan
) -> Plan:
    """The plan of a macro; its variables live at `places` of the frame."""
    steps = _one_variable(ranged, places[0]) if len(places) == 1 else _two_variables(ranged, *places)
    match node.macro:
        case "all":
            return deciding(lambda frame: (body for _ in steps(frame)), stop=False)
        case "exists":
            return deciding(lambda frame: (body for _ in steps(frame)), stop=True)
        case "existsOne":
            return _exactly_one(steps, body)
        case "filter":
            return _collect(steps, body, lambda frame: readable(frame[places[0]]))
        case "map" | "transformList":
            return _collect(steps, condition, body)
        case "transformMap":
            return _entries(steps, condition, lambda frame: {frame[places[0]]: body(frame)})
        case "transformMapEntry":
            return _entries(steps, condition, body)
        case "sortBy":
            return _sorted(node, ranged, places[0], body)
    raise AssertionError(node.macro)


def _one_variable(ranged: Plan, place: int) -> _Steps:
    """Sets the variable to each item of a list or key of a map in turn."""

    def steps(frame: Frame) -> Iterable[object]:
        container = ranged(frame)
        if not isinstance(container, list | dict):
            raise no_such_overload()
        for item in container:
            frame[place] = item
            yield item

    return steps


def _two_variables(ranged: Plan, first: int, second: int) -> _Steps:
    """Sets the variables to each index and item, or key and value, in turn."""

    def steps(frame: Frame) -> Iterable[object]:
        container = ranged(frame)
        if not isinstance(container, list | dict):
            raise no_such_overload()
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for frame[first], frame[second] in pairs:
            yield None

    return steps


def deciding(terms: Callable[[Frame], Iterable[Plan]], *, stop: bool) -> Plan:
    """`&&`, `||`, `all` and `exists`: the first term that is `stop` decides, whatever errors the others have."""

    def run(frame: Frame) -> object:
        failure: CelEvaluationError | None = None
        for term in terms(frame):
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


def _exactly_one(steps: _Steps, body: Plan) -> Plan:
    return lambda frame: sum(_decided(body, frame) for _ in steps(frame)) == 1


def _decided(condition: Plan | None, frame: Frame) -> bool:
    value = True if condition is None else condition(frame)
    if isinstance(value, bool):
        return value
    raise no_such_overload()


def _collect(steps: _Steps, condition: Plan | None, body: Plan) -> Plan:
    if condition is None:
        return lambda frame: [body(frame) for _ in steps(frame)]
    return lambda frame: [body(frame) for _ in steps(frame) if _decided(condition, frame)]


def _entries(steps: _Steps, condition: Plan | None, body: Plan) -> Plan:
    def run(frame: Frame) -> object:
        entries: dict[object, object] = {}
        for _ in steps(frame):
            if _decided(condition, frame):
                _insert(entries, body(frame))
        return entries

    return run


def _insert(entries: dict[object, object], new: object) -> None:
    if not isinstance(new, dict):
        raise no_such_overload()
    for key, value in new.items():
        if find(entries, key, _MISSING) is not _MISSING:
            raise CelEvaluationError(f"insert failed: the key {key} is already there")
        entries[key] = value


def _sorted(node: Comprehension, ranged: Plan, place: int, body: Plan) -> Plan:
    sort = implementation(node.overloads, [node.range.type, list_of(node.body.type)])

    def run(frame: Frame) -> object:
        items = ranged(frame)
        if not isinstance(items, list):
            raise no_such_overload()
        keys: list[object] = []
        for frame[place] in items:
            keys.append(body(frame))
        return sort(items, keys)

    return run
