"""Verdicts of the real API server about random pods.

`PYTHONPATH=src:scripts:tests python -m security.pod_security_recording` writes them anew.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import rig
from security.pod_fragments import pod, random_fragments, random_labels
from security.pod_security_server import Json, Server, serving

FILE = Path(__file__).parent / "data" / "pod_security.json"
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


async def _record() -> None:
    with rig.running() as cluster:
        async with serving(cluster) as server:
            found = await answered(server, questions(SEED))
    lines = ",\n".join(json.dumps(each) for each in found)
    FILE.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    asyncio.run(_record())
