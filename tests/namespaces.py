"""Namespaces that go with a test."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator

from navarch.api import Dynamic, Kind
from navarch.client import Client

NAMESPACE = Kind("", "v1", "Namespace", plural="namespaces", namespaced=False)

_numbers = itertools.count(1)


@contextlib.asynccontextmanager
async def in_new_namespace(client: Client) -> AsyncIterator[Client]:
    """The client with a new namespace as its default, which is deleted at the end."""
    name = f"test-{next(_numbers)}"
    await client.create(Dynamic({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    yield client.using(namespace=name)
    await client.delete(NAMESPACE, name)
