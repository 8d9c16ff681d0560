"""`navarch migrate` on many objects, killed again and again: what is in the objects afterwards is compared with before."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import rig
from contestants import OURS
from filling import Stock
from measuring import console
from navarch import Client, connect, load
from navarch.api import Kind
from navarch.client import ALL, MergePatch
from navarch.schema import Webhook, crd
from webhooks.servers import Hall, ReviewServer
from webhooks.versions import NextWidget
from widgets import Widget

_CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_CRD = Widget.__kind__.resource
_RATE = "5000"
_LIMIT_SECONDS = 300.0


def measure_migration(count: int, note_bytes: int, kills: int) -> tuple[int, float]:
    """Returns how many fields of the objects differ after the migration, and the seconds of its last run."""
    with rig.running() as cluster, tempfile.TemporaryDirectory() as folder:
        Stock(cluster).fill(count, note_bytes)
        with Hall(Path(folder), cluster.kubeconfig, {}).converting(OURS) as server:
            return asyncio.run(_migrated(cluster, server, count, kills))


async def _migrated(cluster: rig.Cluster, server: ReviewServer, count: int, kills: int) -> tuple[int, float]:
    async with connect(load(cluster.kubeconfig)) as client:
        before = await _contents(client)
        await _store_next(client, server)
        for _ in range(kills):
            await _killed(client, cluster, count // (kills + 2))
        began = time.monotonic()
        done = _migrate(cluster)
        result = json.loads((await asyncio.to_thread(done.communicate, timeout=_LIMIT_SECONDS))[0])
        took = time.monotonic() - began
        console.print(f"the last run of {kills + 1}: {result}")
        stored = (await client.get(_CRDS, _CRD))["status"]["storedVersions"]
        if stored != [NextWidget.__kind__.version]:
            raise AssertionError(f"expected the new version alone among the stored ones, got {stored}")
        after = await _contents(client)
    return sum(_differences(before[name], after.get(name)) for name in before), took


async def _store_next(client: Client, server: ReviewServer) -> None:
    """Makes the new version the stored one."""
    webhook = Webhook(url=f"https://127.0.0.1:{server.port}/convert", ca_bundle=(server.folder / "ca.crt").read_bytes())
    spec = crd(Widget, NextWidget, conversion=webhook)["spec"]
    for version in spec["versions"]:
        version["storage"] = version["name"] == NextWidget.__kind__.version
    await client.patch(_CRDS, _CRD, MergePatch({"spec": spec}))


def _migrate(cluster: rig.Cluster) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "navarch", "migrate", _CRD, "--output=json", f"--rate={_RATE}"]
    return subprocess.Popen(
        [*command, f"--kubeconfig={cluster.kubeconfig}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


async def _killed(client: Client, cluster: rig.Cluster, writes: int) -> None:
    """Runs a migration until it has rewritten so many objects, and kills it."""
    async with client.watch(Widget, namespace=ALL) as changes, asyncio.timeout(_LIMIT_SECONDS):
        process = _migrate(cluster)
        try:
            seen = 0
            async for change in changes:
                seen += change.type == "MODIFIED"
                if seen >= writes:
                    break
        finally:
            process.kill()
            process.communicate()


async def _contents(client: Client) -> dict[str, dict[str, Any]]:
    """All objects in the old version, without what a write changes by itself."""
    found = {}
    async for each in client.list(Widget.__kind__, namespace=ALL):
        metadata = {key: each.metadata[key] for key in each.metadata if key not in {"resourceVersion", "managedFields"}}
        found[f"{each.namespace}/{each.name}"] = {**each, "metadata": metadata}
    return found


def _differences(before: Any, after: Any) -> int:
    """Returns the number of values that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        return sum(_differences(before.get(key), after.get(key)) for key in before.keys() | after.keys())
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return sum(map(_differences, before, after))
    return int(before != after)
