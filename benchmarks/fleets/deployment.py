"""Creates a Deployment and waits until all its pods are available: `python -m fleets.deployment REPLICAS`."""

from __future__ import annotations

import sys
import time

import uvloop

from fleets.waiting import pod_spec, until_accounts
from navarch import Client, connect
from navarch.api import ObjectMeta
from navarch.client import WatchOptions
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector
from reporting import report_run

_LABELS = {"app": "bench"}


async def main(replicas: int) -> None:
    template = PodTemplateSpec(metadata=ObjectMeta(labels=_LABELS), spec=pod_spec())
    spec = DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=_LABELS), template=template)
    async with connect() as client:
        await until_accounts(client)
        began = time.perf_counter()
        await client.create(Deployment(name="bench", spec=spec))
        await _until_available(client, replicas)
        report_run(time.perf_counter() - began, replicas)


async def _until_available(client: Client, replicas: int) -> None:
    async with client.watch(Deployment, options=WatchOptions(initial=True)) as events:
        async for event in events:
            if event.object.status.available_replicas == replicas:
                return


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
