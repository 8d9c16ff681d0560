"""What an operator author's editor infers of controllers; mypy checks this file with the rest, nothing runs it."""

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

from navarch import Client, Context, Key, Operator, Resource, Result, Spec, Status
from navarch.api import Dynamic, Kind
from navarch.controller import Declared, Lookup
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import Pod
from navarch.testing import Cluster
from navarch.webhook import DeclaredConversion


class Memcached(Resource[Spec, Status], group="cache.example.com", version="v1alpha1"): ...


operator = Operator("memcached-operator")


@operator.controller(Memcached, owns=(Deployment,), reads=(Pod,))
async def returns_nothing(memcached: Memcached, ctx: Context) -> None: ...


@operator.controller(Memcached, name="again")
async def returns_results(memcached: Memcached, ctx: Context) -> Result | None: ...


@operator.controller(Memcached, name="plain")
def plain(memcached: Memcached, ctx: Context) -> Result | None: ...


@returns_nothing.cleanup
async def farewell(memcached: Memcached, ctx: Context) -> None: ...


@plain.cleanup
def plain_farewell(memcached: Memcached, ctx: Context) -> Result | None: ...


def pods_concern(pod: Pod, lookup: Lookup) -> list[Key]:
    """What a mapping looks like."""
    assert_type(lookup.list(Memcached), list[Memcached])
    return [Key(pod.namespace, memcached.name) for memcached in lookup.list(Memcached)]


@operator.controller(Memcached, name="watching", watches={Pod: pods_concern})
async def watching(memcached: Memcached, ctx: Context) -> None: ...


@operator.background
async def polling(client: Client) -> None:
    """A background may trigger."""
    returns_nothing.trigger("cache", namespace="default", reason="it was paid")


async def declared(memcached: Memcached, ctx: Context) -> None:
    """A controller is called, and awaited, like its function."""
    assert_type(returns_nothing, Declared[Memcached, Coroutine[Any, Any, None]])
    await returns_nothing(memcached, ctx)
    assert_type(await returns_results(memcached, ctx), Result | None)
    assert_type(plain(memcached, ctx), Result | None)
    assert_type(returns_nothing.primary, type[Memcached])
    await farewell(memcached, ctx)
    assert_type(farewell, Callable[[Memcached, Context], Coroutine[Any, Any, None]])
    assert_type(plain_farewell(memcached, ctx), Result | None)


class OldMemcached(
    Resource[Spec, Status], group="cache.example.com", version="v1", kind="Memcached", storage=False
): ...


@operator.convert(OldMemcached, Memcached)
def upgrade(old: OldMemcached) -> Memcached:
    """A conversion is called like its function."""
    return Memcached(spec=old.spec)


@upgrade.reverse
def downgrade(new: Memcached) -> OldMemcached:
    """The way back stays a function."""
    return OldMemcached(spec=new.spec)


@operator.convert(OldMemcached, Memcached)  # type: ignore[arg-type]  # takes the other version
def wrong(new: Memcached) -> Memcached:
    return new


@upgrade.reverse  # type: ignore[arg-type]  # returns the other version
def wrong_way(new: Memcached) -> Memcached:
    return new


def converts(old: OldMemcached, new: Memcached) -> None:
    """Both directions know their types."""
    assert_type(upgrade, DeclaredConversion[OldMemcached, Memcached])
    assert_type(upgrade(old), Memcached)
    assert_type(downgrade(new), OldMemcached)


async def waits_in_a_test(cluster: Cluster) -> None:
    """The condition gets an object of the kind, and the wait returns one."""
    assert_type(await cluster.until(Memcached, "cache", lambda it: it.status.observed_generation == 1), Memcached)
    assert_type(await cluster.until(Kind("", "v1", "Pod", plural="pods"), "a", bool), Dynamic)
    await cluster.until(Deployment, "cache", lambda it: it.no_such_field)  # type: ignore[attr-defined]
