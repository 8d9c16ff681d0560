"""Hostile texts in every place of a request: whatever is asked is answered, and no answer is a fault of the server."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.server.wire.request import ApiRequest
from navarch.cluster.storage.memory import MemoryStorage
from security.parser_table import BODIES, TEXTS, YAML

OVERLOOKED = b"an error on the server has prevented the request"
REQUESTS = 250
SECONDS = 60.0
PLACES = (
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/services",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/cronjobs",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/networking.k8s.io/v1/ipaddresses",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
)
PARAMETERS = ("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "timeout", "gracePeriodSeconds")
TYPES = (
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
)


def hostile(rng: random.Random) -> str:
    text: str = rng.choice([*TEXTS.values()])(rng.choice([1, 20, 300, 6000]))
    return text.encode("utf-8", "replace").decode()


def document(place: str, rng: random.Random) -> dict[str, Any]:
    """An object of its kind, with hostile texts where such an object has texts that are read."""
    bad = [hostile(rng) for _ in range(8)]
    spec: dict[str, Any] = {
        "schedule": bad[0],
        "timeZone": bad[1],
        "selector": {"matchLabels": {bad[2][:60]: bad[3][:60]}},
        "maxUnavailable": bad[4],
        "strategy": {"rollingUpdate": {"maxSurge": bad[5], "maxUnavailable": bad[6]}},
        "containers": [{"name": "a", "image": bad[7], "resources": {"limits": {"cpu": bad[0], bad[1][:40]: "1"}}}],
        "validations": [{"expression": bad[2]}],
        "versions": [{"name": bad[3][:40], "schema": {"openAPIV3Schema": {"type": "object", "pattern": bad[4]}}}],
        "clusterIP": bad[5],
    }
    return {
        "metadata": {"name": rng.choice(["victim", bad[6]]), "resourceVersion": rng.choice(["", bad[7]])},
        "spec": spec,
        "data": {bad[0]: bad[1]},
        "status": {"completedIndexes": bad[2], "startTime": bad[3]},
    }


def request(rng: random.Random, token: str) -> ApiRequest:
    place, method = rng.choice(PLACES), rng.choice(["GET", "POST", "PUT", "PATCH", "DELETE"])
    path = place if method == "POST" else f"{place}/{rng.choice(['victim', 'victim', hostile(rng)[:50]])}"
    if rng.random() < 0.5:
        body = json.dumps(document(place, rng)).encode()
    else:
        body = rng.choice([*BODIES.values(), *YAML.values()])(rng.choice([20, 3000]))
    return ApiRequest(
        method=method,
        path=path,
        query={name: [hostile(rng)] for name in PARAMETERS if rng.random() < 0.3},
        headers={"authorization": f"Bearer {token}", "content-type": rng.choice(TYPES)},
        body=body if method != "GET" else b"",
    )


@pytest.mark.parametrize("seed", range(4))
async def test_hostile_requests_are_answered(seed: int) -> None:
    """Seeded, so that a failure can be repeated; the message names the request."""
    rng = random.Random(seed)
    async with EmbeddedCluster(MemoryStorage()) as cluster, asyncio.timeout(SECONDS * 10):
        for number in range(REQUESTS):
            asked = request(rng, cluster.token)
            reply = await cluster.server.handle(asked)
            if reply.stream is not None:
                await reply.stream.aclose()  # type: ignore[attr-defined]
            assert OVERLOOKED not in (reply.body or b""), (
                number,
                asked.method,
                asked.path,
                asked.query,
                asked.body[:300],
            )
