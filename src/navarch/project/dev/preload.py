"""Prepares the supervisor: what every operator imports and computes at its start is there before a process is forked."""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Iterable
from typing import Final

__all__ = ["preload", "preload_modules"]

_MODULES: Final = (
    "uvloop",
    "navarch",
    "navarch.client.http",
    "navarch.operator.process",
    "navarch.operator.program",
    "navarch.operator.endpoint_server",
    "navarch.k8s.apps.v1",
    "navarch.k8s.authorization.v1",
    "navarch.k8s.core.v1",
    "navarch.k8s.events.v1",
    "encodings.idna",
)


def preload() -> None:
    """Imports what most operators need, and renders one CRD: it reads the docstrings of all classes that kinds share."""
    from navarch.api import Resource, Spec, Status  # noqa: PLC0415 - `navarch --help` needs no operator
    from navarch.schema import crd  # noqa: PLC0415 - as above

    class Sample(Resource[Spec, Status], group="preload.example.com", version="v1"):
        """A kind like those of projects."""

    crd(Sample)
    preload_modules(_MODULES)


def preload_modules(names: Iterable[str]) -> None:
    """Imports the modules that there are; the garbage collector of forked processes leaves their pages shared."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
