"""What a reconciler's editor infers of its context; mypy checks this file with the rest, nothing runs it."""

from datetime import datetime
from typing import assert_type

from navarch.api import Dynamic, Key, Kind, Object, Resource, Spec, Status
from navarch.client import ALL, Client, MetadataOnly, PartialObjectMetadata
from navarch.controller.context import Context
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import ConfigMap, Pod, Service
from navarch.observe.logs import Log


class Memcached(Resource[Spec, Status], group="cache.example.com", version="v1alpha1"): ...


WIDGET = Kind("example.com", "v1", "Widget", plural="widgets")


async def reads(ctx: Context) -> None:
    """The class decides."""
    assert_type(await ctx.get(Pod, "a"), Pod | None)
    assert_type(await ctx.get(Memcached, "a", namespace="b"), Memcached | None)
    assert_type(await ctx.get(WIDGET, "a"), Dynamic | None)
    assert_type(await ctx.get(MetadataOnly(Pod), "a"), PartialObjectMetadata | None)
    assert_type(await ctx.list(Pod), list[Pod])
    assert_type(await ctx.list(Pod, labels={"app": "web"}, namespace=ALL), list[Pod])
    assert_type(await ctx.list(Pod, index=("node", "n1")), list[Pod])
    assert_type(await ctx.list(WIDGET), list[Dynamic])


async def writes(ctx: Context, deployment: Deployment, service: Service, dynamic: Dynamic) -> None:
    """What goes in comes out; several kinds are what they have in common."""
    assert_type(await ctx.apply(deployment), Deployment)
    assert_type(await ctx.apply(dynamic, owned=False), Dynamic)
    assert_type(await ctx.create(service), Service)
    assert_type(await ctx.apply_all([deployment]), list[Deployment])
    assert_type(await ctx.apply_all([deployment, service], prune=(Deployment, WIDGET)), list[Object])
    assert_type(await ctx.delete(deployment), bool)
    assert_type(await ctx.delete(dynamic, grace_seconds=0), bool)
    assert_type(await ctx.delete(ConfigMap, "a", propagation="Foreground"), bool)
    assert_type(await ctx.delete(WIDGET, "a", namespace="b"), bool)


def the_rest(ctx: Context) -> None:
    """Plain functions wait for the same results."""
    assert_type(ctx.wait(ctx.list(Pod)), list[Pod])
    assert_type(ctx.wait(ctx.get(Pod, "a")), Pod | None)
    assert_type(ctx.log, Log)
    assert_type(ctx.client, Client)
    assert_type(ctx.key, Key)
    assert_type(ctx.reasons, tuple[str, ...])
    assert_type(ctx.reconcile_id, str)
    assert_type(ctx.now(), datetime)
    ctx.event("Grown", "to 3", type="Warning")
