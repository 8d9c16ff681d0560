"""StatefulSets whose containers mount the claims of their pods."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client
from navarch.errors import Invalid


def stateful_set(mounted: str) -> Dynamic:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    mounts = [{"name": mounted, "mountPath": "/data"}]
    template: dict[str, Any] = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [{"name": "db", "image": "db", "volumeMounts": mounts}]},
    }
    spec = {
        "serviceName": "db",
        "replicas": 0,
        "selector": {"matchLabels": {"app": "db"}},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return Dynamic({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec})


async def test_claims_can_be_mounted(client: Client) -> None:
    """A claim is a volume of every pod, though the template has none of that name; another name leads nowhere."""
    await client.create(stateful_set("data"))
    with pytest.raises(Invalid, match=r'volumeMounts\[0\]\.name: Not found: "other"'):
        await client.create(stateful_set("other"))
