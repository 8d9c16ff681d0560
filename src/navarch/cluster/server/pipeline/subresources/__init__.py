"""Endpoints of subresources that are more than a part of their object: scale, binding, eviction, reviews and tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.subresources.binding import bind, bind_by_name
from navarch.cluster.server.pipeline.subresources.eviction import evict
from navarch.cluster.server.pipeline.subresources.scale import scale
from navarch.cluster.server.wire.request import Reply

__all__ = ["BUILTIN_ENDPOINTS"]
BUILTIN_ENDPOINTS: Final[dict[tuple[str, str, str], Callable[[ResourceCall], Awaitable[Reply]]]] = {
    ("apps", "deployments", "scale"): scale,
    ("apps", "replicasets", "scale"): scale,
    ("apps", "statefulsets", "scale"): scale,
    ("", "replicationcontrollers", "scale"): scale,
    ("", "pods", "binding"): bind,
    ("", "bindings", ""): bind_by_name,
    ("", "pods", "eviction"): evict,
}
"""By group, resource and subresource."""
