"""The planner: turns a checked tree into nested Python functions, compiled once and called for every object.

A plan takes the frame, a list with the cost tracker and one place for each variable of the rule, and returns the value.
A call whose types the checker knows is direct; only arguments of several possible types are examined each time.

Most steps have a constant cost, and a sequence without a choice costs the sum of its steps: that is a `Step`'s `cost`,
charged at once by the code that evaluates it (the program, a branch of a condition, a round of a loop). Only calls
whose cost depends on their values charge it themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from navarch.schema.cel.call_estimates import LIST_COST, MAP_COST, MESSAGE_COST
from navarch.schema.cel.comprehensions import Frame, Plan, Step, charge, deciding, plan_comprehension
from navarch.schema.cel.containers import UnreadableValue, has, index, index_if_present, select, select_if_present
from navarch.schema.cel.cost_tracker import CostExceededError, CostTracker
from navarch.schema.cel.dispatch import Invocation, invocation
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.expressions import (
    CallExpr,
    ComprehensionExpr,
    Expr,
    IdentExpr,
    ListExpr,
    LiteralExpr,
    MapExpr,
    OptionalMapExpr,
    SelectExpr,
    StructExpr,
)
from navarch.schema.cel.library.conversions import CONVERSIONS
from navarch.schema.cel.library.regex import PATTERN_FUNCTIONS
from navarch.schema.cel.types import CelKind, CelType, unwrap_optional
from navarch.schema.cel.values import NONE, Built, Optional, Uint, no_such_overload, some

_NO_KEYS = (list, dict, bytes)


def plan(root: Expr, variables: tuple[str, ...]) -> tuple[Step, int]:
    """Returns the plan of `root` and the length of its frame; `variables` come first in it, after the tracker."""
    planner = _Planner(1 + len(variables))
    return planner.plan(root, {name: place for place, name in enumerate(variables, 1)}), planner.places


class _Planner:
    def __init__(self, places: int) -> None:
        self.places = places

    def plan(self, node: Expr, scope: Mapping[str, int]) -> Step:
        match node:
            case LiteralExpr(value=value):
                return _constant(value)
            case IdentExpr(named_type=CelType() as named) | SelectExpr(named_type=CelType() as named):
                return _constant(named)
            case IdentExpr(name=name):
                return Step(_variable(scope[name]), 1)
            case SelectExpr():
                return self._select(node, scope)
            case CallExpr():
                return self._call(node, scope)
            case ListExpr() | MapExpr() | StructExpr():
                return self._written_out(node, scope)
            case ComprehensionExpr():
                return self._comprehension(node, scope)
            case OptionalMapExpr():
                return self._optional_map(node, scope)
        raise AssertionError(node)

    def _bind(self, names: tuple[str, ...], scope: Mapping[str, int]) -> tuple[Mapping[str, int], tuple[int, ...]]:
        places = tuple(range(self.places, self.places + len(names)))
        self.places += len(names)
        return {**scope, **dict(zip(names, places, strict=True))}, places

    def _select(self, node: SelectExpr, scope: Mapping[str, int]) -> Step:
        field = node.field
        if not node.test and (path := _path(node)) is not None:
            base, fields = path
            start = self._attribute(base, scope)
            return Step(_follow(start.run, fields), start.cost + len(fields))
        run, cost, _ = self._attribute(node.operand, scope)
        if node.test:
            return Step(lambda frame: has(run(frame), field), cost)
        if node.optional or unwrap_optional(node.operand.type)[1]:
            return Step(_found(lambda frame: select_if_present(run(frame), field)), cost)
        return Step(lambda frame: select(run(frame), field), cost + 1)

    def _attribute(self, node: Expr, scope: Mapping[str, int]) -> Step:
        """What a field or an item is taken of; the API server charges one for what is no variable or part of one."""
        step = self.plan(node, scope)
        return step if _is_attribute(node) else Step(step.run, step.cost + 1)

    def _call(self, node: CallExpr, scope: Mapping[str, int]) -> Step:
        if node.function in {"_[_]", "_[?_]"}:
            return self._item(node, scope)
        operands = [self.plan(operand, scope) for operand in node.operands()]
        match node.function:
            case "_&&_":
                return Step(deciding(operands, stop=False), operands[0].cost)
            case "_||_":
                return Step(deciding(operands, stop=True), operands[0].cost)
            case "_?_:_":
                _, *branches = map(_without_attribute, node.args, operands)
                return Step(_choose(operands[0], *branches), operands[0].cost)
            case "or":
                return Step(_fall_back(*operands, unwrap=False), operands[0].cost)
            case "orValue":
                return Step(_fall_back(*operands, unwrap=True), operands[0].cost)
            case "@in" if (constants := _constants(operands[1])) is not None:
                return Step(_in_constants(operands[0].run, *constants), operands[0].cost)
        call = invocation(node.overloads, [operand.type for operand in node.operands()], _pattern(node, operands))
        step = Step(_apply(call, operands, node.operands()), sum(operand.cost for operand in operands) + call.cost)
        return _converted(step) if node.function in CONVERSIONS and operands[0].is_constant else step

    def _item(self, node: CallExpr, scope: Mapping[str, int]) -> Step:
        container, key = self._attribute(node.args[0], scope), self.plan(node.args[1], scope)
        key = _without_attribute(node.args[1], key)
        if node.function == "_[?_]":
            return Step(_found(_index(container.run, key, index_if_present)), container.cost)
        if node.args[0].type.kind in {CelKind.OPAQUE, CelKind.DYN}:
            return Step(_index(container.run, key, index), container.cost + 1)
        call = _apply(Invocation(1, plain=index), [container, key], node.operands())
        return Step(call, container.cost + key.cost + 1)

    def _written_out(self, node: ListExpr | MapExpr | StructExpr, scope: Mapping[str, int]) -> Step:
        if isinstance(node, ListExpr):
            return self._list(node, scope)
        return self._map(node, scope) if isinstance(node, MapExpr) else self._message(node, scope)

    def _list(self, node: ListExpr, scope: Mapping[str, int]) -> Step:
        steps = [self.plan(element, scope) for element in node.elements]
        plans, cost = [step.run for step in steps], LIST_COST + sum(step.cost for step in steps)
        if not node.optional and all(step.is_constant for step in steps):
            return _constant([plan([]) for plan in plans])
        if not node.optional:
            return Step(lambda frame: [plan(frame) for plan in plans], cost)
        marked = [(plan, position in node.optional) for position, plan in enumerate(plans)]

        def build(frame: Frame) -> object:
            items: list[object] = []
            for plan, optional in marked:
                _add(items, plan(frame), optional)
            return items

        return Step(build, cost)

    def _map(self, node: MapExpr, scope: Mapping[str, int]) -> Step:
        steps = [(self.plan(each.key, scope), self.plan(each.value, scope), each.optional) for each in node.entries]
        plans = [(key.run, value.run, optional) for key, value, optional in steps]

        def build(frame: Frame) -> object:
            entries: dict[object, object] = {}
            for key, value, optional in plans:
                found: list[object] = []
                name = key(frame)
                if isinstance(name, _NO_KEYS):
                    raise no_such_overload()
                _add(found, value(frame), optional)
                for item in found:
                    entries[name] = item
            return entries

        if all(key.is_constant and value.is_constant and not optional for key, value, optional in steps):
            return _converted(Step(build, 0))
        return Step(build, MAP_COST + sum(key.cost + value.cost for key, value, _ in steps))

    def _message(self, node: StructExpr, scope: Mapping[str, int]) -> Step:
        steps = [(each.name, self.plan(each.value, scope), each.optional) for each in node.fields]
        plans = [(name, value.run, optional) for name, value, optional in steps]

        def build(frame: Frame) -> object:
            made = Built(node.name)
            for name, value, optional in plans:
                found: list[object] = []
                _add(found, value(frame), optional)
                for item in found:
                    made[name] = item
            return made

        return Step(build, MESSAGE_COST + sum(value.cost for _, value, _ in steps))

    def _comprehension(self, node: ComprehensionExpr, scope: Mapping[str, int]) -> Step:
        ranged = self.plan(node.range, scope)
        inner, places = self._bind(node.variables, scope)
        condition = None if node.condition is None else self.plan(node.condition, inner)
        return plan_comprehension(node, ranged, places, condition, self.plan(node.body, inner))

    def _optional_map(self, node: OptionalMapExpr, scope: Mapping[str, int]) -> Step:
        target, flat = self.plan(node.target, scope), node.flat
        inner, (place,) = self._bind((node.variable,), scope)
        body = self.plan(node.body, inner)
        # The API server asks the target twice: whether it has a value, and for it.
        present = target.cost + 1 + body.cost + (not flat)

        def run(frame: Frame) -> object:
            tracker = frame[0]
            before = tracker.left
            wrapped = _as_optional(target.run(frame))
            if not wrapped.present:
                charge(frame, 1)
                return NONE
            tracker.charge(present + before - tracker.left)
            frame[place] = wrapped.value
            value = body.run(frame)
            return value if flat else some(value)

        return Step(run, target.cost + 1)


def _constant(value: object) -> Step:
    return Step(lambda _: value, 0, is_constant=True)


def _converted(step: Step) -> Step:
    """What the API server works out when it compiles: conversions of literals. One that fails does so each time."""
    try:
        return _constant(step.run([CostTracker()]))
    except (CelEvaluationError, CostExceededError):
        return step


def _variable(place: int) -> Plan:
    def run(frame: Frame) -> object:
        value = frame[place]
        if type(value) is UnreadableValue:
            raise value.error
        return value

    return run


def _path(node: SelectExpr) -> tuple[Expr, tuple[str, ...]] | None:
    """The start and the fields of `a.b.c` if every step is surely an object or a map."""
    fields: list[str] = []
    base: Expr = node
    while isinstance(base, SelectExpr) and base.named_type is None and not (base.optional or base.test):
        if base.operand.type.kind not in {CelKind.OBJECT, CelKind.MAP}:
            break
        fields.append(base.field)
        base = base.operand
    return (base, tuple(reversed(fields))) if fields else None


def _follow(base: Plan, fields: tuple[str, ...]) -> Plan:
    def run(frame: Frame) -> object:
        value = base(frame)
        try:
            for field in fields:
                value = value[field]  # type: ignore[index]  # the checker saw a map here
        except KeyError as error:
            raise CelEvaluationError(f"no such key: {error.args[0]}") from None
        except TypeError as error:
            raise no_such_overload() from error
        if type(value) is UnreadableValue:
            raise value.error
        return value

    return run


def _as_optional(value: object) -> Optional:
    if isinstance(value, Optional):
        return value
    raise no_such_overload()


def _add(items: list[object], value: object, optional: bool) -> None:
    if not optional:
        items.append(value)
    elif _as_optional(value).present:
        items.append(_as_optional(value).value)


def _choose(condition: Step, chosen: Step, otherwise: Step) -> Plan:
    decide = condition.run

    def run(frame: Frame) -> object:
        decided = decide(frame)
        if decided is True:
            charge(frame, chosen.cost)
            return chosen.run(frame)
        if decided is False:
            charge(frame, otherwise.cost)
            return otherwise.run(frame)
        raise no_such_overload()

    return run


def _fall_back(first: Step, second: Step, *, unwrap: bool) -> Plan:
    """`or` and `orValue`: the second is evaluated only if the first is an optional without a value."""

    def run(frame: Frame) -> object:
        wrapped = first.run(frame)
        if not isinstance(wrapped, Optional):
            return wrapped
        if not wrapped.present:
            charge(frame, second.cost)
            return second.run(frame)
        return wrapped.value if unwrap else wrapped

    return run


def _is_attribute(node: Expr) -> bool:
    match node:
        case IdentExpr(named_type=None) | SelectExpr(named_type=None, test=False):
            return True
        case CallExpr(function="_[_]" | "_[?_]" | "_?_:_"):
            return True
    return False


def _without_attribute(node: Expr, step: Step) -> Step:
    """Part of a condition or an index, a variable costs one less."""
    return Step(step.run, max(0, step.cost - 1)) if _is_attribute(node) else step


def _constants(step: Step) -> tuple[frozenset[object], tuple[type, ...]] | None:
    """The items of a constant list, if all are strings or all are integers; and what can be one of them."""
    items = step.run([]) if step.is_constant else None
    kinds = {type(item) for item in items} if isinstance(items, list) else set()
    if not isinstance(items, list) or kinds not in ({str}, {int}):
        return None
    return frozenset(items), (str,) if kinds == {str} else (int, float, Uint)


def _pattern(node: CallExpr, operands: list[Step]) -> str | None:
    """The regular expression of a call, if it is a constant."""
    if node.function not in PATTERN_FUNCTIONS or not operands[1].is_constant:
        return None
    pattern = operands[1].run([])
    return pattern if isinstance(pattern, str) else None


def _in_constants(wanted: Plan, items: frozenset[object], kinds: tuple[type, ...]) -> Plan:
    def run(frame: Frame) -> object:
        value = wanted(frame)
        return type(value) in kinds and value in items

    return run


def _found(look_up: Plan) -> Plan:
    """A field or an item that may be missing costs one if it is there."""

    def run(frame: Frame) -> object:
        found = look_up(frame)
        if isinstance(found, Optional) and found.present:
            charge(frame, 1)
        return found

    return run


def _index(container: Plan, key: Step, look_up: Callable[[object, object], object]) -> Plan:
    """Of an optional without a value nothing more is evaluated."""

    def run(frame: Frame) -> object:
        found = container(frame)
        if isinstance(found, Optional) and not found.present:
            return NONE
        charge(frame, key.cost)
        return look_up(found, key.run(frame))

    return run


_FAILURES = (TypeError, AttributeError)
_REFUSALS = (ValueError, ArithmeticError, RecursionError)
"""What Python's own functions raise for values of the right types: numbers out of range, what is nested too deeply."""


