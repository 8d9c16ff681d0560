"""The roles and bindings that Kubernetes makes for itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from navarch.cluster.server.pipeline.access.policy import RBAC_GROUP
from navarch.cluster.server.wire.request import Json

__all__ = ["bootstrap_roles"]

_DATA: Final = Path(__file__).parent / "data" / "bootstrap_roles.json"


def bootstrap_roles() -> list[Json]:
    """Kubernetes' default ClusterRoles, Roles and their bindings; a new copy each time.

    The namespaces of some, `kube-system` and `kube-public`, must be there or be made as well.
    """
    found: dict[str, list[Json]] = msgspec.json.decode(_DATA.read_bytes())
    return [
        {"apiVersion": f"{RBAC_GROUP}/v1", "kind": kind, "metadata": each.pop("metadata"), **each}
        for kind, roles in found.items()
        for each in roles
    ]
