"""Managed fields: who owns which field of an object, server-side apply, and patches."""

from navarch.cluster.server.objects.fields.applying import applied
from navarch.cluster.server.objects.fields.kinds import KindShape, builtin_shape, custom_shape, shape_of
from navarch.cluster.server.objects.fields.managers import settled, updated
from navarch.cluster.server.objects.fields.patches import patched, unfit_patch, unknown_in_operations, unsupported

__all__ = [
    "KindShape",
    "applied",
    "builtin_shape",
    "custom_shape",
    "patched",
    "settled",
    "shape_of",
    "unfit_patch",
    "unknown_in_operations",
    "unsupported",
    "updated",
]
