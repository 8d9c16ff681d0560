"""A kind for operators written with kopf, and such an operator in a thread of the test."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kopf

from chaos.waiting import until
from navarch.api import Dynamic, Kind

GROUP, VERSION, PLURAL = "sea.example.com", "v1", "ships"
SHIP = Kind(GROUP, VERSION, "Ship", plural=PLURAL)
LIMIT = 60.0

_ANYTHING: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Ship", "plural": PLURAL, "singular": "ship", "shortNames": ["sh"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
                },
                "subresources": {"status": {}},
            }
        ],
    },
}
"""kopf keeps its notes in the status, under names of its own."""


def ship(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Dynamic:
    metadata = {"name": name, "labels": labels or {}}
    return Dynamic({"apiVersion": f"{GROUP}/{VERSION}", "kind": "Ship", "metadata": metadata, "spec": spec})


class Harbour:
    """An operator of kopf: a test registers handlers, lets it run, and looks at what they wrote into the `log`."""

    def __init__(self, namespace: str) -> None:
        self.log: list[Any] = []
        self.registry = kopf.OperatorRegistry()
        self.settings = kopf.OperatorSettings()
        self.settings.process.ultimate_exiting_timeout = None
        self._namespace = namespace
        kopf.on.login(registry=self.registry)(kopf.login_with_kubeconfig)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Runs the operator; raises what it fails with."""
        ready, stop, failures = threading.Event(), threading.Event(), []

        def run() -> None:
            try:
                asyncio.run(self._operator(ready, stop))
            except BaseException as error:  # noqa: BLE001 - whoever started the thread gets it
                failures.append(error)
                ready.set()

        thread = threading.Thread(target=run, name="kopf", daemon=True)
        thread.start()
        try:
            assert ready.wait(LIMIT), f"expected kopf to be ready within {LIMIT:g} s"
            yield
        finally:
            stop.set()
            thread.join(LIMIT)
            gc.collect()  # kopf leaves its last connections to the collector: they must not be found in another test
        assert not thread.is_alive(), f"expected kopf to end within {LIMIT:g} s of being told to"
        if failures:
            raise failures[0]

    async def _operator(self, ready: threading.Event, stop: threading.Event) -> None:
        await kopf.operator(
            registry=self.registry,
            settings=self.settings,
            standalone=True,
            namespaces=[self._namespace],
            ready_flag=ready,
            stop_flag=stop,
        )

    async def logged(self, *entries: Any) -> None:
        """Waits until the log has all of these."""
        await until(lambda: all(entry in self.log for entry in entries), f"{entries} in {self.log}", seconds=LIMIT)
