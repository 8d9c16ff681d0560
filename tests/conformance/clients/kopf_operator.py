"""An operator as its users write and run it: `kopf run kopf_operator.py`."""

from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.progress_storage = kopf.StatusProgressStorage()
    settings.watching.initial_streaming = True


@kopf.on.create("sea.example.com", "v1", "ships")
def built(spec: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.status["crew"] = spec.get("crew", 0)


@kopf.on.delete("sea.example.com", "v1", "ships")
def scrapped(logger: Any, **_: Any) -> None:
    logger.info("she is scrapped")
