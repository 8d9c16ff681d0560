"""Mistakes of newcomers that would otherwise do nothing, or something else."""

from __future__ import annotations

from typing import Any, cast

import pytest

from navarch import Operator
from navarch.errors import DefinitionError
from navarch.k8s.core.v1 import ConfigMap
from scripted import scripted


def test_one_text_for_namespaces_is_refused() -> None:
    """It would be taken letter by letter, and nothing would ever be seen."""
    with pytest.raises(DefinitionError, match=r"got 'shop'; write namespaces=\('shop',\)"):
        Operator("shop", namespaces=cast(Any, "shop"))


def test_policy_that_does_not_exist_is_refused_where_it_is_written() -> None:
    """And not when the operator starts."""
    with pytest.raises(DefinitionError, match="one of install, force, verify, ignore, got 'instal'"):
        Operator("shop", crds=cast(Any, "instal"))


def test_decorator_without_its_class_is_refused() -> None:
    """It would declare nothing, and the operator would run without a controller."""

    async def reconcile(found: Any, ctx: Any) -> None: ...

    with pytest.raises(DefinitionError, match=r"got the function reconcile; write @operator.controller\(Memcached\)"):
        Operator("shop").controller(cast(Any, reconcile))


def test_reconciler_with_other_parameters_is_refused_where_it_is_written() -> None:
    """Those who come from kopf name what they want to get; it would fail anew for each object."""

    async def create(spec: Any, name: str, namespace: str, **kwargs: Any) -> None: ...

    with pytest.raises(DefinitionError, match=r"got create\(spec.*kwargs.*; write create\(configmap, ctx\)"):
        Operator("shop").controller(ConfigMap)(cast(Any, create))


def test_cleanup_with_other_parameters_is_refused_where_it_is_written() -> None:
    """It would fail when the first object is deleted, which then stays."""

    async def reconcile(found: Any, ctx: Any) -> None: ...

    async def goodbye(found: Any) -> None: ...

    declared = Operator("shop").controller(ConfigMap)(reconcile)
    with pytest.raises(DefinitionError, match=r"configmap: .* got goodbye\(found: .*; write goodbye\(configmap, ctx\)"):
        declared.cleanup(cast(Any, goodbye))


def test_one_kind_without_a_tuple_is_refused() -> None:
    """With what to write instead."""
    with pytest.raises(DefinitionError, match=r"got owns=.*ConfigMap.*; write owns=\(ConfigMap,\)"):
        Operator("shop").controller(ConfigMap, owns=cast(Any, ConfigMap))


def test_background_function_that_would_block_is_refused() -> None:
    """It would end at once, or stop everything else, and begin anew for ever."""

    def poll(client: Any) -> None: ...

    with pytest.raises(DefinitionError, match="got the function poll; write async def"):
        Operator("shop").background(cast(Any, poll))


async def test_operator_without_anything_to_run_is_refused() -> None:
    """Most often the module with its controllers was not imported."""
    client, _ = scripted()
    with pytest.raises(DefinitionError, match=r"operator shop: expected something to run.*; import the modules"):
        await Operator("shop").serve(client)