def _refused(error: Exception) -> CelEvaluationError:
    if isinstance(error, _FAILURES):
        return no_such_overload()
    if isinstance(error, RecursionError):
        return CelEvaluationError("the value is nested too deeply")
    return CelEvaluationError(f"the call is not possible: {error}"[:_LONGEST_REFUSAL])


_LONGEST_REFUSAL = 200


def _apply(call: Invocation, operands: list[Step], nodes: list[Expr]) -> Plan:
    """The call, with the shapes that rules mostly have written out."""
    if call.metered is not None:
        return _apply_metered(call.metered, [operand.run for operand in operands])
    assert call.plain is not None
    function = call.plain
    if len(operands) == 2:
        first, second = operands[0].run, operands[1].run
        if isinstance(nodes[1], LiteralExpr):
            return _apply_to_constant(function, first, nodes[1].value)

        def run_two(frame: Frame) -> object:
            left, right = first(frame), second(frame)
            try:
                return function(left, right)
            except (*_FAILURES, *_REFUSALS) as error:
                raise _refused(error) from error

        return run_two
    plans = [operand.run for operand in operands]

    def run(frame: Frame) -> object:
        values = [plan(frame) for plan in plans]
        try:
            return function(*values)
        except (*_FAILURES, *_REFUSALS) as error:
            raise _refused(error) from error

    return run


def _apply_to_constant(call: Callable[..., object], first: Plan, constant: object) -> Plan:
    def run(frame: Frame) -> object:
        value = first(frame)
        try:
            return call(value, constant)
        except (*_FAILURES, *_REFUSALS) as error:
            raise _refused(error) from error

    return run


def _apply_metered(call: Callable[..., object], plans: list[Plan]) -> Plan:
    def run(frame: Frame) -> object:
        values = [plan(frame) for plan in plans]
        try:
            return call(frame[0], *values)
        except (*_FAILURES, *_REFUSALS) as error:
            raise _refused(error) from error

    return run
