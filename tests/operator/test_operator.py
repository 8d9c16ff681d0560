"""What can be declared, and what is refused with a sentence that helps."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, cast

import pytest

from gadgets import CONFIG_MAP, Gadget
from navarch.api import Key
from navarch.cache import Cached
from navarch.controller import Context, ElectionOptions, Lookup
from navarch.errors import DefinitionError, InvalidValueError, NavarchError
from navarch.k8s.core.v1 import ConfigMap, Node, Pod, Service
from navarch.operator import Operator
from operating import World, operator


async def reconcile(gadget: Gadget, ctx: Context) -> None: ...


async def mapping(pod: Pod, lookup: Any) -> list[Key]:
    return []


def test_second_controller_of_one_name_is_refused() -> None:
    """By default a controller has the name of its kind."""
    tested = Operator("shop")
    tested.controller(Gadget)(reconcile)
    tested.controller(Gadget, name="other")(reconcile)
    tested.controller(ConfigMap)(reconcile)  # type: ignore[arg-type]  # not called here
    assert [declared.name for declared in tested.controllers] == ["gadget", "other", "configmap"]
    with pytest.raises(
        DefinitionError, match=r"operator shop: expected one controller 'gadget', got a second; give it"
    ):
        tested.controller(Gadget)(reconcile)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"concurrency": 0}, "expected a concurrency of 1 or more, got 0"),
        ({"timeout": 0}, "expected a timeout of more than 0 seconds, got 0"),
        ({"timeout": float("nan")}, "expected a timeout of more than 0 seconds, got nan"),
        ({"owns": Pod}, r"expected several kinds, got owns=<class.*; write owns=\(Pod,\)"),
        ({"reads": "pods"}, "expected several kinds, got reads='pods'"),
        ({"caches": Cached(Pod)}, "expected several kinds, got caches="),
        ({"backoff": 5}, r"expected backoff to be a Backoff, got 5; write Backoff\(initial=1.0\)"),
        ({"watches": (Pod,)}, "expected a mapping of kinds to functions for watches, got"),
        ({"watches": {Pod: mapping}}, "expected a plain function that maps .* to keys, got"),
        ({"name": "Not a name"}, "the name of a controller: expected a DNS subdomain .* try 'not-a-name'"),
        ({"reads": (Pod, Cached(Pod, labels="a=b"))}, "gadget: expected one way to keep pods, got"),
        ({"reads": (Cached(Gadget, labels="a=b"),)}, "gadget: expected one way to keep gadgets"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any], said: str) -> None:
    """Where they are written, not when the first object comes."""
    with pytest.raises(NavarchError, match=said):
        Operator("shop").controller(Gadget, **options)(reconcile)


@pytest.mark.parametrize(
    "primary",
    [CONFIG_MAP, Cached(CONFIG_MAP), Cached(Gadget, metadata_only=True), Cached(Gadget, keep=("spec",)), "gadgets", 7],
    ids=repr,
)
def test_only_classes_of_whole_objects_can_be_reconciled(primary: Any) -> None:
    """A status is to be written, and a function is to know what it gets."""
    with pytest.raises(NavarchError, match="expected"):
        Operator("shop").controller(primary)(reconcile)


def test_second_cleanup_is_refused() -> None:
    """Only one can decide when an object may go."""
    declared = Operator("shop").controller(Gadget)(reconcile)
    declared.cleanup(reconcile)
    with pytest.raises(DefinitionError, match="expected one cleanup, got a second"):
        declared.cleanup(reconcile)


def test_cleanup_of_a_controller_that_reconciles_until_the_end_is_refused() -> None:
    """Either the one or the other is called for an object on its way out."""
    declared = Operator("shop").controller(Gadget, until_gone=True)(reconcile)
    with pytest.raises(DefinitionError, match="expected a cleanup or until_gone, got both"):
        declared.cleanup(reconcile)


def test_name_of_an_operator_is_a_name() -> None:
    """It becomes that of a Lease."""
    with pytest.raises(InvalidValueError, match="the name of an operator: expected a DNS subdomain"):
        Operator("My Operator")


def test_election_is_on_by_default_and_named_after_the_operator() -> None:
    """It can be turned off, or chosen."""
    assert Operator("shop").election == ElectionOptions(name="shop")
    assert Operator("shop", election=False).election is None
    chosen = ElectionOptions(name="other")
    assert Operator("shop", election=chosen).election is chosen


async def test_controller_can_be_called_alone() -> None:
    """As the function that it is made of."""
    seen: list[str] = []

    @Operator("shop").controller(Gadget)
    async def noting(gadget: Gadget, ctx: Any) -> None:
        seen.append(gadget.name)

    await noting(Gadget(name="a"), cast(Any, None))
    assert seen == ["a"]


async def test_operators_of_one_name_do_not_run_together() -> None:
    """They would wait for each other's Lease."""
    world = World()
    with pytest.raises(ExceptionGroup) as raised:
        async with world.run(operator("a"), operator("a")):
            await world.quiet(1)
    assert raised.group_contains(DefinitionError, match="expected one or more operators with different names, got")


async def test_operator_that_cannot_start_leaves_nothing_attached() -> None:
    """It can be started again, and a trigger goes nowhere meanwhile."""
    world, tested = World(), Operator("shop", election=False)
    declared = tested.controller(Gadget)(reconcile)
    with pytest.raises(ExceptionGroup):
        async with world.run(tested):  # the model server knows nothing of access reviews
            await world.quiet(1)
    assert declared._listeners == []


def test_kinds_are_taken_from_any_iterable() -> None:
    """A list, a set or a generator declares the same as a tuple, and any mapping the same as a dict."""

    def users(_: Pod, __: Lookup) -> list[Key]:
        return []

    tested = Operator("shop")
    declared = tested.controller(
        Gadget,
        owns=[ConfigMap],
        reads={Service},
        caches=(each for each in (Node,)),
        watches=MappingProxyType({Pod: users}),
    )(reconcile)
    assert [kind.kind for kind in declared.everything()] == ["Gadget", "ConfigMap", "Pod", "Service", "Node"]
