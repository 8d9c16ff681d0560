"""What a user's editor infers; mypy checks this file with the rest, nothing runs it."""

from typing import Any, assert_type

from navarch.api import (
    Condition,
    Dynamic,
    Kind,
    Object,
    ObjectMeta,
    OwnerReference,
    Resource,
    Spec,
    Status,
    controller_of,
    is_owned_by,
    owner_reference,
    set_controller,
)
from navarch.client import (
    ALL,
    Client,
    JsonPatch,
    Listing,
    MergePatch,
    MetadataOnly,
    ObjectList,
    PartialObjectMetadata,
    Watch,
    WatchEvent,
)
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.authentication.v1 import TokenRequest
from navarch.k8s.autoscaling.v1 import Scale
from navarch.k8s.core.v1 import ConfigMap, Pod, ServiceAccount


class MemcachedSpec(Spec):
    size: int = 1


class MemcachedStatus(Status):
    nodes: list[str] = []


class Memcached(Resource[MemcachedSpec, MemcachedStatus], group="cache.example.com", version="v1alpha1"): ...


class MemcachedV1(Memcached, version="v1", storage=False): ...


class Login(Spec, sensitive=("password",)):
    password: str = ""


class Stateless(Resource[MemcachedSpec, None], group="cache.example.com", version="v1alpha1"): ...


class Settings(Object, group="example.com", version="v1"):
    data: dict[str, str] = {}


WIDGET = Kind("example.com", "v1", "Widget", plural="widgets")


def constructors() -> None:
    """Name, labels, spec and status are keywords; nothing is required that has a default."""
    memcached = Memcached(name="cache", namespace="shop", labels={"a": "b"}, spec=MemcachedSpec(size=3))
    assert_type(memcached, Memcached)
    assert_type(memcached.name, str)
    assert_type(memcached.labels, dict[str, str])
    assert_type(memcached.metadata, ObjectMeta)
    assert_type(memcached.spec, MemcachedSpec)
    assert_type(memcached.spec.size, int)
    assert_type(memcached.status, MemcachedStatus)
    assert_type(memcached.status.nodes, list[str])
    assert_type(memcached.status.conditions, list[Condition])
    assert_type(memcached.status.condition("Ready"), Condition | None)
    assert_type(memcached.copy(), Memcached)
    assert_type(Memcached.from_json(b""), Memcached)
    assert_type(Stateless(name="a").status, None)
    assert_type(Settings(name="a", data={"a": "b"}).data, dict[str, str])
    assert_type(Memcached(metadata=ObjectMeta(generate_name="a-")), Memcached)
    assert_type(Memcached.__kind__, Kind)
    assert_type(MemcachedV1(name="a").spec, MemcachedSpec)
    assert_type(Login().password, str)


def owners(memcached: Memcached, dynamic: Dynamic) -> None:
    """With or without a class, on both sides."""
    set_controller(dynamic, memcached)
    set_controller(memcached, dynamic)
    assert_type(controller_of(dynamic), OwnerReference | None)
    assert_type(is_owned_by(dynamic, memcached), bool)
    assert_type(owner_reference(dynamic), OwnerReference)


async def reads(client: Client) -> None:
    """The class decides; a kind without a class gives dynamic objects."""
    assert_type(await client.get(Memcached, "a"), Memcached)
    assert_type(await client.get(Pod, "a", namespace="b"), Pod)
    assert_type(await client.get(WIDGET, "a"), Dynamic)
    assert_type(await client.get(MetadataOnly(Pod), "a"), PartialObjectMetadata)
    assert_type(await client.get(MetadataOnly(WIDGET), "a"), PartialObjectMetadata)
    listing = client.list(Memcached, namespace=ALL)
    _ = assert_type(listing, Listing[Memcached])
    assert_type(await listing, ObjectList[Memcached])
    assert_type(await client.list(Memcached, labels={"a": "b"}), ObjectList[Memcached])
    assert_type((await client.list(WIDGET))[0], Dynamic)
    assert_type((await client.list(Pod)).resource_version, str)
    assert_type([pod.name for pod in await client.list(Pod)], list[str])
    async for pod in client.list(Pod, page_size=10):
        assert_type(pod, Pod)


async def watches(client: Client) -> None:
    """Events carry objects of the class."""
    assert_type(client.watch(Pod), Watch[Pod])
    async with client.watch(Memcached) as changes:
        async for change in changes:
            assert_type(change, WatchEvent[Memcached])
            assert_type(change.object, Memcached)
    async with client.watch(WIDGET) as dynamic:
        assert_type((await anext(dynamic)).object, Dynamic)
    async with client.watch(MetadataOnly(Pod)) as partial:
        assert_type((await anext(partial)).object, PartialObjectMetadata)


async def writes(client: Client) -> None:
    """What is given is what comes back."""
    memcached, dynamic = Memcached(name="a"), Dynamic()
    assert_type(await client.create(memcached), Memcached)
    assert_type(await client.create(dynamic), Dynamic)
    assert_type(await client.replace(memcached), Memcached)
    assert_type(await client.replace_status(memcached), Memcached)
    assert_type(await client.apply(memcached, force=True), Memcached)
    assert_type(await client.apply(ConfigMap(name="a", data={"a": "b"})), ConfigMap)
    assert_type(await client.patch(Memcached, "a", MergePatch({})), Memcached)
    assert_type(await client.patch(WIDGET, "a", JsonPatch([])), Dynamic)
    assert_type(await client.delete(Memcached, "a", propagation="Foreground"), Memcached | None)
    assert_type(await client.get_scale(Deployment, "a"), Scale)
    assert_type(await client.get_subresource(Deployment, "a", "scale", Scale), Scale)
    assert_type(client.using(dry_run=True), Client)


async def tokens(client: Client, request: TokenRequest) -> str | None:
    """A subresource is answered with an object of the class that was posted."""
    answered = await client.create_subresource(ServiceAccount, "default", "token", request)
    assert_type(answered, TokenRequest)
    return answered.status.token


async def generic(client: Client, kinds: list[type[Object]]) -> list[Any]:
    """Code that knows no class in particular keeps what all objects have."""
    found = [await client.get(kind, "a") for kind in kinds]
    assert_type(found, list[Object])
    return [(item.name, item.metadata.uid, item.kind) for item in found]
