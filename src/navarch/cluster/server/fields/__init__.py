"""Managed fields: who owns which field of an object, server-side apply, and patches."""

from navarch.cluster.server.fields.applying import applied
from navarch.cluster.server.fields.kinds import KindShape, builtin_shape, custom_shape, shape_of
from navarch.cluster.server.fields.managers import settled, updated

__all__ = [
    "KindShape",
    "applied",
    "builtin_shape",
    "custom_shape",
    "settled",
    "shape_of",
    "updated",
]
