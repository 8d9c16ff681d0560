"""What conversion webhooks are measured with: a list of objects that are stored in an old version, and one large review."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import rig
from filling import Stock
from measuring import Run
from navarch import connect, load
from navarch.api import Kind
from navarch.client import MergePatch
from navarch.schema import Webhook, crd
from webhooks.servers import Hall, ReviewServer
from webhooks.versions import VERSION, NextWidget
from widgets import GROUP, NAMESPACE, PLURAL, Widget

_CRDS = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)
_LIST = f"/apis/{GROUP}/{{}}/namespaces/{NAMESPACE}/{PLURAL}"
_LIMIT_SECONDS = 120.0
_REVIEWS = 3


def measure_conversion(name: str, count: int, note_bytes: int) -> Run:
    """Lists the objects in the new version through a fresh API server, and then converts them all in one review."""
    with rig.running() as cluster, tempfile.TemporaryDirectory() as folder:
        Stock(cluster).fill(count, note_bytes)
        with Hall(Path(folder), cluster.kubeconfig, {}).converting(name) as server:
            asyncio.run(_install(cluster, server))
            before = server.cpu()
            took = _list_seconds(cluster, count)
            cpu = server.cpu() - before
            body = _review(_get(cluster, _LIST.format("v1"))[1])
            review = min(_review_seconds(server, body, count) for _ in range(_REVIEWS))
            _, peak = server.worker.memory()
    return Run(took, cpu, peak, count, {"list": took, "review": review, "size": len(body) / 1e6})


async def _install(cluster: rig.Cluster, server: ReviewServer) -> None:
    """Adds the new version to the CRD; the old one stays the stored one."""
    webhook = Webhook(url=f"https://127.0.0.1:{server.port}/convert", ca_bundle=(server.folder / "ca.crt").read_bytes())
    definition = crd(Widget, NextWidget, conversion=webhook)
    async with connect(load(cluster.kubeconfig)) as client:
        await client.patch(_CRDS, definition["metadata"]["name"], MergePatch({"spec": definition["spec"]}))


def _list_seconds(cluster: rig.Cluster, count: int) -> float:
    """Returns how long it takes from the first request that is served until the list is there.

    The API server keeps what was converted, so only the first list of a version tells. It may ask clients to come back while
    it reads the objects.
    """
    deadline, began = time.monotonic() + _LIMIT_SECONDS, 0.0
    while time.monotonic() < deadline:
        asked = time.monotonic()
        status, body = _get(cluster, _LIST.format(VERSION))
        if status == 404:
            continue
        began = began or asked
        if status == 200:
            took = time.monotonic() - began
            found = json.loads(body)["items"]
            if len(found) != count or any("size" not in each["spec"] for each in found):
                raise RuntimeError(f"expected {count} objects in {VERSION}, got {len(found)}: {body[:500]!r}")
            return took
    raise TimeoutError(f"expected a list in {VERSION} within {_LIMIT_SECONDS:g} s, got none")


def _get(cluster: rig.Cluster, path: str) -> tuple[int, bytes]:
    trusted = ssl.create_default_context(cafile=cluster.ca_file)
    connection = http.client.HTTPSConnection(urlsplit(cluster.url).netloc, context=trusted, timeout=_LIMIT_SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {cluster.token}"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _review(listed: bytes) -> bytes:
    """Returns one review of all objects."""
    request = {"uid": "1", "desiredAPIVersion": f"{GROUP}/{VERSION}", "objects": json.loads(listed)["items"]}
    review = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


def _review_seconds(server: ReviewServer, body: bytes, count: int) -> float:
    began = time.perf_counter()
    status, answer = server.post("/convert", body)
    took = time.perf_counter() - began
    response: dict[str, Any] = json.loads(answer)["response"] if status == 200 else {}
    if len(response.get("convertedObjects", ())) != count:
        raise RuntimeError(f"expected {count} converted objects, got {status}: {answer[:500]!r}")
    return took
