"""A real etcd, shared; each test has a prefix of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from etcd_members import PROGRAMS, EtcdCluster, running_etcd
from navarch.etcd import EtcdClient, EtcdOptions

_numbers = itertools.count()


@pytest.fixture(scope="session", params=PROGRAMS)
def find_etcd(request: pytest.FixtureRequest) -> Callable[[], Path]:
    """Finds the program."""
    found: Callable[[], Path] = request.param
    return found


@pytest.fixture(scope="session")
def member(find_etcd: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """A cluster of one member."""
    with running_etcd(find_etcd, tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster


@pytest.fixture
async def etcd(member: EtcdCluster) -> AsyncIterator[EtcdClient]:
    """A client of it."""
    async with EtcdClient(EtcdOptions(endpoints=member.urls)) as client:
        yield client


@pytest.fixture
def prefix() -> bytes:
    """Keys that no other test uses."""
    return b"/test-%d/" % next(_numbers)


@pytest.fixture
def members(find_etcd: Callable[[], Path], tmp_path: Path) -> Iterator[EtcdCluster]:
    """A cluster of three members, for one test; who leads still leads after the machine has stood still for a second."""
    with running_etcd(find_etcd, tmp_path, size=3, flags=["--election-timeout=1500"]) as cluster:
        yield cluster


@pytest.fixture
def lone_member(find_etcd: Callable[[], Path], tmp_path: Path) -> Iterator[EtcdCluster]:
    """A cluster of one member, for one test."""
    with running_etcd(find_etcd, tmp_path) as cluster:
        yield cluster


@pytest.fixture
def small_member(find_etcd: Callable[[], Path], tmp_path: Path) -> Iterator[EtcdCluster]:
    """A cluster of one member that has little space."""
    with running_etcd(find_etcd, tmp_path, flags=["--quota-backend-bytes=2000000"]) as cluster:
        yield cluster
