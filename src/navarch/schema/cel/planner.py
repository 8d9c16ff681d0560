"""A checked tree to nested Python functions: compiled once, called for every object.

A plan takes the frame, a list with one place for each variable the rule can bind, and gives the value. What the
checker is sure of is called directly; only arguments that may be of several types are looked at each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from navarch.schema.cel.comprehensions import Frame, Plan, deciding, plan_comprehension
from navarch.schema.cel.containers import Unreadable, has, index, index_if_present, select, select_if_present
from navarch.schema.cel.dispatch import implementation
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.nodes import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    MessageLiteral,
    Node,
    OptionalMap,
    Select,
)
from navarch.schema.cel.signatures import Implementation
from navarch.schema.cel.types import CelType, Kind, unwrap_optional
from navarch.schema.cel.values import NONE, Built, Optional, no_such_overload, some

_NO_KEYS = (list, dict, bytes)


def plan(root: Node, variables: tuple[str, ...]) -> tuple[Plan, int]:
    """The plan of `root`, and the length of the frame it needs; `variables` are the frame's first places."""
    planner = _Planner(len(variables))
    return planner.plan(root, {name: place for place, name in enumerate(variables)}), planner.places


class _Planner:
    def __init__(self, places: int) -> None:
        self.places = places

    def plan(self, node: Node, scope: Mapping[str, int]) -> Plan:
        match node:
            case Literal(value=value):
                return _constant(value)
            case Ident(named_type=CelType() as named) | Select(named_type=CelType() as named):
                return _constant(named)
            case Ident(name=name):
                return _variable(scope[name])
            case Select():
                return self._select(node, scope)
            case Call():
                return self._call(node, scope)
            case ListLiteral() | MapLiteral() | MessageLiteral():
                return self._written_out(node, scope)
            case Comprehension():
                return self._comprehension(node, scope)
            case OptionalMap():
                return self._optional_map(node, scope)
        raise AssertionError(node)

    def _bind(self, names: tuple[str, ...], scope: Mapping[str, int]) -> tuple[Mapping[str, int], tuple[int, ...]]:
        places = tuple(range(self.places, self.places + len(names)))
        self.places += len(names)
        return {**scope, **dict(zip(names, places, strict=True))}, places

    def _select(self, node: Select, scope: Mapping[str, int]) -> Plan:
        field = node.field
        if not node.test and (path := _path(node)) is not None:
            base, fields = path
            return _follow(self.plan(base, scope), fields)
        operand = self.plan(node.operand, scope)
        if node.test:
            return lambda frame: has(operand(frame), field)
        if node.optional or unwrap_optional(node.operand.type)[1]:
            return lambda frame: select_if_present(operand(frame), field)
        return lambda frame: select(operand(frame), field)

    def _call(self, node: Call, scope: Mapping[str, int]) -> Plan:
        operands = list(map(partial(self.plan, scope=scope), node.operands()))
        match node.function:
            case "_&&_":
                return deciding(lambda _: operands, stop=False)
            case "_||_":
                return deciding(lambda _: operands, stop=True)
            case "_?_:_":
                return _choose(*operands)
            case "or":
                return _fall_back(*operands, unwrap=False)
            case "orValue":
                return _fall_back(*operands, unwrap=True)
            case "_[_]" | "_[?_]" if node.args[0].type.kind in {Kind.OPAQUE, Kind.DYN}:
                return _index(operands[0], operands[1], index if node.function == "_[_]" else index_if_present)
        call = implementation(node.overloads, [operand.type for operand in node.operands()])
        return _apply(call, operands, node.operands())

    def _written_out(self, node: ListLiteral | MapLiteral | MessageLiteral, scope: Mapping[str, int]) -> Plan:
        if isinstance(node, ListLiteral):
            return self._list(node, scope)
        return self._map(node, scope) if isinstance(node, MapLiteral) else self._message(node, scope)

    def _list(self, node: ListLiteral, scope: Mapping[str, int]) -> Plan:
        plans = [self.plan(element, scope) for element in node.elements]
        if not node.optional:
            return lambda frame: [plan(frame) for plan in plans]
        marked = [(plan, position in node.optional) for position, plan in enumerate(plans)]

        def build(frame: Frame) -> object:
            items: list[object] = []
            for plan, optional in marked:
                _add(items, plan(frame), optional)
            return items

        return build

    def _map(self, node: MapLiteral, scope: Mapping[str, int]) -> Plan:
        plans = [(self.plan(each.key, scope), self.plan(each.value, scope), each.optional) for each in node.entries]

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

        return build

    def _message(self, node: MessageLiteral, scope: Mapping[str, int]) -> Plan:
        plans = [(each.name, self.plan(each.value, scope), each.optional) for each in node.fields]

        def build(frame: Frame) -> object:
            made = Built(node.name)
            for name, value, optional in plans:
                found: list[object] = []
                _add(found, value(frame), optional)
                for item in found:
                    made[name] = item
            return made

        return build

    def _comprehension(self, node: Comprehension, scope: Mapping[str, int]) -> Plan:
        ranged = self.plan(node.range, scope)
        inner, places = self._bind(node.variables, scope)
        condition = None if node.condition is None else self.plan(node.condition, inner)
        return plan_comprehension(node, ranged, places, condition, self.plan(node.body, inner))

    def _optional_map(self, node: OptionalMap, scope: Mapping[str, int]) -> Plan:
        target, flat = self.plan(node.target, scope), node.flat
        inner, (place,) = self._bind((node.variable,), scope)
        body = self.plan(node.body, inner)

        def run(frame: Frame) -> object:
            wrapped = _as_optional(target(frame))
            if not wrapped.present:
                return NONE
            frame[place] = wrapped.value
            value = body(frame)
            return value if flat else some(value)

        return run


