"""Pods with the rig's probe."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import rig


def start_pod(
    cluster: rig.Cluster, name: str, *arguments: str, pod: Mapping[str, Any] = MappingProxyType({}), **container: Any
) -> None:
    """Run the probe in a pod, labelled `app` with its name, and wait until it is ready.

    `pod` has more fields of the pod's spec, the other arguments are more fields of the container.
    """
    image = {"name": "probe", "image": rig.PROBE_IMAGE, "imagePullPolicy": "IfNotPresent", "args": list(arguments)}
    spec = {"containers": [image | container], "terminationGracePeriodSeconds": 1, **pod}
    described = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(described))
    cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s", seconds=70)


def probe(cluster: rig.Cluster, pod: str, *arguments: str) -> str:
    """Run the probe once more in a pod and return what it prints; raises RigError if it fails."""
    return cluster.kubectl("exec", pod, "--", "/probe", *arguments)
