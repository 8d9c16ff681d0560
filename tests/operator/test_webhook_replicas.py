"""Webhooks in two pods behind a Service, while a writer writes: rolled, scaled to zero, and back."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import navarch
from navarch import Operator
from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.cluster.embedded.components import ComponentOptions
from navarch.errors import AlreadyExists, Forbidden, ServerError
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.core.v1 import ConfigMap, Secret
from navarch.operator import needed_by, roles_of
from navarch.testing import Cluster
from navarch.testing.cluster import over_https

PROGRAM = """
import os
from datetime import timedelta

from navarch import Endpoints, Operator, Review, WebhookServer
from navarch.k8s.core.v1 import ConfigMap
from navarch.webhook import Certificates

lifetime = timedelta(seconds=int(os.environ.get("CA_SECONDS", "31536000")))
certificates = Certificates(lifetime=lifetime / 2, ca_lifetime=lifetime, propagation=timedelta(seconds=2))
server = WebhookServer(certificates=certificates)
operator = Operator("guard", endpoints=Endpoints(health=":8081", metrics=None), webhook_server=server)


@operator.validate(ConfigMap, labels="guarded")
async def check(config: ConfigMap, review: Review[ConfigMap]) -> None:
    if config.labels["guarded"] == "bad":
        review.deny("it is bad")


if __name__ == "__main__":
    operator.run()
"""
SOURCES = [str(Path(package.__file__ or "").parents[1]) for package in (navarch, msgspec)]
SECONDS = 120.0
LABELS = {"app": "guard"}


def manifests(operator: Operator) -> list[dict[str, Any]]:
    """The operator in its namespace: account, roles, Service, and a Deployment of two replicas."""
    account = "system:serviceaccount:guards:guard"
    container = {
        "name": "operator",
        "image": "guard:1",
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}, "periodSeconds": 1},
    }
    pod = {"serviceAccountName": "guard", "containers": [container]}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guards"}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guard", "namespace": "guards"}},
        *roles_of("guard", needed_by(operator, election_namespace="guards"), account),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "guard-webhook", "namespace": "guards"},
            "spec": {"selector": LABELS, "ports": [{"port": 443, "targetPort": 9443}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "guard", "namespace": "guards"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": pod},
            },
        },
    ]


@asynccontextmanager
async def deployed(folder: Path, **environment: str) -> AsyncIterator[Cluster]:
    """A cluster with a node that has the operator's image, which is this machine's Python."""
    (folder / "guard.py").write_text(PROGRAM)
    names: dict[str, Any] = {"__name__": "guard"}
    exec(compile(PROGRAM, "guard.py", "exec"), names)
    image = {
        "name": "guard",
        "version": "1",
        "argv": [sys.executable, str(folder / "guard.py")],
        "env": {"PYTHONPATH": ":".join(SOURCES), "PYTHONDONTWRITEBYTECODE": "1", **environment},
    }
    (folder / "images.json").write_bytes(msgspec.json.encode([image]))
    async with over_https(ComponentOptions(nodes=1, images=folder / "images.json")) as cluster:
        for manifest in manifests(names["operator"]):
            await cluster.apply(Dynamic(manifest))
        yield cluster


class Writer:
    """Creates good and bad ConfigMaps in turn until it is stopped."""

    def __init__(self, client: Client, name: str = "c") -> None:
        self._client = client
        self._name = name
        self.outcomes: Counter[str] = Counter()
        self.failures: list[str] = []

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            quality = "good" if number % 2 else "bad"
            config = ConfigMap(name=f"{self._name}-{number}", labels={"guarded": quality})
            try:
                await self._client.create(config)
            except Forbidden:
                self.outcomes[f"{quality} denied"] += 1
            except ServerError as error:
                self.outcomes["unanswered"] += 1
                self.failures.append(str(error))
            except AlreadyExists:
                continue
            else:
                self.outcomes[f"{quality} stored"] += 1

    async def until(self, cluster: Cluster, outcome: str, count: int) -> None:
        """Waits until so many more requests had that outcome."""
        wanted = self.outcomes[outcome] + count

        async def told() -> int:
            return self.outcomes[outcome]

        await cluster.eventually(told, lambda found: found >= wanted, timeout=SECONDS, what=f"{count} x {outcome}")


async def ready(cluster: Cluster, replicas: int) -> None:
    def rolled(it: Deployment) -> bool:
        status = it.status
        return (
            status.observed_generation == it.metadata.generation
            and (status.updated_replicas or 0) == (status.ready_replicas or 0) == (status.replicas or 0) == replicas
        )

    await cluster.until(Deployment, "guard", rolled, namespace="guards", timeout=SECONDS)


@pytest.mark.long
async def test_two_replicas_are_rolled_and_scaled_under_a_writer(tmp_path: Path) -> None:
    """No bad object is ever stored; a roll refuses no good one; without replicas nothing passes, and with them it does."""
    async with deployed(tmp_path) as cluster:
        await ready(cluster, 2)
        writer = Writer(cluster.client)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(writer.run())
            try:
                await writer.until(cluster, "good stored", 20)
                assert writer.outcomes["unanswered"] == 0, writer.failures[:3]

                await cluster.client.patch(
                    Deployment,
                    "guard",
                    MergePatch({"spec": {"template": {"metadata": {"annotations": {"roll": "1"}}}}}),
                    namespace="guards",
                )
                await ready(cluster, 2)
                await writer.until(cluster, "good stored", 20)
                assert writer.outcomes["unanswered"] == 0, writer.failures[:3]

                await cluster.client.scale(Deployment, "guard", 0, namespace="guards")
                await writer.until(cluster, "unanswered", 5)
                await cluster.client.scale(Deployment, "guard", 2, namespace="guards")
                await writer.until(cluster, "good stored", 20)
            finally:
                writing.cancel()
                with suppress(asyncio.CancelledError):
                    await writing
        assert writer.outcomes["bad stored"] == 0
        assert writer.outcomes["good denied"] == 0
        stored = [each async for each in cluster.client.list(ConfigMap, labels="guarded=bad")]
        assert not stored


@pytest.mark.long
async def test_no_request_is_refused_while_the_ca_rotates(tmp_path: Path) -> None:
    """Two replicas rotate a CA that lives for 45 s, twice, under eight writers: every good object is stored."""
    async with deployed(tmp_path, CA_SECONDS="45") as cluster:
        await ready(cluster, 2)
        dry = cluster.client.using(dry_run=True)
        writers = [Writer(dry, f"w{number}") for number in range(8)]
        first = await serving_ca(cluster)
        async with asyncio.TaskGroup() as group:
            writing = [group.create_task(writer.run()) for writer in writers]
            try:
                for _ in range(2):
                    first = await another_ca(cluster, first)
                await writers[0].until(cluster, "good stored", 50)
            finally:
                for task in writing:
                    task.cancel()
        outcomes = sum((writer.outcomes for writer in writers), Counter())
        assert outcomes["unanswered"] == 0, [writer.failures[:1] for writer in writers]
        assert outcomes["bad stored"] == outcomes["good denied"] == 0
        assert outcomes["good stored"] > 1000


async def serving_ca(cluster: Cluster) -> bytes:
    """The CA that signs."""
    secret = await cluster.client.get(Secret, "guard-webhook-tls", namespace="guards")
    return (secret.data or {})["ca.crt"]


async def another_ca(cluster: Cluster, before: bytes) -> bytes:
    """Waits until another CA signs, and returns it."""
    return await cluster.eventually(
        partial(serving_ca, cluster), lambda found: found != before, timeout=SECONDS, what="another CA that signs"
    )
