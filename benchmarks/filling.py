"""Widgets by the hundred thousand, written straight into the API server's etcd, where they lie as JSON.

Created one by one through the API, they would take minutes. One is, and is the pattern for the rest, so that all are as
the server would have stored them, with managed fields and all.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
import uuid
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import rig
from measuring import console
from navarch import connect, load
from widgets import GROUP, NAMESPACE, PLURAL, VERSION, create, declare, manifest, widget

_PREFIX = f"/registry/{GROUP}/{PLURAL}/{NAMESPACE}/"
_AT_ONCE = 100
_LIMIT_SECONDS = 300
_NOW = b"(now)"
_SLOW_PAGES = 3


class Stock:
    """The widgets of a cluster: `fill` makes as many as are wanted."""

    def __init__(self, cluster: rig.Cluster) -> None:
        self._cluster = cluster
        self._etcd = _Etcd(cluster.etcd_url)
        asyncio.run(_declare(cluster))
        self._updates = 0
        self._pattern: dict[str, Any] = json.loads(self._etcd.get(_PREFIX + "widget-00000"))

    def fill(self, count: int, note_bytes: int = 120) -> float:
        """Makes the widgets 0 … `count` - 1, or writes them anew; returns the size in bytes of one on the wire."""
        with console.status(f"storing {count:,} widgets"):
            for first in range(0, count, _AT_ONCE):
                numbers = range(first, min(first + _AT_ONCE, count))
                written = dict(_stored(self._pattern, number, note="x" * note_bytes) for number in numbers)
                self._etcd.put(written)
            return _await_served(self._cluster, max(written))

    def rest(self) -> None:
        """Waits until the API server is at rest: a second page comes from etcd, which takes more than twice as long."""
        deadline, slow = time.monotonic() + _LIMIT_SECONDS, 0
        with console.status("waiting until a second page is slow"):
            while slow < _SLOW_PAGES:
                first, second = _page_seconds(self._cluster)
                slow = slow + 1 if second > 2 * first else 0
                if time.monotonic() > deadline:
                    raise TimeoutError(f"expected a second page to be slow within {_LIMIT_SECONDS} s")
                time.sleep(1)
        console.print(f"at rest: the first page takes {first * 1000:.0f} ms, the second {second * 1000:.0f} ms")

    def update(self, count: int, rate: float, seconds: float) -> int:
        """Updates the widgets in turns, so many a second, each with the time at which it was stored in its note.

        Returns how many updates that were.
        """
        began, turn = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            key, value = _stored(self._pattern, turn % count, generation=2 + self._updates)
            time.sleep(max(0.0, began + turn / rate - time.monotonic()))
            self._etcd.put({key: value.replace(_NOW, str(time.time_ns()).encode())})
            turn, self._updates = turn + 1, self._updates + 1
        return turn


async def _declare(cluster: rig.Cluster) -> None:
    async with connect(load(cluster.kubeconfig)) as client:
        await declare(client)
        await create(client, widget(0))


def _stored(pattern: dict[str, Any], number: int, note: str = _NOW.decode(), generation: int = 1) -> tuple[str, bytes]:
    """The key and the value of one widget."""
    wanted = manifest(number, note=note)
    name = wanted["metadata"]["name"]
    own = {"uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), "generation": generation}
    metadata = pattern["metadata"] | wanted["metadata"] | own
    value = json.dumps(pattern | wanted | {"metadata": metadata}, separators=(",", ":"))
    return _PREFIX + name, value.encode() + b"\n"


def _await_served(cluster: rig.Cluster, key: str) -> int:
    """Waits until the API server's own cache, from which it streams lists, has what etcd has; returns its size."""
    name = key.removeprefix(_PREFIX)
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}/{name}"
    deadline = time.monotonic() + _LIMIT_SECONDS
    while (stored := cluster.get(path)) is None or cluster.get(f"{path}?resourceVersion=0") != stored:
        if time.monotonic() > deadline:
            raise TimeoutError(f"expected the API server to serve {name} within {_LIMIT_SECONDS} s")
        time.sleep(0.2)
    return len(stored)


def _page_seconds(cluster: rig.Cluster) -> tuple[float, float]:
    """How long the first page of 500 and the second one take."""
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}?limit=500"
    began = time.perf_counter()
    first = json.loads(cluster.get(path) or b"{}")
    between = time.perf_counter()
    cluster.get(f"{path}&continue={quote(first['metadata']['continue'])}")
    return between - began, time.perf_counter() - between


class _Etcd:
    """As much of etcd's JSON gateway as is needed here."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=60)

    def get(self, key: str) -> bytes:
        """The value of one key."""
        found = self._call("/v3/kv/range", {"key": _base64(key.encode())})["kvs"]
        return base64.b64decode(found[0]["value"])

    def put(self, values: dict[str, bytes]) -> None:
        """Writes several keys in one transaction."""
        puts = [
            {"requestPut": {"key": _base64(key.encode()), "value": _base64(value)}} for key, value in values.items()
        ]
        self._call("/v3/kv/txn", {"success": puts})

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._connection.request("POST", path, json.dumps(body))
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"etcd {path}: {answer.status} {text.decode()[:500]}")
        found: dict[str, Any] = json.loads(text)
        return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
