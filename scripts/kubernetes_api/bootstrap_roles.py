"""The roles and bindings that Kubernetes makes for itself, as a data file of the embedded server.

Run it as `python -m kubernetes_api.bootstrap_roles`: the rig starts a fresh cluster to read from.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import rig
from kubernetes_api import files
from kubernetes_api.fetch import Readable
from kubernetes_api.server import Server

DATA = Path(__file__).parents[2] / "src/navarch/cluster/server/pipeline/authorization/data"
KINDS = {
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "clusterrolebindings": "ClusterRoleBinding",
    "rolebindings": "RoleBinding",
}
OWN = "labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults"
KEPT = ("name", "namespace", "labels", "annotations")
AGGREGATION_SECONDS = 30.0

Json = dict[str, Any]


def fetch(server: Readable) -> Json:
    """Kind by kind, sorted, with only what does not differ from cluster to cluster."""
    return {kind: [_normalised(each) for each in _listed(server, plural)] for plural, kind in KINDS.items()}


def _listed(server: Readable, plural: str) -> list[Json]:
    items: list[Json] = server.get(f"/apis/rbac.authorization.k8s.io/v1/{plural}?{OWN}")["items"]
    return sorted(items, key=lambda each: (each["metadata"].get("namespace", ""), each["metadata"]["name"]))


def _normalised(role: Json) -> Json:
    metadata = {key: value for key, value in role["metadata"].items() if key in KEPT}
    return {"metadata": metadata} | {key: value for key, value in role.items() if key != "metadata"}


def _is_aggregated(found: Json) -> bool:
    """Whether the controller has filled in every role that is made of others."""
    return all(role["rules"] for role in found["ClusterRole"] if "aggregationRule" in role)


def main() -> int:
    """Write the data file."""
    with rig.running() as cluster, Server(cluster.kubeconfig) as server:
        deadline = time.monotonic() + AGGREGATION_SECONDS
        while not _is_aggregated(found := fetch(server)):
            if time.monotonic() > deadline:
                raise rig.WaitError("expected the aggregated roles to get their rules")
            time.sleep(0.2)
    size = files.write(DATA, {"bootstrap_roles.json": found})
    print(f"{sum(map(len, found.values()))} roles and bindings, {size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
