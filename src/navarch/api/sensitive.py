"""Objects that hold secrets, shown without them: `repr` ends up in logs, tracebacks and test reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

__all__ = ["masked_json", "masked_repr", "masked_rich_repr"]

MASK = "***"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # kubectl keeps the whole object there


def masked_repr(struct: Any) -> str:
    """The `__repr__` of a model with `sensitive=` fields."""
    return msgspec.Struct.__repr__(_masked(struct))


def masked_rich_repr(struct: Any) -> Any:
    """The same for what rich prints."""
    return msgspec.Struct.__rich_repr__(_masked(struct))


def masked_json(wire: dict[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """An object in the wire's names without the values of these fields."""
    hidden = {field: _hidden(wire[field]) for field in fields if field in wire}
    metadata = wire.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("annotations"), dict):
        hidden["metadata"] = metadata | {"annotations": _without_last_applied(metadata["annotations"])}
    return wire | hidden


def _masked(struct: Any) -> Any:
    hidden = {field: _hidden(getattr(struct, field)) for field in type(struct).__sensitive__}
    metadata: Any = getattr(struct, "metadata", None)
    if getattr(metadata, "annotations", None):
        annotations = _without_last_applied(metadata.annotations)
        hidden["metadata"] = msgspec.structs.replace(metadata, annotations=annotations)
    return msgspec.structs.replace(struct, **hidden)


def _hidden(value: Any) -> Any:
    """Keys may show, and whether there is anything."""
    if isinstance(value, dict):
        return dict.fromkeys(value, MASK)
    return MASK if value else value


def _without_last_applied(annotations: dict[str, str]) -> dict[str, str]:
    return annotations | {_LAST_APPLIED: MASK} if _LAST_APPLIED in annotations else annotations
