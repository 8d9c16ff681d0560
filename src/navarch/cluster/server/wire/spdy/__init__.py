"""SPDY/3.1 as Kubernetes uses it: many streams of bytes in one connection, opened by the client."""

from navarch.cluster.server.wire.spdy.connection import Connection, Service, Stream

__all__ = ["Connection", "Service", "Stream"]
