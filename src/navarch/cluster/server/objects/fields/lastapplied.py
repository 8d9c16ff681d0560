"""The way from client-side to server-side apply: what `kubectl apply` noted in an annotation is its own."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from navarch.cluster.server.objects.fields.conflicts import Conflict
from navarch.cluster.server.objects.fields.fitting import fits
from navarch.cluster.server.objects.fields.kinds import KindShape
from navarch.cluster.server.objects.fields.reading import compare_maps, set_of
from navarch.cluster.server.objects.fields.sets import Tree, difference, has
from navarch.cluster.server.wire.request import Json

__all__ = ["MANAGER", "refresh", "unexpected"]

MANAGER: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_BYTES: Final = 256 * 1024


def unexpected(conflicts: list[Conflict], live: Json, shape: KindShape) -> list[Conflict]:
    """The conflicts about fields that were not applied by the client before, with the values that they still have."""
    own = _still_applied(live, shape)
    return conflicts if own is None else [each for each in conflicts if not has(own, *each.path)]


def _still_applied(live: Json, shape: KindShape) -> Tree | None:
    last = _last_applied(live)
    if last is None or last.get("apiVersion") != shape.api_version:
        return None
    if not (fits(last, shape.root) and fits(live, shape.root)):
        return None
    gone, came = compare_maps(last, live, shape.root)
    return difference(difference(set_of(last, shape.root), came), gone)


def _last_applied(live: Json) -> Json | None:
    noted = _annotations(live).get(ANNOTATION)
    try:
        found: Any = msgspec.json.decode(noted) if noted else None
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _annotations(value: Json) -> dict[str, str]:
    return (value.get("metadata") or {}).get("annotations") or {}


def refresh(result: Json, patch: Json) -> None:
    """Notes in the annotation, if there is one, what is applied now."""
    if not _annotations(result).get(ANNOTATION):
        return
    annotations = {**_annotations(result), ANNOTATION: _noted(patch)}
    if sum(len(name) + len(text.encode()) for name, text in annotations.items()) > _MOST_BYTES:
        del annotations[ANNOTATION]
    result["metadata"] = {**result["metadata"], "annotations": annotations}


def _noted(patch: Json) -> str:
    meta = patch.get("metadata") or {}
    annotations = {name: text for name, text in (meta.get("annotations") or {}).items() if name != ANNOTATION}
    plain = {name: member for name, member in meta.items() if name != "annotations"}
    body = {**patch, "metadata": {**plain, "annotations": annotations} if annotations else plain}
    return msgspec.json.encode(body, order="sorted").decode() + "\n"
