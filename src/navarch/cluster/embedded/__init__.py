"""The embedded cluster: server, storage, controllers, nodes and credentials as one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navarch._base.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from navarch.cluster.embedded.cluster import ADMIN, EmbeddedCluster
else:
    # Commands import `cluster_folder` alone, which takes a tenth of the time of importing the server.
    __getattr__ = lazy_exports(__name__, {"cluster": ("ADMIN", "EmbeddedCluster")})

__all__ = ["ADMIN", "EmbeddedCluster"]
