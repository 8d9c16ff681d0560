"""The embedded cluster as one thing: server, storage, credentials, and ways to reach it."""

from navarch.cluster.embedded.cluster import ADMIN, EmbeddedCluster

__all__ = ["ADMIN", "EmbeddedCluster"]
