"""The pytest plugin: `cluster`, a fresh one for each test that asks for it.

pytest loads this module in every run of whoever has installed navarch: what a cluster needs is not imported before a test
asks for one. It runs in the loop of pytest-asyncio.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from navarch.testing.cluster import Cluster

__all__ = ["cluster", "http_cluster"]


def _fixture(function: Callable[[], AsyncIterator[Cluster]]) -> Any:
    """A fixture that is a coroutine; where nothing can run those, one that says what is missing."""
    if find_spec("pytest_asyncio") is not None:
        import pytest_asyncio  # noqa: PLC0415 - it may not be there

        return pytest_asyncio.fixture(function)

    @pytest.fixture(name=function.__name__)
    def missing() -> None:
        pytest.fail("navarch's clusters need pytest-asyncio: pip install pytest-asyncio", pytrace=False)

    return missing


@_fixture
async def cluster() -> AsyncIterator[Cluster]:
    """A fresh cluster in the process of the test: an API server without a network, and nothing else in it."""
    from navarch.testing.engines import in_process  # noqa: PLC0415 - see above

    async with in_process() as made:
        yield made


@_fixture
async def http_cluster() -> AsyncIterator[Cluster]:
    """A fresh cluster over HTTPS on loopback, in a thread of its own: for clients of others, and those that block."""
    from navarch.testing.engines import over_https  # noqa: PLC0415 - see above

    async with over_https() as made:
        yield made
