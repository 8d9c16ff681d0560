"""A kind in three versions, with functions that lose fields in every direction."""

from __future__ import annotations

from typing import Annotated, Any

from navarch import ListMap, Model, Quantity, Resource, Spec, Status
from navarch.webhook.conversion import DeclaredConversion, declare_conversion

GROUP = "cache.example.com"


class AlphaSpec(Spec):
    count: int = 1
    retain: bool = False
    servers: list[str] = []
    motto: str | None = None
    """Only this version has it."""


class BetaPort(Model):
    name: str
    port: int = 0


class BetaSpec(Spec):
    size: int = 1
    policy: str = "Delete"
    ports: Annotated[list[BetaPort], ListMap("name")] = []
    motto: str | None = None


class Port(Model):
    name: str
    port: int = 0
    weight: int | None = None


class Server(Model):
    host: str
    rack: str | None = None


class CacheSpec(Spec):
    size: int = 1
    policy: str = "Delete"
    ports: Annotated[list[Port], ListMap("name")] = []
    servers: list[Server] = []
    memory: Quantity | None = None
    zone: str | None = None
    tags: set[str] = set()
    ratio: float = 1.0


class AlphaStatus(Status):
    nodes: list[str] = []


class CacheStatus(Status):
    nodes: list[str] = []
    phase: str | None = None


class AlphaCache(Resource[AlphaSpec, AlphaStatus], group=GROUP, version="v1alpha1", kind="Cache", storage=False): ...


class BetaCache(Resource[BetaSpec, AlphaStatus], group=GROUP, version="v1beta1", kind="Cache", storage=False): ...


class Cache(Resource[CacheSpec, CacheStatus], group=GROUP, version="v1"): ...


def pairs() -> list[DeclaredConversion[Any, Any]]:
    """The conversions v1alpha1 - v1 - v1beta1; v1 is stored."""
    declared: list[DeclaredConversion[Any, Any]] = []

    @declare_conversion(declared, AlphaCache, Cache)
    def upgrade(old: AlphaCache) -> Cache:
        spec = CacheSpec(
            size=old.spec.count,
            policy="Retain" if old.spec.retain else "Delete",
            servers=[Server(host=host) for host in old.spec.servers],
        )
        return Cache(spec=spec, status=CacheStatus(nodes=old.status.nodes))

    @upgrade.reverse
    def downgrade(new: Cache) -> AlphaCache:
        spec = AlphaSpec(
            count=new.spec.size,
            retain=new.spec.policy == "Retain",
            servers=[server.host for server in new.spec.servers],
        )
        return AlphaCache(spec=spec, status=AlphaStatus(nodes=new.status.nodes))

    @declare_conversion(declared, BetaCache, Cache)
    def from_beta(old: BetaCache) -> Cache:
        ports = [Port(name=port.name, port=port.port) for port in old.spec.ports]
        return Cache(spec=CacheSpec(size=old.spec.size, policy=old.spec.policy, ports=ports))

    @from_beta.reverse
    def to_beta(new: Cache) -> BetaCache:
        ports = [BetaPort(name=port.name, port=port.port) for port in new.spec.ports]
        return BetaCache(metadata=new.metadata, spec=BetaSpec(size=new.spec.size, policy=new.spec.policy, ports=ports))

    return declared


def manifest(version: str = "v1", **parts: Any) -> dict[str, Any]:
    """An object as the API server sends it."""
    metadata = {
        "name": "c",
        "namespace": "default",
        "uid": "7d1b",
        "generation": 3,
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": {"app": "cache"},
        "unheardOf": True,
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    }
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Cache", "metadata": metadata, **parts}
