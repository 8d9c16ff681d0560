"""Tests of operators: a whole cluster inside the test, fresh for each test.

pytest imports this package in every run where navarch is installed. Names are therefore imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from navarch.testing.cluster import Cluster
    from navarch.testing.faults import faulty
    from navarch.testing.role_tests import permission_tests
    from navarch.testing.round_trip_tests import round_trips

__all__ = ["Cluster", "faulty", "permission_tests", "round_trips"]

_PLACES: Final = {
    "Cluster": "navarch.testing.cluster",
    "faulty": "navarch.testing.faults",
    "permission_tests": "navarch.testing.role_tests",
    "round_trips": "navarch.testing.round_trip_tests",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"navarch.testing.{name} needs {error.name}, which is not installed: pip install 'navarch[cluster]'"
        ) from error