def _constant(value: object) -> Plan:
    return lambda _: value


def _variable(place: int) -> Plan:
    def run(frame: Frame) -> object:
        value = frame[place]
        if type(value) is Unreadable:
            raise value.error
        return value

    return run


def _path(node: Select) -> tuple[Node, tuple[str, ...]] | None:
    """The start and the fields of `a.b.c` if every step is surely an object or a map."""
    fields: list[str] = []
    base: Node = node
    while isinstance(base, Select) and base.named_type is None and not (base.optional or base.test):
        if base.operand.type.kind not in {Kind.OBJECT, Kind.MAP}:
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
        if type(value) is Unreadable:
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


def _choose(condition: Plan, chosen: Plan, otherwise: Plan) -> Plan:
    def run(frame: Frame) -> object:
        decided = condition(frame)
        if decided is True:
            return chosen(frame)
        if decided is False:
            return otherwise(frame)
        raise no_such_overload()

    return run


def _fall_back(first: Plan, second: Plan, *, unwrap: bool) -> Plan:
    """`or` and `orValue`: the second is evaluated only if the first is an optional without a value."""

    def run(frame: Frame) -> object:
        wrapped = first(frame)
        if not isinstance(wrapped, Optional):
            return wrapped
        if not wrapped.present:
            return second(frame)
        return wrapped.value if unwrap else wrapped

    return run


def _index(container: Plan, key: Plan, look_up: Callable[[object, object], object]) -> Plan:
    """Of an optional without a value nothing more is evaluated."""

    def run(frame: Frame) -> object:
        found = container(frame)
        if isinstance(found, Optional) and not found.present:
            return NONE
        return look_up(found, key(frame))

    return run


def _apply(call: Implementation, operands: list[Plan], nodes: list[Node]) -> Plan:
    """The call, with the shapes that rules mostly have written out."""
    if len(operands) == 2:
        first, second = operands
        if isinstance(nodes[1], Literal):
            return _apply_to_constant(call, first, nodes[1].value)

        def run_two(frame: Frame) -> object:
            left, right = first(frame), second(frame)
            try:
                return call(left, right)
            except (TypeError, AttributeError) as error:
                raise no_such_overload() from error

        return run_two

    def run(frame: Frame) -> object:
        values = [operand(frame) for operand in operands]
        try:
            return call(*values)
        except (TypeError, AttributeError) as error:
            raise no_such_overload() from error

    return run


def _apply_to_constant(call: Implementation, first: Plan, constant: object) -> Plan:
    def run(frame: Frame) -> object:
        value = first(frame)
        try:
            return call(value, constant)
        except (TypeError, AttributeError) as error:
            raise no_such_overload() from error

    return run
