"""The pytest plugin: `cluster`, a fresh one for each test that asks for it.

pytest loads this module in every run of whoever has installed navarch: what a cluster needs is not imported before a test
asks for one. It runs in the loop of pytest-asyncio.

A cluster has Kubernetes' own controllers and a scheduler, but no nodes. `@pytest.mark.cluster(nodes=2)` gives it some,
whose pods are real processes, `@pytest.mark.cluster(simulated=100)` some whose pods are data;
`@pytest.mark.cluster(controllers=False)` leaves the API server alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from navarch.cluster.embedded.equipment import Equipment
    from navarch.testing.cluster import Cluster

__all__ = ["cluster", "http_cluster", "pytest_configure"]

_MARKER = "cluster(controllers=True, nodes=0, simulated=0): what the cluster of the test has beside its API server"

_NEEDED = {
    "pytest_asyncio": "pytest-asyncio",
    "cryptography": "'navarch[cluster]'",
    "re2": "'navarch[cluster]'",
}
"""What fixtures import, and what it comes with."""


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", _MARKER)


def _fixture(function: Callable[[pytest.FixtureRequest], AsyncIterator[Cluster]]) -> Any:
    """A fixture that is a coroutine; where something is not installed, one that says what."""
    missing = sorted({package for module, package in _NEEDED.items() if find_spec(module) is None})
    if not missing:
        import pytest_asyncio  # noqa: PLC0415 - it may not be there

        return pytest_asyncio.fixture(function)

    @pytest.fixture(name=function.__name__)
    def without() -> None:
        pytest.fail(f"navarch's clusters need more than is installed: pip install {' '.join(missing)}", pytrace=False)

    return without


def _equipment(request: pytest.FixtureRequest) -> Equipment | None:
    """What the marker of the test asks for; None if that is nothing."""
    from navarch.cluster.embedded.equipment import Equipment  # noqa: PLC0415 - see above

    marker = request.node.get_closest_marker("cluster")
    try:
        wanted = Equipment(**marker.kwargs) if marker is not None else Equipment()
    except TypeError as error:
        pytest.fail(f"@pytest.mark.{_MARKER}; got something else: {error}", pytrace=False)
    return wanted if wanted.controllers or wanted.nodes or wanted.simulated else None


@_fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A fresh cluster in the process of the test, reached without a network."""
    from navarch.testing.cluster import in_process  # noqa: PLC0415 - see above

    async with in_process(_equipment(request)) as made:
        yield made


@_fixture
async def http_cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A fresh cluster over HTTPS on loopback, in a thread of its own: for clients of others, and those that block."""
    from navarch.testing.cluster import over_https  # noqa: PLC0415 - see above

    async with over_https(_equipment(request)) as made:
        yield made
