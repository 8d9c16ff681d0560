"""Verdicts of the real API server about random pods: `make judge NAME=pod-security`."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import rig
from judge import KUBE_APISERVER, Recording, Verdicts
from security.pod_fragments import pod, random_fragments, random_labels
from security.pod_security_server import Json, Server, serving

DATA = Path(__file__).parent / "data"
FILE = "pod_security.json"
NAMESPACES = 40
PODS = 12
SEED = 13


def questions(seed: int) -> list[Json]:
    """Namespaces by their labels, and the pods that are to be tried there."""
    rng = random.Random(seed)
    return [
        {"labels": random_labels(rng), "pods": [{"fragments": random_fragments(rng)} for _ in range(PODS)]}
        for _ in range(NAMESPACES)
    ]


async def answered(server: Server, asked: list[Json]) -> list[Json]:
    """The questions with the verdicts of a server."""
    found: list[Json] = []
    for each in asked:
        path = await server.namespace(**each["labels"])
        tried = [await server.dry_run(path, pod(*one["fragments"])) for one in each["pods"]]
        pods = [
            {"fragments": one["fragments"], "verdict": answer.verdict}
            for one, answer in zip(each["pods"], tried, strict=True)
        ]
        found.append({"labels": each["labels"], "pods": pods})
        await server.ask("DELETE", path)
    return found


async def _asked(cluster: rig.Cluster) -> list[Json]:
    async with serving(cluster) as server:
        return await answered(server, questions(SEED))


def ask(cluster: rig.Cluster) -> Verdicts:
    """Tries every pod."""
    return {FILE: asyncio.run(_asked(cluster))}


RECORDING = Recording("pod-security", KUBE_APISERVER, DATA, (FILE,), ask)
