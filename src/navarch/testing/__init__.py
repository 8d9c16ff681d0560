"""Testing operators: a whole cluster inside the test, fresh for each.

pytest imports this package in every run of whoever has installed navarch, so that nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from navarch.testing.cluster import Cluster

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    if name != "Cluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from navarch.testing.cluster import Cluster  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise ImportError(
            f"navarch.testing.Cluster needs {error.name}, which is not installed: pip install 'navarch[cluster]'"
        ) from error
    return Cluster
