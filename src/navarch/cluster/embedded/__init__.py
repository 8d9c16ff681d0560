"""The embedded cluster as one thing: server, storage, credentials, and ways to reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navarch._base.lazy import lazy_exports

if TYPE_CHECKING:
    from navarch.cluster.embedded.cluster import ADMIN, EmbeddedCluster
else:
    # Commands look at the folders of clusters, which takes a tenth of the time that a whole server takes to be imported.
    __getattr__ = lazy_exports(__name__, {"cluster": ("ADMIN", "EmbeddedCluster")})

__all__ = ["ADMIN", "EmbeddedCluster"]
