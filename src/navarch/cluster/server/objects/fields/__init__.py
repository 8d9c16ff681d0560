"""Managed fields: who owns which field of an object, server-side apply, and patches."""

from navarch.cluster.server.objects.fields.applying import applied
from navarch.cluster.server.objects.fields.kinds import KindShape, builtin_shape, custom_shape, shape_of
from navarch.cluster.server.objects.fields.managers import settled, updated
from navarch.cluster.server.objects.fields.patches import patched, unfit_patch, unknown_in_operations, unsupported
from navarch.cluster.server.objects.fields.scaling import (
    ScaleApply,
    applied_scale,
    entries_from_scale,
    entries_of_scale,
    updated_scale,
)
from navarch.cluster.server.wire.apply_bodies import applied_object

__all__ = [
    "KindShape",
    "ScaleApply",
    "applied",
    "applied_object",
    "applied_scale",
    "builtin_shape",
    "custom_shape",
    "entries_from_scale",
    "entries_of_scale",
    "patched",
    "settled",
    "shape_of",
    "unfit_patch",
    "unknown_in_operations",
    "unsupported",
    "updated",
    "updated_scale",
]
