"""What all tests share: a real cluster for those that ask for one, and no task left behind."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator, Iterator

import hypothesis
import pytest

import rig
from example_counts import FULL, PROFILE, QUICK, quick
from namespaces import in_new_namespace
from navarch.client import Client, connect, load

# The same examples in every run, and no test that fails because a machine is slow. New ones are looked for with
# HYPOTHESIS_PROFILE=explore, and what that finds becomes an example of its own.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.register_profile(FULL, derandomize=True, deadline=None)
hypothesis.settings.register_profile(
    QUICK, derandomize=True, deadline=None, max_examples=quick(hypothesis.settings().max_examples)
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` tries an eighth of the generated examples: `make e2e` runs those tests again, with all of them."""
    for item in items:
        if PROFILE == FULL and hypothesis.is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.long)


def pytest_sessionstart() -> None:
    """While test modules are parsed nothing is collected: Python 3.11 may fail to parse during a collection (gh-106905)."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the garbage collector need not look at millions of objects again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _nothing_left_running(request: pytest.FixtureRequest) -> None:
    """Checked for tests that have an event loop."""
    if inspect.iscoroutinefunction(getattr(request, "function", None)):
        request.getfixturevalue("_no_leaked_tasks")


@pytest.fixture
async def _no_leaked_tasks() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    leaked = asyncio.all_tasks() - before - {asyncio.current_task()}
    for task in leaked:
        task.cancel()
    assert not leaked, f"expected every task to have ended with the test, got {leaked}"


@pytest.fixture(scope="session")
def rig_cluster() -> Iterator[rig.Cluster]:
    """A real Kubernetes without nodes, for the whole session."""
    with rig.running() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def rig_cluster_with_scheduler() -> Iterator[rig.Cluster]:
    """A real Kubernetes with a scheduler, and no nodes but those that tests write: for the few modules that need it."""
    with rig.running(scheduler=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def rig_cluster_with_node() -> Iterator[rig.Cluster]:
    """A real Kubernetes with one node that runs containers, for the whole session."""
    with rig.running(node=True) as cluster:
        yield cluster


@pytest.fixture
async def client(rig_cluster: rig.Cluster) -> AsyncIterator[Client]:
    """A client whose default namespace is new and goes with the test."""
    async with connect(load(rig_cluster.kubeconfig)) as connected, in_new_namespace(connected) as client:
        yield client


@pytest.fixture
async def node_client(rig_cluster_with_node: rig.Cluster) -> AsyncIterator[Client]:
    """The same on the cluster that has a node."""
    async with connect(load(rig_cluster_with_node.kubeconfig)) as connected, in_new_namespace(connected) as client:
        yield client
