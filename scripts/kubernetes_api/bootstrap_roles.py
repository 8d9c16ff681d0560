"""The roles and bindings that Kubernetes makes for itself, as a data file of the embedded server.

`make judge NAME=bootstrap-roles` reads them from a fresh cluster of the rig.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import rig
from judge import KUBE_APISERVER, Recording, Verdicts
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


def ask(cluster: rig.Cluster) -> Verdicts:
    """Reads the roles and bindings, once the aggregated roles have their rules."""
    with Server(cluster.kubeconfig) as server:
        deadline = time.monotonic() + AGGREGATION_SECONDS
        while not _is_aggregated(found := fetch(server)):
            if time.monotonic() > deadline:
                raise rig.WaitError("expected the aggregated roles to get their rules")
            time.sleep(0.2)
    return {"bootstrap_roles.json": found}


RECORDING = Recording("bootstrap-roles", KUBE_APISERVER, DATA, ("bootstrap_roles.json",), ask)
