"""The embedded cluster: server, storage, controllers, nodes and credentials as one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navarch._base.lazy import names_of_parts

if TYPE_CHECKING:
    from navarch.cluster.embedded.cluster import ADMIN, EmbeddedCluster
else:
    # Commands import `cluster_folder` alone, which takes a tenth of the time of importing the server.
    __getattr__ = names_of_parts(__name__, {"cluster": ("ADMIN", "EmbeddedCluster")})

__all__ = ["ADMIN", "EmbeddedCluster"]
