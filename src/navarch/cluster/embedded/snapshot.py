"""A fresh control plane, made once per process and copied from then on."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import uuid
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from navarch._base.clock import Clock, ManualClock
from navarch.api import format_time, truncate_to_seconds
from navarch.cluster.embedded.assembly import Assembled, Materials
from navarch.cluster.embedded.bootstrap import CLUSTER_IP, SERVICES, bootstrap_objects
from navarch.cluster.server.access import SigningKey
from navarch.cluster.server.audit import AuditLog
from navarch.cluster.server.builtin import builtin_types
from navarch.cluster.server.request import ApiRequest, Json, User
from navarch.cluster.server.types import Catalog
from navarch.cluster.storage import Storage
from navarch.cluster.storage.file import FileStorage
from navarch.cluster.storage.memory import MemoryStorage

__all__ = ["fill"]

_REGISTRY: Final = "/registry/"
_MADE_AT: Final = datetime(2000, 1, 1, tzinfo=UTC)
_ITSELF: Final = User("system:apiserver", groups=("system:masters",))
_TOKEN: Final = "of-the-server-itself"  # noqa: S105 - for a server that nobody else reaches


class _Template(NamedTuple):
    """A stored object; its uid and the time that it was made at are put in when it is copied."""

    key: str
    value: bytes
    uid: bytes


_templates: list[_Template] = []


async def fill(storage: Storage, clock: Clock, rng: random.Random, services: str = SERVICES) -> None:
    """Puts into an empty store what a fresh control plane has; one that holds namespaces is left alone.

    Services get their addresses from the range `services`.
    """
    if (await storage.page("/registry/namespaces/", limit=1)).items:
        return
    if not _templates:
        _templates.extend(await _made())
    now = format_time(truncate_to_seconds(clock.now())).encode()
    templates = _templates if services == SERVICES else [_moved(each, services) for each in _templates]
    await asyncio.gather(*(storage.put(each.key, _copied(each, now, rng), expected=0) for each in templates))
    if isinstance(storage, MemoryStorage | FileStorage):  # an etcd may have other users
        await storage.compact(await storage.revision())


def _moved(template: _Template, services: str) -> _Template:
    """With the range of services, and the first address of it, in the place of the usual ones."""
    first = str(next(ipaddress.ip_network(services).hosts()))
    value = template.value.replace(f'"{SERVICES}"'.encode(), f'"{services}"'.encode())
    value = value.replace(f'"{CLUSTER_IP}"'.encode(), f'"{first}"'.encode())
    return template._replace(key=template.key.replace(CLUSTER_IP, first), value=value)


def _copied(template: _Template, now: bytes, rng: random.Random) -> bytes:
    uid = str(uuid.UUID(int=rng.getrandbits(128), version=4)).encode()
    return template.value.replace(template.uid, uid).replace(_then(), now)


def _then() -> bytes:
    return format_time(_MADE_AT).encode()


async def _made() -> list[_Template]:
    """Creates every object through a server, so that it has all that the server gives to objects."""
    clock, storage = ManualClock(_MADE_AT), MemoryStorage()
    rng = random.Random(0)  # noqa: S311 - what it makes is replaced
    key, audit = SigningKey.generate(), AuditLog(clock, capacity=1)
    made = Assembled(Materials(storage=storage, clock=clock, rng=rng, key=key, audit=audit, tokens={_TOKEN: _ITSELF}))
    catalog = Catalog(builtin_types(clock))
    for each in bootstrap_objects():
        await _create(made, catalog, each)
    return [_template(item.key, item.value) for item in (await storage.page(_REGISTRY)).items]


async def _create(made: Assembled, catalog: Catalog, value: Json) -> None:
    resource = catalog.of_kind(value["apiVersion"], value["kind"])
    assert resource is not None, value["kind"]
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    namespace = value["metadata"].get("namespace", "")
    path = f"{root}/namespaces/{namespace}/{resource.plural}" if namespace else f"{root}/{resource.plural}"
    headers = {
        "authorization": f"Bearer {_TOKEN}",
        "content-type": "application/json",
        "user-agent": "kube-apiserver",
    }
    reply = await made.server.handle(
        ApiRequest(method="POST", path=path, headers=headers, body=msgspec.json.encode(value))
    )
    assert reply.status == 201, reply.body.decode()


def _template(key: str, value: bytes) -> _Template:
    return _Template(key, value, msgspec.json.decode(value)["metadata"]["uid"].encode())
