"""Finds reconcilers that change objects where a change is lost, or is seen by others."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec

from navarch.api import Key, encode
from navarch.api.differences import differing_paths
from navarch.cache import Collection
from navarch.observe.logs import logger

__all__ = ["MisuseDetector"]

_log = logger("navarch.controller.misuse")

_FIRST = 100
_THEN_EVERY = 32
_VIEWS_CHECKED = 16
_PATHS_SHOWN = 5


class MisuseDetector:
    """Looks at the first hundred reconciles of a controller and at every 32nd after that; warns once of each mistake.

    To look costs about as much as to encode the spec twice and what was read from the cache once.
    """

    def __init__(self, controller: str, collections: Iterable[Collection[Any]]) -> None:
        self._controller = controller
        self._collections = tuple(collections)
        self._count = 0
        self._warned_of_spec = False

    def begin(self, primary: Any) -> bytes | None:
        """The spec before the reconcile; None if this one is not looked at."""
        self._count += 1
        if self._count > _FIRST and self._count % _THEN_EVERY:
            return None
        return encode(getattr(primary, "spec", None))

    def end(self, before: bytes | None, primary: Any, key: Key) -> None:
        """Warns of what the reconcile changed."""
        if before is None:
            return
        after = encode(getattr(primary, "spec", None))
        if after != before and not self._warned_of_spec:
            self._warned_of_spec = True
            paths = differing_paths(msgspec.json.decode(before), msgspec.json.decode(after), "spec")
            _log.warning(
                "the reconciler changed the spec of its object, which is a private copy: nothing of it is written; "
                "use ctx.patch(...) to change the object, or a variable of your own",
                controller=self._controller,
                object=str(key),
                changed=_shown(paths),
            )
        for collection in self._collections:
            for changed, paths in collection.take_changed_views(_VIEWS_CHECKED):
                _log.warning(
                    "an object from the cache was changed by its reader, and other reconciles could see that; it is read "
                    "anew from now on. Change a copy: found.copy()",
                    controller=self._controller,
                    object=f"{collection.kind.kind} {changed}",
                    changed=_shown(paths),
                )


def _shown(paths: Iterable[str]) -> str:
    first = list(islice(paths, _PATHS_SHOWN + 1))
    return ", ".join(first[:_PATHS_SHOWN]) + (", ..." if len(first) > _PATHS_SHOWN else "")
