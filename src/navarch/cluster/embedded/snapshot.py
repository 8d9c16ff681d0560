"""A fresh control plane, copied from what a server has made: see scripts/fresh_cluster.py."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import uuid
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from navarch._base.clock import Clock
from navarch.api import format_time, truncate_to_seconds
from navarch.cluster.embedded.bootstrap import CLUSTER_IP, SERVICES
from navarch.cluster.storage import Storage
from navarch.cluster.storage.file import FileStorage
from navarch.cluster.storage.memory import MemoryStorage

__all__ = ["FRESH", "MADE_AT", "fill"]

FRESH: Final = Path(__file__).parent / "data" / "fresh.jsonl"
MADE_AT: Final = datetime(2000, 1, 1, tzinfo=UTC)


class _Template(NamedTuple):
    """A stored object; its uid and the time that it was made at are put in when it is copied."""

    key: str
    value: bytes
    uid: bytes


class _Metadata(msgspec.Struct):
    uid: str


class _Named(msgspec.Struct):
    metadata: _Metadata


class _Kept(msgspec.Struct):
    """A line of the file."""

    key: str
    value: msgspec.Raw


async def fill(storage: Storage, clock: Clock, rng: random.Random, services: str = SERVICES) -> None:
    """Puts into an empty store what a fresh control plane has; one that holds namespaces is left alone.

    Services get their addresses from the range `services`.
    """
    if (await storage.page("/registry/namespaces/", limit=1)).items:
        return
    now = format_time(truncate_to_seconds(clock.now())).encode()
    templates = _templates() if services == SERVICES else [_moved(each, services) for each in _templates()]
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
    return format_time(MADE_AT).encode()


@cache
def _templates() -> tuple[_Template, ...]:
    kept = msgspec.json.Decoder(_Kept).decode_lines(FRESH.read_bytes())
    return tuple(_template(each.key, bytes(each.value)) for each in kept)


def _template(key: str, value: bytes) -> _Template:
    return _Template(key, value, msgspec.json.decode(value, type=_Named).metadata.uid.encode())
