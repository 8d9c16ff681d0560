"""The pytest plugin: the fixture `cluster` is a fresh cluster for each test, `operator` the operator of the project.

pytest loads this module in every run where navarch is installed: the modules of a cluster are imported when a test first
requests one. The cluster runs in the event loop of pytest-asyncio.

A cluster has Kubernetes' controllers and a scheduler, but no nodes. `@pytest.mark.cluster(nodes=2)` adds nodes whose pods
are processes, `@pytest.mark.cluster(simulated=100)` adds nodes whose pods are data, and
`@pytest.mark.cluster(controllers=False)` runs the API server alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from navarch.cluster.embedded.components import ComponentOptions
    from navarch.operator import Operator
    from navarch.testing.cluster import Cluster

__all__ = ["cluster", "http_cluster", "operator", "pytest_addoption", "pytest_configure"]

_MARKER = "cluster(controllers=True, nodes=0, simulated=0): what the cluster of the test has beside its API server"

_PERMISSIONS = "navarch-permissions"
"""The name of the `PermissionSession` among pytest's plugins."""

_NEEDED = {
    "pytest_asyncio": "pytest-asyncio",
    "cryptography": "'navarch[cluster]'",
    "re2": "'navarch[cluster]'",
}
"""Modules that the fixtures import, and the pip requirement that installs each."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options for the permissions of a project's operator."""
    group = parser.getgroup("navarch")
    group.addoption(
        "--record-permissions",
        action="store_true",
        help="record which permissions the project's operator uses in the tests, in config/rbac/recorded.json",
    )
    group.addoption(
        "--as-operator",
        action="store_true",
        help="run the project's operator with the permissions of the roles in config/rbac, and no others",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker, and what the options ask for."""
    config.addinivalue_line("markers", _MARKER)
    records, as_operator = config.getoption("record_permissions"), config.getoption("as_operator")
    if records or as_operator:
        from navarch.testing.permission_session import PermissionSession  # noqa: PLC0415 - see above

        session = PermissionSession(config, records=records, as_operator=as_operator)
        config.pluginmanager.register(session, _PERMISSIONS)


def _as_deployed(request: pytest.FixtureRequest, made: Cluster) -> Cluster:
    """Returns the cluster; with one of the options, the project's operator runs in it as it is deployed."""
    session = request.config.pluginmanager.get_plugin(_PERMISSIONS)
    return made if session is None else cast("Cluster", session.cluster_of(made, request.node.nodeid))


def _fixture(function: Callable[[pytest.FixtureRequest], AsyncIterator[Cluster]]) -> Any:
    """Returns an asynchronous fixture or, if a package is missing, one that fails and names the package."""
    missing = sorted({package for module, package in _NEEDED.items() if find_spec(module) is None})
    if not missing:
        import pytest_asyncio  # noqa: PLC0415 - it may not be there

        return pytest_asyncio.fixture(function)

    @pytest.fixture(name=function.__name__)
    def without() -> None:
        pytest.fail(
            f"the fixture needs packages that are not installed: pip install {' '.join(missing)}", pytrace=False
        )

    return without


def _components(request: pytest.FixtureRequest) -> ComponentOptions | None:
    """Returns the components that the test's marker requests; None for an API server alone."""
    from navarch.cluster.embedded.components import ComponentOptions  # noqa: PLC0415 - see above

    marker = request.node.get_closest_marker("cluster")
    try:
        wanted = ComponentOptions(**marker.kwargs) if marker is not None else ComponentOptions()
    except TypeError as error:
        pytest.fail(f"@pytest.mark.{_MARKER}; got something else: {error}", pytrace=False)
    return wanted if wanted.controllers or wanted.nodes or wanted.simulated else None


@_fixture
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A fresh cluster in the test's process, without a network."""
    from navarch.testing.cluster import in_process  # noqa: PLC0415 - see above

    async with in_process(_components(request)) as made:
        yield _as_deployed(request, made)


@_fixture
async def http_cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A fresh cluster over HTTPS on loopback, in its own thread: for other client libraries and synchronous clients."""
    from navarch.testing.cluster import over_https  # noqa: PLC0415 - see above

    async with over_https(_components(request)) as made:
        yield _as_deployed(request, made)


@pytest.fixture
def operator(pytestconfig: pytest.Config) -> Operator:
    """The operator of the project that the tests belong to, with all of its controllers and webhooks."""
    from navarch.errors import NavarchError  # noqa: PLC0415 - see above
    from navarch.operator import load_operator  # noqa: PLC0415 - see above
    from navarch.project.project import Project  # noqa: PLC0415 - see above

    try:
        return load_operator(Project.find(pytestconfig.rootpath).settings.package)
    except NavarchError as error:
        pytest.fail(f"the fixture `operator`: {error}", pytrace=False)
